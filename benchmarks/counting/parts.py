"""Adapters that count what they are asked for, and an embedder without a model."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from qdrant_edge import EdgeShard

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.embedders.onnx import unit
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import Hit, Search
from recallog_projections.index.engines.point_file import READ_FIELDS, PointFile
from recallog_projections.rows import Changes
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, ReadResult
from recallog_projections.tables import LogName, RowKey

_DIMENSION = 64


class CountingStore(SqliteStore):
    """Counts commits, the rows and bytes in them, and reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits = self.rows = self.written_bytes = self.reads = 0

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        values = [*changes.rows.values(), *(value for values in changes.logs.values() for value in values)]
        self.commits += 1
        self.rows += len(values)
        self.written_bytes += sum(len(value or b"") for value in values)
        return await super().commit(generation, expected, new, changes)

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        self.reads += bool(rows or logs)
        return await super().read(partition, rows, logs, generation)


class CountingEngine(EdgeEngine):
    """Counts calls that search, their searches and hits, and the points that are read for them, with their payloads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.calls = self.searches = self.hits = self.points = self.payload_bytes = 0

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        found = await super().search(collection, searches)
        self.calls += 1
        self.searches += len(searches)
        self.hits += sum(map(len, found))
        return found

    def _open_file(self, shard: EdgeShard, path: Path) -> PointFile:
        file = super()._open_file(shard, path)
        read = file._rows

        def counted(statement: str, ids: Sequence[str]) -> list[tuple[str, bytes, bytes, bytes]]:
            rows = read(statement, ids)
            if statement == READ_FIELDS:  # whole payloads are those of the hits that are returned
                self.points += len(rows)
                self.payload_bytes += sum(len(payload) for _, _, payload, _ in rows)
            return rows

        setattr(file, "_rows", counted)  # noqa: B010
        return file


class HashingEmbedder(Embedder):
    """The vector of a word follows from its letters, and that of a text is the sum of them."""

    model, dimension, token_vectors = "hashed words", _DIMENSION, True

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return [self._embedding(passage) for passage in passages]

    def _embedding(self, passage: Passage) -> Embedding:
        words = list(re.finditer(r"\w+", passage.text)) or list(re.finditer("$", passage.text))
        vectors = np.stack([_vector(word.group().lower()) for word in words])
        tokens = [number for number, word in enumerate(words) if word.start() >= passage.tokens_from]
        return Embedding(unit(vectors.sum(axis=0)), [words[number].span() for number in tokens], vectors[tokens])

    def close(self) -> None:
        return


def _vector(word: str) -> np.ndarray:
    digest = blake2b(word.encode(), digest_size=_DIMENSION).digest()
    return unit(np.frombuffer(digest, np.uint8).astype(np.float32) - 127.5)
