"""The store of the index: rows in another store, documents as points of the engine.

The engine has no transactions. A commit first writes its points, whose ids follow from their documents, and waits until
they are durable; then it commits rows and checkpoint in the other store, atomically and fenced. If it is interrupted in
between, it is repeated and writes the same points. A generation whose collection is gone has no checkpoint: it counts
as lost and is rebuilt. Vectors that an earlier collection still has are not computed again, also if the rows were lost.

The points of events in a backlog are first written without vectors, which takes a fifth of the time: their words and
their neighbours are found at once. The commit notes them, and `embed_newest` computes their vectors, from the newest
event back. A point without vectors names no maker of them, so that no vectors are taken from it.

Points of deleted documents are deleted after the commit, which notes their ids in a table of this store. The next
commit deletes them again and removes the notes, so that an interruption leaves no point behind. Until then scans leave
out the points that are noted.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import msgspec

from recallog_projections.index import documents, points
from recallog_projections.index.documents import COUNTS, DOCUMENTS, SESSIONS, Document, Index
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.engines.engine import Engine, Point, StoredPoint
from recallog_projections.index.unread import UNREAD, key_of, point_of
from recallog_projections.rows import Changes
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Store,
    StoredRow,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import IndexDamaged, IndexLost, IndexUnavailable, InvariantViolation, Rebuilding

_EMBEDDED_CHARS = 16_384
"""Characters of one call of the embedder, so that progress shows while a commit is prepared: about 50 turns of people
chatting with the text before them, which all-MiniLM-L6-v2 embeds in less than a second."""


_CHUNK_ROWS = 1_000
_DELETED = "index.deleted"
"""The table of the ids of points that the last commit of a generation deleted, as keys."""
_EMBEDDED_POINTS = 128
"""Points that get their vectors at a time: half a second of all-MiniLM-L6-v2, after which new events are indexed."""
_SAMPLE_POINTS = 100
"""Points that are read when a collection is first used, to notice that a whole file of vectors is damaged."""


class MadeWith(msgspec.Struct, frozen=True):
    """The embedder and the version that make the points of an index."""

    embedder: str
    """The embedder's name in the settings, for example "minilm"."""
    model: str
    """The identity of its model, which differs for other weights."""
    token_vectors: bool = True
    """Whether points have a vector for each token of a content word."""
    points: int = points.VERSION


def made_with(code: str) -> MadeWith:
    """The `MadeWith` in the code of a generation."""
    return msgspec.convert(json.loads(code)["made_with"][Index.name], MadeWith)


def added_documents(code: str) -> dict[str, int]:
    """The models that are not built in and have documents in a generation, each with the version of its documents."""
    return dict(json.loads(code)["made_with"][Index.name].get(documents.ADDED, {}))


def identity_of(code: str) -> str:
    """What identifies the maker of the vectors of a generation in its points."""
    made = made_with(code)
    return hashlib.blake2b(f"{made.model}\0{made.token_vectors}\0{made.points}".encode(), digest_size=8).hexdigest()


def collection_of(generation: Generation) -> str:
    """The name of the collection with the points of a generation."""
    return f"{generation.partition}-{generation.id}"


@dataclass(slots=True)
class DocumentCounts:
    """How many documents a store has indexed since it was opened."""

    embedded: int = 0
    reused: int = 0
    """Documents whose vectors were taken from the active generation."""


class IndexStore(Store):
    """Stores the rows of the index in the store `rows`, and its documents in `engine`."""

    remote: ClassVar[bool] = False
    commit_changes_max: ClassVar[int] = 3_000
    """A commit holds the vectors of its points, including points that only change a field."""

    def __init__(self, rows: Store, engine: Engine, embedder: Embedder, *, token_vectors: bool = True) -> None:
        """With `token_vectors`, if the embedder has them, points have a vector for each token of a content word."""
        self._rows = rows
        self._engine = engine
        self._embedder = embedder
        self._with_token_vectors = token_vectors and embedder.token_vectors
        self.counts = DocumentCounts()
        self.backlog_end = 0
        """Events before this offset get their vectors later, unless another generation answers meanwhile."""
        self._writing = asyncio.Lock()
        """Held while points and the rows that belong to them are written."""

    @property
    def location(self) -> str:
        return self._rows.location

    async def exists(self) -> bool:
        return await self._rows.exists()

    async def clear(self) -> None:
        await self._rows.clear()
        for name in await self._engine.collections():
            await self._engine.drop(name)

    async def contents(self) -> AsyncIterator[tuple[str, bytes]]:
        """The payloads of all points: the engine compresses them in its files."""
        for name in sorted(await self._engine.collections()):
            after: str | None = None
            while page := await self._engine.scroll(name, after, _CHUNK_ROWS):
                for point in page:
                    yield f"the point {point.id} of {name}", msgspec.json.encode(point.payload)
                after = page[-1].id

    async def remember_manifest(self, manifest: bytes) -> bytes:
        return await self._rows.remember_manifest(manifest)

    async def pointer(self, partition: int) -> Pointer:
        return await self._rows.pointer(partition)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        if (pointer := await self._rows.pointer(generation.partition)) != Pointer(active=replaces):
            return pointer
        multilingual = self._embedder.multilingual is not None
        await self._engine.create(collection_of(generation), self._embedder.dimension, multilingual=multilingual)
        pointer = await self._rows.create(generation, replaces)
        if generation not in (pointer.building, pointer.active):
            await self._engine.drop(collection_of(generation))
        return pointer

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        return await self._rows.activate(building, unless_beyond=unless_beyond)

    async def retire(self, generation: Generation) -> bool:
        return await self._rows.retire(generation)

    async def collect_garbage(self, partition: int) -> None:
        for name in await self._find_unreferenced(partition):
            await self._engine.drop(name)
        await self._rows.collect_garbage(partition)

    async def has_garbage(self, partition: int) -> bool:
        return bool(await self._find_unreferenced(partition)) or await self._rows.has_garbage(partition)

    async def _find_unreferenced(self, partition: int) -> list[str]:
        pointer = await self._rows.pointer(partition)
        referenced = {collection_of(known) for known in (pointer.active, pointer.building) if known is not None}
        return [name for name in await self.collections(partition) if name not in referenced]

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        if collection_of(generation) not in await self._engine.collections():
            return None
        return await self._rows.checkpoint(generation)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        async with self._writing:
            return await self._commit(generation, expected, new, changes)

    async def _commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        rows = {row_key: data for row_key, data in changes.rows.items() if row_key[0] != DOCUMENTS.name}
        written = {row_key[3]: data for row_key, data in changes.rows.items() if row_key[0] == DOCUMENTS.name}
        deleted = [key for key, data in written.items() if data is None]
        before: set[str] | None = None
        with suppress(Rebuilding):  # a damaged file was replaced by an empty one
            if await self._rows.checkpoint(generation) == expected:
                before = await self._find_deleted(generation)
        if before is None:  # the commit will be refused
            return await self._rows.commit(generation, expected, new, Changes(rows, changes.logs, changes.keep))
        try:
            if before:
                await self._engine.delete(collection_of(generation), before)
            added = {key: DOCUMENTS.decode(data) for key, data in written.items() if data is not None}
            if added:
                later = new.offset < self.backlog_end and await self._answers_alone(generation)
                unread = await self._add(generation, added, later=later)
                rows |= {(UNREAD, "", "", key_of(added[key].offset, key)): b"" for key in unread}
        except IndexLost:
            return Outcome.LOST
        rows |= {(_DELETED, "", "", key): None for key in before} | {(_DELETED, "", "", key): b"" for key in deleted}
        outcome = await self._rows.commit(generation, expected, new, Changes(rows, changes.logs, changes.keep))
        if outcome is Outcome.APPLIED and deleted:
            with suppress(IndexUnavailable):  # the next commit deletes them again
                await self._engine.delete(collection_of(generation), deleted)
        return outcome

    async def _answers_alone(self, generation: Generation) -> bool:
        """Whether no other generation of its partition answers questions."""
        return (await self._rows.pointer(generation.partition)).active in (None, generation)

    async def embed_newest(self, generation: Generation) -> None:
        """Compute the vectors of the newest points without them.

        Raises `Rebuilding` if the generation is gone, `IndexLost` and `IndexDamaged`.
        """
        async with self._writing:
            chunk = await self._rows.scan(generation, UNREAD, newest_first=True, limit=_EMBEDDED_POINTS)
            if not chunk.items:
                return
            ids = [point_of(item.key) for item in chunk.items]
            stored = await self._engine.retrieve(collection_of(generation), ids)
            for point in stored.values():
                if wrong := points.damage(point):
                    raise IndexDamaged(f"the point {point.id} of the index is damaged: {wrong}")
            unread = {key: point for key, point in stored.items() if not point.payload[points.MADE_WITH]}
            await self._add(generation, {key: documents.from_payload(each.payload) for key, each in unread.items()})
            rows = {(UNREAD, *item.row_key): None for item in chunk.items}
            await self._rows.commit(generation, chunk.checkpoint, chunk.checkpoint, Changes(rows, {}, {}))

    async def _find_deleted(self, generation: Generation) -> set[str]:
        """The ids of the points that the last commit has deleted, or failed to delete. Raises `Rebuilding`."""
        found, after = set[str](), None
        while True:
            chunk = await self._rows.scan(generation, _DELETED, after=after, limit=_CHUNK_ROWS)
            found.update(item.key for item in chunk.items)
            if chunk.last:
                return found
            after = chunk.items[-1].row_key

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        return await self._rows.read(partition, rows, logs, generation)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        if scan.table != DOCUMENTS.name:
            return await self._rows.scan_chunk(generation, scan, damaged)
        if scan.owner is not None or scan.newest_first:
            raise InvariantViolation("documents are scanned in the order of their points only")
        checkpoint = await self._rows.checkpoint(generation)
        if checkpoint is None:
            raise Rebuilding(f"the generation {generation.id} is gone; read again")
        deleted = await self._find_deleted(generation)
        items: list[StoredRow] = []
        last_id, last = scan.after[2] if scan.after else None, False
        while not items and not last:
            try:
                stored = await self._engine.scroll(
                    collection_of(generation), last_id, scan.limit, vectors=damaged is not None
                )
            except IndexLost as error:
                raise Rebuilding(str(error)) from error
            items = []
            for point in stored:
                if point.id in deleted:
                    continue
                wrong = points.damage(point)
                if wrong and damaged is None:
                    raise IndexDamaged(f"the point {point.id} of the index is damaged: {wrong}")
                if wrong and damaged is not None:
                    damaged.append(("", "", point.id))
                elif (item := _item(point, checkpoint)) is not None:
                    items.append(item)
            last = len(stored) < scan.limit
            last_id = stored[-1].id if stored else last_id
        return Chunk(checkpoint, items, last)

    async def find_problems(self) -> list[str]:
        return await self._rows.find_problems()

    async def size_bytes(self) -> int:
        return await self._rows.size_bytes() + (await self._engine.size_bytes() or 0)

    async def close(self) -> None:
        await self._rows.close()

    async def _add(self, generation: Generation, added: dict[str, Document], *, later: bool = False) -> list[str]:
        """Write the points of documents; `later`, those of events without vectors. Returns the ids of the latter."""
        reused = await self._reusable(generation, added)
        self.counts.reused += len(reused)
        unread = [key for key, document in added.items() if later and key not in reused and not document.entry]
        known = {*reused, *unread}
        embedded = await self._embed_new({key: document for key, document in added.items() if key not in known})
        made = identity_of(generation.code)
        written = reused | {key: points.without_vectors(key, added[key]) for key in unread}
        written |= {key: self._point(key, added[key], of_passages, made) for key, of_passages in embedded.items()}
        await self._engine.upsert(collection_of(generation), [written[key] for key in added])
        return unread

    def _point(self, key: str, document: Document, embedded: Sequence[Sequence[Embedding]], made: str) -> Point:
        """A new point, from the embeddings of its passages by each model."""
        first, *more = embedded
        second = more[0] if more else ()
        with_tokens = self._with_token_vectors
        return points.point(key, document, first, made, with_token_vectors=with_tokens, multilingual=second)

    async def _embed_new(self, new: dict[str, Document]) -> dict[str, list[list[Embedding]]]:
        """The embeddings of the passages of each document by each model, counted as they are made."""
        embedded: dict[str, list[list[Embedding]]] = {}
        models = [each for each in (self._embedder, self._embedder.multilingual) if each is not None]
        for part in _parts({key: points.passages_of(document) for key, document in new.items()}):
            passages = [passage for of_document in part.values() for passage in of_document]
            found = [iter(await asyncio.to_thread(model.embed, passages)) for model in models]
            embedded |= {
                key: [list(islice(each, len(of_document))) for each in found] for key, of_document in part.items()
            }
            self.counts.embedded += len(part)
        return embedded

    async def _reusable(self, generation: Generation, added: dict[str, Document]) -> dict[str, Point]:
        """The points whose vectors an earlier generation, or this one, has."""
        reusable: dict[str, Point] = {}
        earlier = await self._earlier(generation)
        if earlier is not None:
            reusable = await self._same(earlier, added, generation)
        # Fields of an entry other than its text may have changed.
        entries = {key: document for key, document in added.items() if document.entry and key not in reusable}
        if entries:
            reusable |= await self._same(collection_of(generation), entries, generation)
        return reusable | _share_vectors(reusable, added)

    async def _same(self, collection: str, added: dict[str, Document], generation: Generation) -> dict[str, Point]:
        """The points with the vectors that `collection` has of the same passages by the same model."""
        try:
            stored = await self._engine.retrieve(collection, list(added), vectors=True)
        except (IndexLost, IndexDamaged):
            return {}
        made = identity_of(generation.code)
        return {
            key: points.reuse(point, added[key])
            for key, point in stored.items()
            if points.can_reuse(point, added[key], made)
        }

    async def _earlier(self, generation: Generation) -> str | None:
        """The collection of the active generation or, where the rows were lost, one that they do not name any more."""
        active = (await self._rows.pointer(generation.partition)).active
        if active is not None:
            return collection_of(active) if active != generation else None
        mine = collection_of(generation)
        others = (name for name in await self.collections(generation.partition) if name != mine)
        return min(others, default=None)

    async def collections(self, partition: int) -> list[str]:
        """The engine's collections of a partition, also those that the rows do not name."""
        return [name for name in await self._engine.collections() if name.startswith(f"{partition}-")]


def _share_vectors(reusable: Mapping[str, Point], added: Mapping[str, Document]) -> dict[str, Point]:
    """The points of forms of entries with the vectors of another form that has the same text: of a former owner."""
    known = {(document.entry, document.text_key): key for key, document in added.items() if key in reusable}
    return {
        key: points.same_vectors(key, document, reusable[other])
        for key, document in added.items()
        if document.entry and key not in reusable and (other := known.get((document.entry, document.text_key)))
    }


async def damage(rows: Store, engine: Engine, generation: Generation) -> str:
    """What is damaged in a generation's collection, in words; "" if nothing is noticed.

    Its points are counted, and some of them are read. Raises `IndexDamaged`, `IndexLost` and `Rebuilding`.
    """
    documented, after = 0, None
    while True:
        chunk = await rows.scan(generation, SESSIONS.name, after=after, limit=_CHUNK_ROWS)
        documented += sum(SESSIONS.decode(item.data).documents for item in chunk.items)
        if chunk.last:
            break
        after = chunk.items[-1].row_key
    after = None
    while True:
        chunk = await rows.scan(generation, COUNTS.name, after=after, limit=_CHUNK_ROWS)
        documented += sum(COUNTS.decode(item.data).documents for item in chunk.items)
        if chunk.last:
            break
        after = chunk.items[-1].row_key
    found = await engine.count(collection_of(generation))
    if found < documented:
        return f"{documented - found:,} of {documented:,} memories are missing"
    for point in await engine.scroll(collection_of(generation), None, _SAMPLE_POINTS, vectors=True):
        if wrong := points.damage(point):
            return f"the point {point.id} is damaged: {wrong}"
    return ""


def _parts(passages: Mapping[str, Sequence[Passage]]) -> Iterator[dict[str, Sequence[Passage]]]:
    """The passages of documents in parts of `_EMBEDDED_CHARS`, or of one document that has more."""
    part: dict[str, Sequence[Passage]] = {}
    chars = 0
    for key, of_document in passages.items():
        more = sum(len(passage.text) for passage in of_document)
        if part and chars + more > _EMBEDDED_CHARS:
            yield part
            part, chars = {}, 0
        part[key] = of_document
        chars += more
    if part:
        yield part


def _item(point: StoredPoint, checkpoint: Checkpoint) -> StoredRow | None:
    """A point as a row of `DOCUMENTS`; None for a point beyond the checkpoint, whose commit is not complete."""
    document = documents.from_payload(point.payload)
    if document.last_changed > checkpoint.offset:
        return None
    return StoredRow("", "", point.id, DOCUMENTS.encode(document))
