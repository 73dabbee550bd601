"""An embedder without a model: bags of hashed words. A text has the same vector on every machine."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage

DIMENSION = 16
_CHINESE = re.compile("[\u4e00-\u9fff]")


class ToyEmbedder(Embedder):
    """Texts with common words have similar vectors. Every word is one token; the vectors depend on `model`.

    Texts with Chinese characters are not readable.
    """

    def __init__(self, model: str = "toy", *, token_vectors: bool = True) -> None:
        self.model = f"{model} model"
        self.dimension = DIMENSION
        self.token_vectors = token_vectors
        self.embedded = 0
        """The number of passages embedded so far."""
        self.failure: Exception | None = None
        """The error that every call raises; None for none."""

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        if self.failure is not None:
            raise self.failure
        self.embedded += len(passages)
        return [self._embedding(passage) for passage in passages]

    def close(self) -> None:
        """Does nothing."""

    def _embedding(self, passage: Passage) -> Embedding:
        passage.text.encode()  # a tokenizer refuses half surrogate pairs too
        found = list(re.finditer(r"\w+", passage.text))
        vectors = np.array([self._word(word.group().lower()) for word in found]).reshape(-1, DIMENSION)
        whole = vectors.sum(axis=0) if found else self._word("")
        asked = [number for number, word in enumerate(found) if word.start() >= passage.tokens_from]
        spans = [found[number].span() for number in asked]
        own = passage.text[passage.tokens_from :]
        return Embedding(_unit(whole), spans, vectors[asked].astype(np.float32), readable=_CHINESE.search(own) is None)

    def _word(self, word: str) -> NDArray[np.float64]:
        digest = blake2b(f"{self.model}\0{word}".encode(), digest_size=DIMENSION).digest()
        return _unit(np.frombuffer(digest, np.uint8).astype(np.float64) - 127.5).astype(np.float64)


class ChosenVectors(ToyEmbedder):
    """An embedder whose vectors of some texts are chosen: up to `DIMENSION` numbers each, at any length."""

    def __init__(self, vectors: Mapping[str, Sequence[float]]) -> None:
        super().__init__("chosen", token_vectors=False)
        self._chosen = {
            text: _unit(np.pad(np.array(vector, np.float64), (0, DIMENSION - len(vector))))
            for text, vector in vectors.items()
        }

    def _embedding(self, passage: Passage) -> Embedding:
        chosen = self._chosen.get(passage.text)
        if chosen is None:
            return super()._embedding(passage)
        return Embedding(chosen, [], np.zeros((0, DIMENSION), np.float32))


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vector / np.linalg.norm(vector)).astype(np.float32)
