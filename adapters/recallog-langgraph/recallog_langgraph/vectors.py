"""The vectors of the texts in a store's values, and the ranking by them."""

import base64
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path
from numpy.typing import NDArray

from recallog_projections.index.embedders import registry
from recallog_projections.index.embedders.embedder import Passage

Vectors = NDArray[np.float32]

DEFAULT_MODEL = "minilm"
_WHOLE = "$"


class OwnEmbeddings(Embeddings):
    """Recallog's own model, which runs on this machine."""

    def __init__(self) -> None:
        self._embedder = registry.embedder(DEFAULT_MODEL)
        self._lock = threading.Lock()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embed([Passage(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return self._embed([Passage(text, is_query=True)])[0]

    def _embed(self, passages: Sequence[Passage]) -> list[list[float]]:
        with self._lock:  # calls of an embedder must not overlap
            return [each.vector.tolist() for each in self._embedder.embed(passages)]


class Vectorizer:
    """Makes the vectors of values, and ranks them."""

    def __init__(self, index: IndexConfig | None) -> None:
        """`index` as in other stores of LangGraph; None means Recallog's own model, over all texts of a value."""
        self._embeddings = OwnEmbeddings() if index is None else ensure_embeddings(index.get("embed"))
        self._fields: Sequence[str] = [_WHOLE] if index is None else index.get("fields") or [_WHOLE]

    def vectors_of(self, values: Sequence[tuple[Mapping[str, Any], Sequence[str] | None]]) -> list[list[str]]:
        """For each value: its vectors, as text. Each value comes with the fields to read, or None for those of the
        store."""
        texts = [_texts_of(value, self._fields if fields is None else fields) for value, fields in values]
        wanted = list(dict.fromkeys(text for each in texts for text in each))
        made = self._embeddings.embed_documents(wanted) if wanted else []
        by_text = dict(zip(wanted, map(_written, made), strict=True))
        return [[by_text[text] for text in each] for each in texts]

    def score(self, query: str, vectors: Iterable[Sequence[str]]) -> list[float | None]:
        """For each value: the similarity of its best text to the query; None for a value without vectors."""
        asked = _normal(np.asarray([self._embeddings.embed_query(query)], np.float32))[0]
        return [_best(asked, [_read(text) for text in each]) for each in vectors]


def _best(asked: Vectors, vectors: Sequence[Vectors]) -> float | None:
    same_model = [each for each in vectors if len(each) == len(asked)]
    return float((_normal(np.stack(same_model)) @ asked).max()) if same_model else None


def _normal(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normal: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths != 0)
    return normal


def _texts_of(value: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    paths = [field if field == _WHOLE else tokenize_path(field) for field in fields]
    return [text for path in paths for text in get_text_at_path(value, path)]


def _written(vector: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _read(text: str) -> Vectors:
    return np.frombuffer(base64.b64decode(text), "<f4")
