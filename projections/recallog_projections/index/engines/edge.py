"""The engine in this process: collections in a folder, with `qdrant-edge-py`, the engine of a Qdrant server as a
library.

<folder>/<collection>/          a complete shard, and points.db: the payloads and terms of its points
<folder>/<collection>.new/      a shard that is being created; after a crash it is deleted
<folder>/<collection>.dropped/  a shard that is being deleted
<folder>/<collection>.damaged/  the last shard that could not be opened, until another collection is dropped
<folder>/.lock                  held while shards are created and deleted

No graph is built (only `optimize` would build one), so that every search is exact: it takes about 10 ms for a space of
100,000 points. A call of the library blocks all threads of the process, so that points are written in small slices.
"""

import asyncio
import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
import qdrant_edge as qdrant
from numpy.typing import NDArray

from recallog_projections import private_files
from recallog_projections.file_errors import has_room
from recallog_projections.index.engines.conditions import (
    DENSE,
    MULTILINGUAL,
    AnyOf,
    Between,
    IdIn,
    NoneOf,
    NotBetween,
    NoVector,
    Required,
    check_name,
    conditions,
    dense_vectors,
    finds_nothing,
    make_point,
    spaces,
    terms_of,
    vector_name,
)
from recallog_projections.index.engines.engine import (
    FLOAT_FIELDS,
    INTEGER_FIELDS,
    KEYWORD_FIELDS,
    TEXT_FIELDS,
    Engine,
    Filter,
    Hit,
    Point,
    Search,
    Sparse,
    StoredPoint,
    closed_error,
)
from recallog_projections.index.engines.folder import OPENING_BYTES_MIN, collections_in, disk_bytes
from recallog_projections.index.engines.kept_points import KeptBytes, StoredFields
from recallog_projections.index.engines.point_file import PointFile
from recallog_projections.syncing import sync
from recallog_projections.threads import run_last
from recallog_schemas import limits
from recallog_schemas.errors import IndexDamaged, IndexLost, IndexUnavailable, RecallogError

SLICE_POINTS = 50
"""Points of one call: 15 to 30 ms on a busy 2-core machine, during which no other thread of the process runs."""

DELETED_POINTS = 1_000
"""Points of one call that deletes."""

FLUSH_BYTES = 4 * 1024 * 1024
"""Size of points after which the write-ahead log is flushed into the shard's files: that of about 1,000 short texts.

A flush takes 0.2 to 0.5 s even for few points. Without flushes the log grows without bound, and opening the shard after
a crash writes all its points again.
"""

LOG_FILE_BYTES = 1024 * 1024
"""Size of a file of the write-ahead log; a longer record has a file of its own size. The library deletes files whose
points are flushed, except for two. With its own size, 32 MB, they take more space than an index of 10,000 points."""

FIELD_PAGE_BYTES = 128 * 1024
"""Size of a page of the index of a field. The library keeps all pages in memory, also unused ones; its own size, 2 or
4 MB, takes 50 MB for 14 fields of 10,000 points. It must be a multiple of a region, 128 KB."""

FIELD_TRACKER_BYTES = 4 * 1024
"""Size of the table of the points' places in these pages. The library doubles it when it is full, and keeps it in
memory. Its own size, 1 MB, is that for 65,536 points, and most spaces lack the values of 6 fields."""

NEAREST_FACTOR = 4
"""How many times the limits of the searches by a vector are first searched without their filters."""

FREE_BYTES_MIN = 256 * 1024 * 1024
"""The space that must be free to write points. The library writes through memory maps: on a full disk the system kills
the process (SIGBUS)."""

_POINTS = "points.db"
_MOVED_POINTS = 1_000
"""Points whose payloads are read from the shard of an older version at a time."""

_NO_TERMS = Sparse((), ())
_FILTERED = (*KEYWORD_FIELDS, *INTEGER_FIELDS, *FLOAT_FIELDS)
"""The fields that the shard has, besides the next one."""
_VECTORS_CHECKSUM = "vectors_checksum"
"""A field that this adapter adds to the payload: the crc32 of a point's vectors as the library returns them, rounded.
The library has no checksums."""

_NOT_DAMAGE = (
    "no space left",
    "disk quota",
    "too many open files",
    "file too large",
    "permission denied",
    "read-only file system",
    "cannot allocate memory",
)
"""Parts of the library's messages about the system, which say nothing about the content of files."""

_KEPT = KeptBytes(limits.KEPT_POINTS_BYTES)
"""The bound for all folders that this process serves."""

_log = logging.getLogger("recallog.index")

Result = TypeVar("Result")


@dataclass(slots=True)
class _OpenShard:
    """An open shard."""

    shard: qdrant.EdgeShard
    inode: int
    """The inode of its folder, to detect that the folder was deleted or replaced."""
    file: PointFile
    unflushed_bytes: int = FLUSH_BYTES
    """The first write after opening flushes, since the log may hold points from before a crash."""
    counts: dict[bytes, int] = field(default_factory=dict)
    """Numbers of points by filter, as JSON, since the last write: counting 100,000 points takes 14 ms."""


class _Written(NamedTuple):
    """What the library has of a point that was written."""

    id: str
    terms: Sparse
    checksum: int
    """The checksum of its vectors."""

    @classmethod
    def of(cls, point: StoredPoint) -> Self:
        return cls(point.id, point.sparse or _NO_TERMS, _vectors_checksum(point))


class EdgeEngine(Engine):
    """The collections of one folder. One process at a time can have a collection open.

    Every method may raise `IndexUnavailable`: another process has the collection open, or the disk is full. A shard
    that cannot be opened because of damaged files is set aside: its collection is then lost (`IndexLost`). A call that
    fails is repeated with files that are opened again; if it fails again, `IndexDamaged` is raised. Points survive
    `kill -9` and, since `upsert` syncs the write-ahead log, a power cut.
    """

    def __init__(self, folder: Path, calling: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """`calling` makes the context in which the library is called, in another thread."""
        self._folder = folder
        self._calling = calling
        self._open: dict[str, _OpenShard] = {}
        self._damage: dict[str, str] = {}
        """By collection: why it was set aside."""
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recallog-index")

    async def create(self, collection: str, dimension: int, *, multilingual: bool = False) -> None:
        await self._run(self._create, collection, dimension, multilingual)

    async def collections(self) -> set[str]:
        return await self._run(collections_in, self._folder)

    async def drop(self, collection: str) -> None:
        await self._run(self._drop, collection)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As in `Engine`. Searches can run between slices.

        A point is complete once it has the checksum of its vectors. Payloads are written in between, so that a point
        that is complete in the shard, even after a power cut, has its payload.
        """
        await self._run(self._shard, collection)
        slices = [points[start : start + SLICE_POINTS] for start in range(0, len(points), SLICE_POINTS)]
        written = [await self._run(self._upsert, collection, each) for each in slices]
        if points:
            await self._run(self._write_payloads, collection, points, list(chain.from_iterable(written)))
            for each in written:
                await self._run(self._complete, collection, each)
            await self._run(self._sync, collection)

    async def delete(self, collection: str, ids: Collection[str]) -> None:
        await self._run(self._shard, collection)
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), DELETED_POINTS):
            await self._run(self._delete, collection, wanted[start : start + DELETED_POINTS])
        if wanted:
            await self._run(self._sync, collection)
            await self._run(self._delete_rows, collection, wanted)

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        return await self._run(self._search, collection, searches)

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        return await self._run(self._retrieve, collection, ids, payload, vectors)

    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        return await self._run(self._scroll, collection, after, limit, vectors)

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        return await self._run(self._count, collection, filter)

    async def size_bytes(self) -> int:
        """The blocks that the folder takes on disk, in bytes."""
        return await self._run(disk_bytes, self._folder)

    def cause_of_loss(self, collection: str) -> str:
        return self._damage.get(collection, "")

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await run_last(self._thread, self._close)

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        if self._closed:
            raise closed_error()
        run = copy_context().run  # the context of the call tells to which log its messages belong
        return await asyncio.get_running_loop().run_in_executor(self._thread, run, self._work, work, *arguments)

    def _work(self, work: Callable[..., Result], *arguments: Any) -> Result:
        with self._calling(), self._translated_errors():
            try:
                return work(*arguments)
            except BaseException as error:
                if not _is_of_library(error):
                    raise
                _log.info("a call of the semantic index in %s failed, and is repeated: %s", self._folder, error)
            self._close_shards()
            try:
                return work(*arguments)
            except BaseException as error:
                if _is_of_library(error) and not _is_of_system(error):
                    raise IndexDamaged(f"files of the index in {self._folder} are damaged: {error}") from error
                raise

    # The methods below run in the thread.

    def _create(self, collection: str, dimension: int, multilingual: bool) -> None:
        with self._hold_lock():
            path = self._path(collection)
            if path.exists():
                return
            self._delete_leftovers()
            self._check_space(OPENING_BYTES_MIN)
            new = self._folder / f"{collection}.new"
            private_files.make_folder(new)
            _create_with_small_log(new, dimension, multilingual=multilingual)
            shard = qdrant.EdgeShard.load(str(new))
            for field, index in _payload_indexes():
                shard.update(qdrant.UpdateOperation.create_field_index(field, index))
            shard.flush()
            shard.close()
            _use_small_pages(new)
            PointFile.create(new / _POINTS)
            private_files.restrict(new)
            # The library syncs what it writes, and not the names of all its files.
            for folder, _, _ in os.walk(new):
                sync(Path(folder))
            new.rename(path)
            sync(self._folder)

    def _drop(self, collection: str) -> None:
        path = self._path(collection)
        if not path.exists():
            return
        with self._hold_lock():
            self._delete_leftovers()
            self._close_shard(collection)
            path.rename(self._folder / f"{collection}.dropped")
            sync(self._folder)
            self._delete_leftovers()
            for aside in (*self._folder.glob("*.damaged"), self._folder.with_name(f"{self._folder.name}.damaged")):
                shutil.rmtree(aside, ignore_errors=True)  # an erasure drops the collections that have what it erases

    def _delete_leftovers(self) -> None:
        """Delete shards whose creation or deletion was interrupted."""
        for entry in self._folder.iterdir():
            if entry.suffix in (".new", ".dropped"):
                shutil.rmtree(entry)

    def _upsert(self, collection: str, points: Sequence[Point]) -> list[_Written]:
        """Write points without payloads. Returns what is written of each."""
        self._check_space(FREE_BYTES_MIN)
        found = self._shard(collection)
        found.counts.clear()
        found.shard.update(qdrant.UpdateOperation.upsert_points([_convert_point(point) for point in points]))
        found.unflushed_bytes += sum(map(_size, points))
        written = found.shard.retrieve([point.id for point in points], False, True)
        return [_Written.of(make_point(record)) for record in written]

    def _write_payloads(self, collection: str, points: Sequence[Point], written: Sequence[_Written]) -> None:
        self._check_space(FREE_BYTES_MIN)
        terms = {each.id: each.terms for each in written}
        self._shard(collection).file.write([(point.id, point.payload, terms[point.id]) for point in points])

    def _complete(self, collection: str, points: Sequence[_Written]) -> None:
        found = self._shard(collection)
        for each in points:
            fields = {_VECTORS_CHECKSUM: each.checksum}
            found.shard.update(qdrant.UpdateOperation.set_payload([each.id], fields))
        if found.unflushed_bytes >= FLUSH_BYTES:
            found.shard.flush()
            found.unflushed_bytes = 0

    def _delete(self, collection: str, ids: Sequence[str]) -> None:
        self._check_space(OPENING_BYTES_MIN)
        found = self._shard(collection)
        found.counts.clear()
        found.shard.update(qdrant.UpdateOperation.delete_points(list(ids)))
        found.unflushed_bytes += sum(map(len, ids))

    def _delete_rows(self, collection: str, ids: Sequence[str]) -> None:
        """Called after a sync: after a power cut, a point that the shard still has would be damaged without its row."""
        self._shard(collection).file.delete(ids)

    def _sync(self, collection: str) -> None:
        """Sync the write-ahead log, which the library leaves in the system's cache, so that it survives a power cut."""
        _sync_log(self._path(collection) / "wal")
        self._shard(collection)  # raises if the collection was deleted meanwhile

    def _search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        opened = self._shard(collection)
        wanted = [search for search in searches if not finds_nothing(search)]
        scored = [[(str(point.id), point.score) for point in found] for found in _answers(opened.shard, wanted)]
        described = [each for each, search in zip(scored, wanted, strict=True) if search.payload or search.with_sparse]
        fields = dict.fromkeys(chain.from_iterable(search.payload for search in wanted))
        ids = dict.fromkeys(id_ for id_, _ in chain.from_iterable(described))
        read = opened.file.read if TEXT_FIELDS.isdisjoint(fields) else opened.file.read_whole
        points = {point[0]: point for point in read(ids)}
        if missing := ids.keys() - points.keys():
            incomplete = _find_incomplete(opened.shard, missing)
            scored = [[each for each in found if each[0] not in incomplete] for found in scored]
        answers = iter(scored)
        return [[] if finds_nothing(search) else _hits(next(answers), search, points) for search in searches]

    def _retrieve(
        self, collection: str, ids: Sequence[str], payload: Collection[str] | None, vectors: bool
    ) -> dict[str, StoredPoint]:
        opened = self._shard(collection)
        records = opened.shard.retrieve(list(dict.fromkeys(ids)), [_VECTORS_CHECKSUM], vectors)
        return {point.id: point for point in self._stored_points(opened, records, payload, vectors)}

    def _scroll(self, collection: str, after: str | None, limit: int, vectors: bool) -> list[StoredPoint]:
        opened = self._shard(collection)
        found: list[StoredPoint] = []
        while len(found) < limit:  # incomplete points are left out
            # The library includes `after`, so that one more point is read, and `after` is left out.
            more = limit - len(found) + (0 if after is None else 1)
            request = qdrant.ScrollRequest(
                offset=after, limit=more, with_payload=[_VECTORS_CHECKSUM], with_vector=vectors
            )
            records = [record for record in opened.shard.scroll(request)[0] if str(record.id) != after]
            if not records:
                break
            found += self._stored_points(opened, records, None, vectors)
            after = str(records[-1].id)
        return found

    def _stored_points(
        self, opened: _OpenShard, records: Sequence[qdrant.Record], payload: Collection[str] | None, vectors: bool
    ) -> Iterator[StoredPoint]:
        """The points of records of the shard, in their order, without those whose writing was interrupted."""
        points = list(map(make_point, records))
        read = opened.file.read_whole([point.id for point in points])
        written = {id_: (fields, terms) for id_, fields, terms in read}
        for point in points:
            checksum = point.payload.get(_VECTORS_CHECKSUM)
            if checksum is None and point.id not in written:
                continue
            fields, terms = written.get(point.id, ({}, _NO_TERMS))
            damage = _find_damage(point, checksum, terms) if vectors else ""
            wanted = fields if payload is None else {name: fields[name] for name in payload if name in fields}
            yield replace(point, payload=wanted, damage=damage)

    def _count(self, collection: str, filter: Filter | None) -> int:  # noqa: A002
        found = self._shard(collection)
        if filter is None:
            return found.shard.count(qdrant.CountRequest(exact=True))
        key = msgspec.json.encode(filter)
        if key not in found.counts:
            found.counts[key] = found.shard.count(qdrant.CountRequest(exact=True, filter=_Filters().of(filter)))
        return found.counts[key]

    def _check_space(self, bytes_min: int) -> None:
        """Raise `IndexUnavailable` unless this many bytes are free, and some can be taken: a quota may be reached."""
        if not has_room(self._folder, bytes_min):
            raise IndexUnavailable(
                f"the disk is full: less than {bytes_min >> 20} MiB are free for the semantic index in {self._folder}. "
                "Free some space, and the index continues"
            )

    def _close(self) -> None:
        with self._calling():
            self._close_shards()

    def _close_shards(self) -> None:
        for collection in [*self._open]:
            self._close_shard(collection)

    def _close_shard(self, collection: str) -> None:
        """Close a collection's files. After an error of the library, that may fail too."""
        found = self._open.pop(collection, None)
        try:
            if found is not None:
                found.file.close()
                found.shard.close()
                private_files.restrict(self._path(collection))
        except BaseException as error:
            if not _is_of_library(error):
                raise
            _log.info("the semantic index %s was closed with an error: %s", self._path(collection), error)

    def _shard(self, collection: str) -> _OpenShard:
        path = self._path(collection)
        found = self._open.get(collection)
        try:
            inode = path.stat().st_ino
        except FileNotFoundError:
            inode = -1
        if found is not None and found.inode == inode:
            return found
        self._close_shard(collection)
        if inode == -1:
            raise self._make_lost_error(collection)
        self._check_space(OPENING_BYTES_MIN)
        try:
            shard = _load_shard(path)
            file = self._open_file(shard, path / _POINTS)
        except IndexDamaged as error:
            self._set_aside(collection, str(error))
            raise self._make_lost_error(collection) from error
        private_files.restrict(path)
        opened = self._open[collection] = _OpenShard(shard, inode, file)
        return opened

    def _open_file(self, shard: qdrant.EdgeShard, path: Path) -> PointFile:
        """The file with the payloads of a shard. Older versions stored payloads in the shard: they are moved."""
        try:
            if not path.exists():
                PointFile.create(path, _payloads_in(shard))
            return PointFile(path, _KEPT)
        except BaseException:
            shard.close()
            raise

    def _make_lost_error(self, collection: str) -> IndexLost:
        cause = self._damage.get(collection) or f"the files of the semantic index {self._path(collection)} are missing"
        return IndexLost(f"{cause}; it is rebuilt. Try again")

    def _set_aside(self, collection: str, cause: str) -> None:
        """Rename a shard that cannot be opened, in place of the last one. Its collection is then lost."""
        path = self._path(collection)
        for earlier in self._folder.glob("*.damaged"):
            shutil.rmtree(earlier, ignore_errors=True)
        path.rename(path.with_name(f"{collection}.damaged"))
        sync(self._folder)
        self._damage[collection] = cause
        _log.warning("%s. It is set aside as %s.damaged, and built again from the ledger", cause, path)

    def _path(self, collection: str) -> Path:
        check_name(collection)
        return self._folder / collection

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        private_files.make_folder(self._folder)
        try:
            with private_files.hold_lock(self._folder / ".lock", limits.DEADLINE_SECONDS):
                yield
        except private_files.LockHeld as error:
            raise IndexUnavailable(
                f"another process has been creating or deleting a semantic index in {self._folder} for "
                f"{limits.DEADLINE_SECONDS:g} s; try again when it is done"
            ) from error

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except RecallogError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not _is_of_library(error):
                raise
            raise IndexUnavailable(f"a call of the semantic index in {self._folder} failed: {error}") from error


def _is_of_library(error: BaseException) -> bool:
    """Whether the library raised it: instances of `Exception` itself, and `PanicException` for damaged files."""
    return type(error) is Exception or type(error).__name__ == "PanicException"


def _is_of_system(error: BaseException) -> bool:
    """Whether the system refused something: the files may be whole."""
    return any(part in str(error).lower() for part in _NOT_DAMAGE)


def _load_shard(path: Path) -> qdrant.EdgeShard:
    """The opened shard. Raises `IndexDamaged` if its files are damaged, else `IndexUnavailable`."""
    try:
        return qdrant.EdgeShard.load(str(path))
    except BaseException as error:
        if not _is_of_library(error):
            raise
        if "WouldBlock" in str(error):
            raise IndexUnavailable(
                f"the semantic index {path} is open in another process: close that one, since only one can use it"
            ) from error
        if _is_of_system(error):
            raise IndexUnavailable(f"the semantic index {path} cannot be opened: {error}") from error
        raise IndexDamaged(f"files of the index in {path} are damaged: {error}") from error


def _payloads_in(shard: qdrant.EdgeShard) -> Iterator[StoredFields]:
    """The payloads and terms of the points of a shard of an older version. Raises `IndexDamaged` if it is not one."""
    after = None
    while True:
        request = qdrant.ScrollRequest(offset=after, limit=_MOVED_POINTS, with_payload=True, with_vector=["terms"])
        records, after = shard.scroll(request)
        for record in records:
            payload = dict(record.payload or {})
            payload.pop(_VECTORS_CHECKSUM, None)
            if payload.keys() <= {*_FILTERED}:
                raise IndexDamaged(f"{_POINTS} of an index, which has its payloads, is missing")
            yield str(record.id), payload, terms_of(record) or _NO_TERMS
        if after is None:
            return


def _find_incomplete(shard: qdrant.EdgeShard, ids: Collection[str]) -> set[str]:
    """The points among `ids` whose writing was interrupted, or goes on: their commit is repeated, or not complete."""
    records = shard.retrieve(list(ids), [_VECTORS_CHECKSUM], False)
    return {str(record.id) for record in records if _VECTORS_CHECKSUM not in (record.payload or {})}


def _create_with_small_log(folder: Path, dimension: int, *, multilingual: bool) -> None:
    """Create a shard whose write-ahead log consists of files of `LOG_FILE_BYTES`.

    The library takes the size from the shard's configuration file, but has no parameter for it.
    """
    qdrant.EdgeShard.create(str(folder), _config(dimension, multilingual=multilingual)).close()
    file = folder / "edge_config.json"
    options = {"segment_capacity": LOG_FILE_BYTES, "segment_queue_len": 0, "retain_closed": 1}
    file.write_text(json.dumps({**json.loads(file.read_text()), "wal_options": options}))
    shutil.rmtree(folder / "wal")  # empty; loading the shard creates it with these options


def _use_small_pages(folder: Path) -> None:
    """Make the indexes of the fields of an empty shard grow in steps of `FIELD_PAGE_BYTES`.

    The library has no parameter for it either. The bits of a page's blocks, and 6 bytes about each of its regions, are
    in files of their own.
    """
    for file in folder.glob("segments/*/payload_index/*/config.json"):
        options = json.loads(file.read_text())
        blocks = FIELD_PAGE_BYTES // options["block_size_bytes"]
        sizes = {
            "page_0.dat": FIELD_PAGE_BYTES,
            "tracker.dat": FIELD_TRACKER_BYTES,
            "bitmask.dat": blocks // 8,
            "gaps.dat": blocks // options["region_size_blocks"] * 6,
        }
        for name, size in sizes.items():
            with file.with_name(name).open("r+b") as resized:
                resized.truncate(size)
                os.fsync(resized.fileno())
        file.write_text(json.dumps({**options, "page_size_bytes": FIELD_PAGE_BYTES}))
        sync(file)


def _sync_log(folder: Path) -> None:
    """Sync all files of a write-ahead log. A thread of the library renames them meanwhile."""
    while folder.exists():
        with suppress(FileNotFoundError):
            for path in (*folder.iterdir(), folder):
                sync(path)
            return


def _config(dimension: int, *, multilingual: bool) -> qdrant.EdgeConfig:
    # The embedder's vectors have length 1, so that the dot product is the cosine. 8 bits per number change it by 1e-3.
    dense = qdrant.EdgeVectorParams(
        size=dimension,
        distance=qdrant.Distance.Dot,
        datatype=qdrant.VectorStorageDatatype.Turbo8,
        multivector_config=qdrant.MultiVectorConfig(qdrant.MultiVectorComparator.MaxSim),
        # Otherwise the library reads whole files when it opens them, two of 32 MB of which few points use a tenth.
        memory=qdrant.Memory.Cold,
    )
    terms = qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)
    # One thread: there is one segment, and the library's default of at least eight only costs switches between them.
    vectors = dict.fromkeys((DENSE, MULTILINGUAL) if multilingual else (DENSE,), dense)
    return qdrant.EdgeConfig(vectors=vectors, sparse_vectors={"terms": terms}, max_search_threads=1)


def _payload_indexes() -> "Iterator[tuple[str, qdrant.PayloadSchemaParams]]":  # defined only in the stubs
    for keyword in KEYWORD_FIELDS:
        yield keyword, qdrant.KeywordIndexParams(is_tenant=keyword == "space")
    for integer in INTEGER_FIELDS:
        yield integer, qdrant.IntegerIndexParams(lookup=False, range=True)
    for number in FLOAT_FIELDS:
        yield number, qdrant.FloatIndexParams()


def _size(point: Point) -> int:
    """The approximate size of a point in the write-ahead log, in bytes."""
    return point.dense.nbytes + point.multilingual.nbytes + 8 * len(point.sparse.indices)


def _convert_point(point: Point) -> qdrant.Point:
    vectors = {"terms": _sparse_vector(point.sparse), **dense_vectors(point)}
    return qdrant.Point(point.id, vectors, {name: point.payload[name] for name in _FILTERED if name in point.payload})


def _find_damage(point: StoredPoint, checksum: int | None, terms: Sparse) -> str:
    """What is wrong with the vectors of a point, and with its `terms` in the file, in words; "" if nothing.

    A point has no checksum if its writing was interrupted: its commit is repeated.
    """
    if checksum is None:
        return ""
    if checksum != _vectors_checksum(point):
        return "its vectors differ from their checksum"
    stored = point.sparse or _NO_TERMS
    same = [*terms.indices] == [*stored.indices] and [*terms.values] == [*stored.values]
    return "" if same else "its terms differ from those of the shard"


def _vectors_checksum(point: StoredPoint) -> int:
    dense = np.empty(0, np.float32) if point.dense is None else np.ascontiguousarray(point.dense, np.float32)
    sparse = point.sparse or _NO_TERMS
    checksum = zlib.crc32(dense.tobytes())
    if point.multilingual is not None:
        checksum = zlib.crc32(np.ascontiguousarray(point.multilingual, np.float32).tobytes(), checksum)
    checksum = zlib.crc32(np.asarray(sparse.indices, np.uint32).tobytes(), checksum)
    return zlib.crc32(np.asarray(sparse.values, np.float32).tobytes(), checksum)


class _Filters:
    """The filters of one batch. Searches share filters: one with hundreds of ids takes 1 ms to build."""

    def __init__(self) -> None:
        self._built: list[tuple[Filter, qdrant.Filter]] = []

    def of(self, filter: Filter) -> qdrant.Filter:  # noqa: A002
        for known, built in self._built:
            if known == filter:
                return built
        must, should = [], []
        must_not: list[qdrant.ConditionType] = []
        for condition in conditions(filter):
            if isinstance(condition, NotBetween):
                excluded = qdrant.RangeFloat(gt=condition.above, lte=condition.at_most)
                must_not.append(qdrant.FieldCondition(condition.field, range=excluded))
            elif isinstance(condition, NoVector):
                must_not.append(qdrant.HasVectorCondition(condition.name))
            elif isinstance(condition, AnyOf) and condition.field == "readers" and condition.values:
                # Equivalent to a list of values, but 10 % faster for vectors and twice as fast for terms.
                should = [_condition(AnyOf(condition.field, [value])) for value in condition.values]
            else:
                must.append(_condition(condition))
        built = qdrant.Filter(must=must, should=should, must_not=must_not)
        self._built.append((filter, built))
        return built


def _answers(shard: qdrant.EdgeShard, searches: Sequence[Search]) -> list[list[qdrant.ScoredPoint]]:
    """The points that each search finds.

    A search by vector is first made among the nearest points of its space, and repeated among all of them if too few of
    these pass its filter. The result is the same: in a space of 100,000 points the library takes 7 ms to score all
    points, and 15 ms more to check who may see them.
    """
    filters = _Filters()
    narrowed = _narrow_searches(shard, searches)
    answers = _query(shard, [_request(search, filters) for search in narrowed])
    again = [
        number
        for number, (search, first) in enumerate(zip(searches, narrowed, strict=True))
        if first is not search and len(answers[number]) < search.limit
    ]
    for number, points in zip(again, _query(shard, [_request(searches[each], filters) for each in again]), strict=True):
        answers[number] = points
    return answers


def _narrow_searches(shard: qdrant.EdgeShard, searches: Sequence[Search]) -> list[Search]:
    """The searches, those by vector restricted to the nearest points of their spaces.

    Searches for one vector, as for the entries of each tier, share these points: all points are scored once.
    """
    wide: dict[tuple[bytes, str, tuple[str, ...]], dict[int, Filter]] = {}
    for number, search in enumerate(searches):
        if search.dense is not None and search.filter is not None and search.filter.ids is None:
            key = search.dense.tobytes(), vector_name(search), tuple(spaces(search.filter))
            shared = wide.setdefault(key, {})
            shared[number] = search.filter
    requests = [
        qdrant.QueryRequest(
            limit=NEAREST_FACTOR * sum(searches[number].limit for number in shared),
            query=_nearest(np.frombuffer(dense, np.float32), using),
            filter=qdrant.Filter(must=[_condition(AnyOf("space", list(among)))]),
        )
        for (dense, using, among), shared in wide.items()
    ]
    narrowed = list(searches)
    for shared, points in zip(wide.values(), _query(shard, requests), strict=True):
        ids = [str(point.id) for point in points]
        for number, wanted in shared.items():
            narrowed[number] = replace(searches[number], filter=replace(wanted, ids=ids))
    return narrowed


def _query(shard: qdrant.EdgeShard, requests: list[qdrant.QueryRequest]) -> list[list[qdrant.ScoredPoint]]:
    return shard.query_batch(qdrant.QueryBatchRequest(requests)) if requests else []


def _nearest(dense: NDArray[np.float32], using: str) -> qdrant.Query:
    return qdrant.Query.Nearest([dense.tolist()], using=using)


def _request(search: Search, filters: _Filters) -> qdrant.QueryRequest:
    query, idf = None, None
    if search.dense is not None:
        query = _nearest(search.dense, vector_name(search))
    elif search.sparse is not None:
        query = qdrant.Query.Nearest(_sparse_vector(search.sparse), using="terms")
        idf = None if search.corpus is None else qdrant.IdfParams(corpus=filters.of(search.corpus))
    return qdrant.QueryRequest(
        limit=search.limit,
        query=query,
        filter=None if search.filter is None else filters.of(search.filter),
        params=qdrant.SearchParams(exact=search.exact, idf=idf),
        with_payload=False,
        with_vector=False,
    )


def _hits(scored: Sequence[tuple[str, float]], search: Search, points: Mapping[str, StoredFields]) -> list[Hit]:
    """The hits of a search. A point that cannot be read has only its score."""
    if not search.payload and not search.with_sparse:
        return [Hit(id_, score) for id_, score in scored]
    found = [(score, points.get(id_, (id_, {}, _NO_TERMS))) for id_, score in scored]
    with_payload, with_sparse = bool(search.payload), search.with_sparse
    return [
        Hit(id_, score, payload if with_payload else {}, terms if with_sparse else None)
        for score, (id_, payload, terms) in found
    ]


def _condition(condition: Required) -> "qdrant.ConditionType":  # defined only in the stubs
    match condition:
        case AnyOf(field, [value]):  # cheaper than a list of one value
            return qdrant.FieldCondition(field, match=qdrant.MatchValue(value))
        case AnyOf(field, values):
            return qdrant.FieldCondition(field, match=qdrant.MatchAny(values))
        case NoneOf(field, values):
            return qdrant.FieldCondition(field, match=qdrant.MatchExcept(values))
        case Between(field, at_least, below, at_most):
            # Numbers go as floats, which are exact up to 2**53: offsets, and microseconds until the year 2255.
            return qdrant.FieldCondition(field, range=qdrant.RangeFloat(gte=at_least, lt=below, lte=at_most))
        case IdIn(ids):
            return qdrant.HasIdCondition(set(ids))


def _sparse_vector(sparse: Sparse) -> qdrant.SparseVector:
    return qdrant.SparseVector(list(sparse.indices), list(sparse.values))
