"""Adapters that count what they are asked for, and an embedder without a model."""

import re
from collections.abc import Collection, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np

from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.embedders.onnx import unit
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import TEXT_FIELDS, Hit, Search
from recallog_projections.index.engines.kept_points import StoredFields
from recallog_projections.index.engines.point_file import PointFile
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

    def _read_points(self, file: PointFile, ids: Collection[str], fields: Collection[str]) -> list[StoredFields]:
        kept = file._kept.find(ids) if TEXT_FIELDS.isdisjoint(fields) else {}
        points = super()._read_points(file, ids, fields)
        read = [payload for id_, payload, _ in points if id_ not in kept]
        self.points += len(read)
        self.payload_bytes += sum(len(msgspec.json.encode(payload)) for payload in read)
        return points


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
