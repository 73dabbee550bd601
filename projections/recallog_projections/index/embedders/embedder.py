"""The embedder port: texts in, vectors out.

A vector is of length 1, so that a dot product is a cosine. The word-pieces' own vectors come out of the same forward
pass: late interaction costs no second model.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to embed, and the part of it whose word-pieces are asked for."""

    text: str
    tokens_from: int | None = None
    """The first character of that part, which reaches to the end; None: no pieces are asked for."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """What a model makes of one passage."""

    vector: Vectors
    """(dimension,), of length 1."""
    token_spans: Sequence[tuple[int, int]]
    """Of each word-piece asked for, its first character in the passage's text and the one behind its last."""
    token_vectors: Vectors
    """(len(token_spans), dimension): the last layer's state of each, of length 1."""


class Embedder(ABC):
    """Makes vectors of texts. One call at a time; callers run it in a thread of its own, since it takes its time."""

    model: str
    """The index's identity: it changes whenever the same text would give another vector."""
    dimension: int
    token_vectors: bool
    """Whether it gives the vectors of word-pieces; where not, late interaction is left out."""
    leaves_machine: bool = False
    """Whether texts are sent elsewhere."""

    @abstractmethod
    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        """One embedding a passage, in order; a text longer than the model reads is cut at its end.

        The same passage gives the same vector whatever else is in the call, up to rounding (cosine > 0.999). Raises
        `EmbedderUnavailable`: trying again later may help.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of the model."""
