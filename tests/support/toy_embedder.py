"""An embedder without a model: bags of hashed words. The same text gives the same vector on every machine."""

import re
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage

DIMENSION = 16


class ToyEmbedder(Embedder):
    """Texts are near each other that share words. Every word is a word-piece; another `model` gives other vectors."""

    def __init__(self, model: str = "toy", *, token_vectors: bool = True) -> None:
        self.model = f"{model} model"
        self.dimension = DIMENSION
        self.token_vectors = token_vectors
        self.embedded = 0
        """Passages that were asked for."""
        self.failure: Exception | None = None
        """What every call raises, until it is None again."""

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if self.failure is not None:
            raise self.failure
        self.embedded += len(passages)
        return [self._embedding(passage) for passage in passages]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _embedding(self, passage: Passage) -> Embedding:
        passage.text.encode()  # a tokenizer takes no half surrogate pairs either
        found = list(re.finditer(r"\w+", passage.text))
        vectors = np.array([self._word(word.group().lower()) for word in found]).reshape(-1, DIMENSION)
        whole = vectors.sum(axis=0) if found else self._word("")
        asked = [
            number
            for number, word in enumerate(found)
            if passage.tokens_from is not None and word.start() >= passage.tokens_from
        ]
        spans = [found[number].span() for number in asked]
        return Embedding(_unit(whole), spans, vectors[asked].astype(np.float32))

    def _word(self, word: str) -> NDArray[np.float64]:
        digest = blake2b(f"{self.model}\0{word}".encode(), digest_size=DIMENSION).digest()
        return _unit(np.frombuffer(digest, np.uint8).astype(np.float64) - 127.5).astype(np.float64)


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vector / np.linalg.norm(vector)).astype(np.float32)
