"""The embedder port: texts in, vectors out.

Vectors have length 1, so that a dot product is a cosine. The vectors of tokens come from the same forward pass, so that
late interaction needs no second model.
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
    """A text to embed, and the part of it whose tokens are requested."""

    text: str
    tokens_from: int | None = None
    """The first character of that part, which extends to the end; None requests no tokens."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of one passage."""

    vector: Vectors
    """(dimension,), of length 1."""
    token_spans: Sequence[tuple[int, int]]
    """The (start, end) of each requested token in characters of the passage's text, end exclusive."""
    token_vectors: Vectors
    """(len(token_spans), dimension): the last layer's state of each, of length 1."""


class Embedder(ABC):
    """Computes vectors of texts. Calls block and must not overlap; callers run them in a thread."""

    model: str
    """The identity of the model. It changes whenever the same text would give another vector."""
    dimension: int
    """The length of vectors."""
    token_vectors: bool
    """Whether it computes vectors of tokens. Without them recall has no late interaction."""
    leaves_machine: bool = False
    """Whether texts are sent to another machine."""

    @abstractmethod
    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        """One embedding per passage, in order. A text that is too long for the model is cut at its end.

        A passage has the same vector whatever the other passages are, except for rounding (cosine > 0.999). Raises
        `EmbedderUnavailable`, which is retryable.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the model."""
