"""The store of the index: what other stores do with rows, and documents become points of the engine.

The engine has no transactions. A commit writes its points first, under ids that the same documents always get, and
waits until they are durable; then comes the commit of the rows and the checkpoint, which is atomic and fenced as ever.
Cut off in between, it is made again and writes the same points. A generation whose collection is gone answers no
checkpoint: to those who keep it, it is lost with its store, and they build it anew.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from recallog_projections.index import documents, points
from recallog_projections.index.documents import DOCUMENTS, Document, Index
from recallog_projections.index.embedders.embedder import Embedder, Embedding
from recallog_projections.index.engines.engine import Engine, Point, Shape, Stored
from recallog_projections.rows import Changes
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Store,
    StoredRow,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import IndexLost, Rebuilding, StorageCorrupt


class MadeWith(msgspec.Struct, frozen=True):
    """What makes the points of an index."""

    embedder: str
    """As the settings name it: "minilm"."""
    model: str
    """What it is: with other weights the vectors would be others."""
    token_vectors: bool = True
    """Whether points carry a vector for each content word-piece."""
    points: int = points.VERSION


def made_with(code: str) -> MadeWith:
    """What a generation's points are made with, by its code."""
    return msgspec.convert(json.loads(code)["made_with"][Index.name], MadeWith)


def collection_of(generation: Generation) -> str:
    """The collection that holds the points of a generation."""
    return f"{generation.partition}-{generation.id}"


@dataclass(slots=True)
class Made:
    """What has been indexed, for those who measure."""

    embedded: int = 0
    reused: int = 0
    """Documents whose vectors an older generation already had."""


class IndexStore(Store):
    """Keeps the rows of the index in `rows`, and its documents in `engine`."""

    remote: ClassVar[bool] = False

    def __init__(self, rows: Store, engine: Engine, embedder: Embedder, *, token_vectors: bool = True) -> None:
        """With `token_vectors`, and an embedder that gives them, points carry a vector for each content word-piece."""
        self._rows = rows
        self._engine = engine
        self._embedder = embedder
        self._shape = Shape(embedder.dimension, token_vectors and embedder.token_vectors)
        self.made = Made()

    async def remember_manifest(self, manifest: bytes) -> bytes:
        return await self._rows.remember_manifest(manifest)

    async def pointer(self, partition: int) -> Pointer:
        return await self._rows.pointer(partition)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        if (pointer := await self._rows.pointer(generation.partition)) != Pointer(active=replaces):
            return pointer
        await self._engine.create(collection_of(generation), self._shape)
        pointer = await self._rows.create(generation, replaces)
        if generation not in (pointer.building, pointer.active):
            await self._engine.drop(collection_of(generation))
        return pointer

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        return await self._rows.activate(building, unless_beyond=unless_beyond)

    async def retire(self, generation: Generation) -> bool:
        return await self._rows.retire(generation)

    async def collect_garbage(self, partition: int) -> None:
        await self._rows.collect_garbage(partition)
        pointer = await self._rows.pointer(partition)
        kept = {collection_of(known) for known in (pointer.active, pointer.building) if known is not None}
        for name in await self._engine.collections():
            if name.startswith(f"{partition}-") and name not in kept:
                await self._engine.drop(name)

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        if collection_of(generation) not in await self._engine.collections():
            return None
        return await self._rows.checkpoint(generation)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        rows = {ordinal: data for ordinal, data in changes.rows.items() if ordinal[0] != DOCUMENTS.name}
        added = {ordinal[3]: data for ordinal, data in changes.rows.items() if ordinal[0] == DOCUMENTS.name}
        if added and await self._rows.checkpoint(generation) == expected:  # or else the commit will be refused
            try:
                await self._add(generation, {key: DOCUMENTS.decode(data) for key, data in added.items() if data})
            except IndexLost:
                return Outcome.LOST
        return await self._rows.commit(generation, expected, new, Changes(rows, changes.logs, changes.keep))

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        return await self._rows.read(partition, rows, logs, generation)

    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> Chunk:
        if table != DOCUMENTS.name:
            return await self._rows.scan(generation, table, space=space, after=after, limit=limit)
        checkpoint = await self._rows.checkpoint(generation)
        if checkpoint is None:
            raise Rebuilding(f"the generation {generation.id} is gone")
        items: list[StoredRow] = []
        behind, last = after[2] if after else None, False
        while not items and not last:
            try:
                stored = await self._engine.scroll(collection_of(generation), behind, limit)
            except IndexLost as error:
                raise Rebuilding(str(error)) from error
            items = [item for point in stored if (item := _item(point, checkpoint)) is not None]
            last = len(stored) < limit
            behind = stored[-1].id if stored else behind
        return Chunk(checkpoint, items, last)

    async def size_bytes(self) -> int:
        return await self._rows.size_bytes() + (await self._engine.size_bytes() or 0)

    async def close(self) -> None:
        await self._rows.close()

    async def _add(self, generation: Generation, added: dict[str, Document]) -> None:
        known = await self._known(generation, added)
        new = {key: document for key, document in added.items() if key not in known}
        embeddings = await asyncio.to_thread(self._embed, list(new.values())) if new else []
        made = dict(zip(new, embeddings, strict=True))
        self.made.embedded += len(new)
        self.made.reused += len(known)
        kept = self._shape.token_vectors
        written = [
            known.get(key) or points.point(key, document, made[key], keep_token_vectors=kept)
            for key, document in added.items()
        ]
        await self._engine.upsert(collection_of(generation), written)

    def _embed(self, added: Sequence[Document]) -> list[Embedding]:
        return self._embedder.embed(
            [points.passage(document, token_vectors=self._embedder.token_vectors) for document in added]
        )

    async def _known(self, generation: Generation, added: dict[str, Document]) -> dict[str, Point]:
        """The points whose vectors the active generation has made already, of the same text by the same model."""
        active = (await self._rows.pointer(generation.partition)).active
        if active is None or active == generation or made_with(active.code) != made_with(generation.code):
            return {}
        try:
            stored = await self._engine.retrieve(collection_of(active), list(added), vectors=True)
        except IndexLost:
            return {}
        return {
            key: points.again(kept, added[key])
            for key, kept in stored.items()
            if kept.dense is not None and points.is_same(kept, added[key])
        }


def _item(point: Stored, checkpoint: Checkpoint) -> StoredRow | None:
    """A point as a row of `DOCUMENTS`; None for one that was written before the checkpoint which answers for it."""
    try:
        document = documents.of_payload(point.payload)
    except msgspec.ValidationError as error:
        raise StorageCorrupt(
            f"the point {point.id} of the index is damaged ({error}). Build it again: recallog rebuild index"
        ) from None
    return StoredRow("", "", point.id, DOCUMENTS.encode(document)) if document.offset <= checkpoint.offset else None
