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
    """A text to embed, which may begin with other text for context."""

    text: str
    tokens_from: int = 0
    """The first character of its own text, which extends to the end: its tokens have vectors."""
    is_query: bool = False
    """Whether it is a question. Some models need other prefixes for these."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """The vectors of one passage."""

    vector: Vectors
    """(dimension,), of length 1; zeros if the model cannot read the text."""
    token_spans: Sequence[tuple[int, int]]
    """The (start, end) of each token of its own text in characters of the passage's text, end exclusive; empty without
    token vectors."""
    token_vectors: Vectors
    """(len(token_spans), dimension): the last layer's state of each, of length 1."""
    readable: bool = True
    """Whether the model can read the passage's own text. If not, there are no token vectors."""


def unreadable(dimension: int) -> Embedding:
    """The embedding of a passage that the model cannot read."""
    return Embedding(np.zeros(dimension, np.float32), [], np.zeros((0, dimension), np.float32), readable=False)


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
    multilingual: "Embedder | None" = None
    """A second model, which reads all languages and has vectors of the same length. Every text has vectors of it too;
    they are compared where this model cannot read the question or the text."""
    cosines: tuple[float, float] = (0.0, 1.0)
    """The cosines that count as 0 and as 1. Some models give any two texts a high cosine."""

    def similarity(self, cosine: float) -> float:
        """A cosine of this model on a scale that is the same for all models."""
        low, high = self.cosines
        return (cosine - low) / (high - low)

    @abstractmethod
    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        """One embedding per passage, in order. If a text is too long for the model, the other text at its
        beginning is cut first, from the left, and then its own text at the end. The prefix of a model is not part
        of the passage.

        A passage has the same vector whatever the other passages are, except for rounding (cosine > 0.999). Raises
        `EmbedderUnavailable`, which is retryable.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the model."""
