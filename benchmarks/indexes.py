"""Folders with a semantic index that this process builds, and a fast embedder with vectors like those of a model."""

import random
import re
import shutil
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from benchmarks.conversations import vocabulary
from recallog import layout
from recallog.index.indexer import Indexer
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.embedders.onnx import unit
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import Point
from recallog_projections.index.terms import FUNCTION_WORDS
from recallog_projections.stores.sqlite import SqliteStore
from recallog_streams.ledgers.sqlite import SqliteLedger

EMBEDDER = "minilm"

_LEARNT_AT_ONCE = 24
_NOISE = 0.03
"""Standard deviation of the noise added to each component of a word's vector. It stands for the effect of the words
around it: the cosine of two vectors of one word becomes 0.86."""

_WORD = re.compile(r"[a-z]+")


class RecordingEngine(EdgeEngine):
    """Also stores the dense vectors in memory, for an exact search."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._recorded: dict[str, tuple[list[str], list[np.ndarray]]] = {}
        self._stacked: dict[str, tuple[list[str], np.ndarray]] = {}

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        await super().upsert(collection, points)
        for point in points:
            ids, vectors = self._recorded.setdefault(point.payload["space"], ([], []))
            ids.append(point.id)
            vectors.append(point.dense[0])

    def vectors_of(self, space: str) -> tuple[list[str], np.ndarray]:
        """The ids of the points of a space and a matrix of their vectors, row by row. No point may be written later."""
        if space not in self._stacked:
            ids, vectors = self._recorded.pop(space)
            self._stacked[space] = ids, np.stack(vectors)
        return self._stacked[space]


@asynccontextmanager
async def indexing(folder: Path, embedder: Embedder, engine: EdgeEngine | None = None) -> AsyncIterator[Indexer]:
    """The indexer of a folder, in this process instead of a service."""
    (folder / layout.INDEX).mkdir(parents=True, exist_ok=True)
    ledger, rows = SqliteLedger(folder / layout.LEDGER), SqliteStore(folder / layout.INDEX_ROWS)
    engine = engine or EdgeEngine(engine_folder(folder))
    try:
        yield Indexer(ledger, rows, engine, lambda name: embedder, EMBEDDER)
    finally:
        await engine.close()
        await rows.close()
        await ledger.close()


def engine_folder(folder: Path) -> Path:
    return folder / layout.INDEX_ENGINE


def delete_index(folder: Path) -> None:
    shutil.rmtree(folder / layout.INDEX, ignore_errors=True)


class AveragedEmbedder(Embedder):
    """Computes vectors like those of a model at a thousandth of the cost.

    The vector of a word is the one that the model gave the word in another text, plus noise. The vector of a text is
    the mean of the vectors of its words.
    """

    def __init__(self, model: Embedder) -> None:
        """`model` embeds about 350 texts that contain each word of the vocabulary once."""
        self.model, self.dimension, self.token_vectors = model.model, model.dimension, True
        words = [*vocabulary(), *sorted(FUNCTION_WORDS)]
        random.Random(8).shuffle(words)
        texts = [" ".join(words[n : n + _LEARNT_AT_ONCE]) for n in range(0, len(words), _LEARNT_AT_ONCE)]
        learnt: dict[str, np.ndarray] = {}
        for text, embedding in zip(texts, model.embed([Passage(text) for text in texts]), strict=True):
            for (start, end), vector in zip(embedding.token_spans, embedding.token_vectors, strict=True):
                learnt.setdefault(text[start:end], vector)
        self._numbers = {word: number for number, word in enumerate(learnt)}
        self._vectors = np.stack([*learnt.values()])
        self._noise = np.random.default_rng(9).normal(0, _NOISE, (8_192, self.dimension)).astype(np.float32)

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return [self._embedded(passage) for passage in passages]

    def _embedded(self, passage: Passage) -> Embedding:
        words = [word for word in _WORD.finditer(passage.text) if word.group() in self._numbers]
        if not words:
            return Embedding(self._vectors[0], [], self._vectors[:0])
        first = zlib.crc32(passage.text.encode()) % (len(self._noise) - len(words))
        noise = self._noise[first : first + len(words)]
        vectors = unit(self._vectors[[self._numbers[word.group()] for word in words]] + noise)
        start = passage.tokens_from
        tokens = [number for number, word in enumerate(words) if word.start() >= start]
        return Embedding(unit(vectors.mean(axis=0)), [words[number].span() for number in tokens], vectors[tokens])

    def close(self) -> None:
        return
