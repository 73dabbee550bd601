"""The engine in this process: collections in a folder, with `qdrant-edge-py`, the engine of a Qdrant server as a
library.

<folder>/<collection>/          a complete shard
<folder>/<collection>.new/      a shard that is being created; after a crash it is deleted
<folder>/<collection>.dropped/  a shard that is being deleted
<folder>/<collection>.damaged/  the last shard that could not be opened
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

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
from recallog_projections.index.engines.kept_points import KeptBytes, KeptPoint, KeptPoints, ReadPoint
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

NEAREST_FACTOR = 4
"""How many times the limits of the searches by a vector are first searched without their filters."""

FREE_BYTES_MIN = 256 * 1024 * 1024
"""The space that must be free to write points. The library writes through memory maps: on a full disk the system kills
the process (SIGBUS)."""

READ_AHEAD_BYTES_MAX = 2 * 1024 * 1024 * 1024
"""Payloads, which include token vectors, of about 500,000 memories."""

_ADVISED_BYTES = 128 * 1024
"""Per call of posix_fadvise; of a longer range Linux reads no more than the disk's read-ahead."""
_READ_AHEAD = ("payload_storage",)

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

_UNREADABLE = KeptPoint({}, None)
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
    points: KeptPoints
    unflushed_bytes: int = FLUSH_BYTES
    """The first write after opening flushes, since the log may hold points from before a crash."""
    counts: dict[bytes, int] = field(default_factory=dict)
    """Numbers of points by filter, as JSON, since the last write: counting 100,000 points takes 14 ms."""

    def forget(self, ids: Iterable[str]) -> None:
        """Forget what is known of points that are written or deleted next, whether or not that succeeds."""
        self.points.forget(ids)
        self.counts.clear()


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
        """As in `Engine`. Searches can run between slices; a crash leaves complete slices."""
        await self._run(self._shard, collection)
        for start in range(0, len(points), SLICE_POINTS):
            await self._run(self._upsert, collection, points[start : start + SLICE_POINTS])
        if points:
            await self._run(self._sync, collection)

    async def delete(self, collection: str, ids: Collection[str]) -> None:
        await self._run(self._shard, collection)
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), DELETED_POINTS):
            await self._run(self._delete, collection, wanted[start : start + DELETED_POINTS])
        if wanted:
            await self._run(self._sync, collection)

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
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work, *arguments)

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

    def _delete_leftovers(self) -> None:
        """Delete shards whose creation or deletion was interrupted."""
        for entry in self._folder.iterdir():
            if entry.suffix in (".new", ".dropped"):
                shutil.rmtree(entry)

    def _upsert(self, collection: str, points: Sequence[Point]) -> None:
        self._check_space(FREE_BYTES_MIN)
        found = self._shard(collection)
        found.forget(point.id for point in points)
        found.shard.update(qdrant.UpdateOperation.upsert_points([_convert_point(point) for point in points]))
        for record in found.shard.retrieve([point.id for point in points], False, True):
            fields = {_VECTORS_CHECKSUM: _vectors_checksum(make_point(record))}
            found.shard.update(qdrant.UpdateOperation.set_payload([record.id], fields))
        found.unflushed_bytes += sum(map(_size, points))
        if found.unflushed_bytes >= FLUSH_BYTES:
            found.shard.flush()
            found.unflushed_bytes = 0

    def _delete(self, collection: str, ids: Sequence[str]) -> None:
        self._check_space(OPENING_BYTES_MIN)
        found = self._shard(collection)
        found.forget(ids)
        found.shard.update(qdrant.UpdateOperation.delete_points(list(ids)))
        found.unflushed_bytes += sum(map(len, ids))

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
        points = opened.points.find((id_ for id_, _ in chain.from_iterable(described)), fields)
        answers = iter(scored)
        return [[] if finds_nothing(search) else _hits(next(answers), search, points) for search in searches]

    def _read_points(self, shard: qdrant.EdgeShard, ids: list[str], fields: list[str]) -> list[ReadPoint]:
        records = shard.retrieve([*ids], fields or False, ["terms"])
        return [(str(record.id), record.payload or {}, terms_of(record)) for record in records]

    def _retrieve(
        self, collection: str, ids: Sequence[str], payload: Collection[str] | None, vectors: bool
    ) -> dict[str, StoredPoint]:
        shard = self._shard(collection).shard
        wanted = None if payload is None else [*payload, *([_VECTORS_CHECKSUM] if vectors else [])]
        with_payload: bool | list[str] = True if wanted is None else wanted or False
        records = shard.retrieve(list(dict.fromkeys(ids)), with_payload, vectors)
        return {str(record.id): _strip_check(make_point(record), vectors) for record in records}

    def _scroll(self, collection: str, after: str | None, limit: int, vectors: bool) -> list[StoredPoint]:
        shard = self._shard(collection).shard
        # The library includes `after`, so that one more point is read, and `after` is left out.
        more = 0 if after is None else 1
        request = qdrant.ScrollRequest(offset=after, limit=limit + more, with_payload=True, with_vector=vectors)
        records, _ = shard.scroll(request)
        return [_strip_check(make_point(record), vectors) for record in records if str(record.id) != after][:limit]

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
        except IndexDamaged as error:
            self._set_aside(collection, str(error))
            raise self._make_lost_error(collection) from error
        private_files.restrict(path)
        opened = _OpenShard(shard, inode, KeptPoints(partial(self._read_points, shard), _KEPT))
        self._open[collection] = opened
        with suppress(OSError):  # reading ahead is optional, and threads of the library rename and delete files
            _read_ahead(path / "segments")
        return opened

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


def _read_ahead(folder: Path) -> None:
    """Have the system read the files into its cache, since the library reads them in many small pieces.

    Opening a collection drops its cached pages. Without reading ahead the first queries took ten times as long.
    """
    if not hasattr(os, "posix_fadvise"):  # macOS
        return
    parts = (path for part in _READ_AHEAD for path in sorted(folder.glob(f"*/{part}/**/*")) if path.is_file())
    left = READ_AHEAD_BYTES_MAX
    for path in parts:
        with path.open("rb") as file:
            for start, length in _written_parts(file.fileno()):
                until = start + min(length, left)
                for each in range(start, until, _ADVISED_BYTES):
                    os.posix_fadvise(file.fileno(), each, _ADVISED_BYTES, os.POSIX_FADV_WILLNEED)
                left -= until - start


def _written_parts(file: int) -> Iterator[tuple[int, int]]:
    """The parts of a sparse file that contain data, as (start, length) in bytes."""
    end = 0
    with suppress(OSError):  # after the last part
        while True:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = os.lseek(file, start, os.SEEK_HOLE)
            yield start, end - start


def _create_with_small_log(folder: Path, dimension: int, *, multilingual: bool) -> None:
    """Create a shard whose write-ahead log consists of files of `LOG_FILE_BYTES`.

    The library takes the size from the shard's configuration file, but has no parameter for it.
    """
    qdrant.EdgeShard.create(str(folder), _config(dimension, multilingual=multilingual)).close()
    file = folder / "edge_config.json"
    options = {"segment_capacity": LOG_FILE_BYTES, "segment_queue_len": 0, "retain_closed": 1}
    file.write_text(json.dumps({**json.loads(file.read_text()), "wal_options": options}))
    shutil.rmtree(folder / "wal")  # empty; loading the shard creates it with these options


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
    vectors = point.dense.nbytes + point.multilingual.nbytes
    return vectors + sum(len(value) for value in point.payload.values() if isinstance(value, str))


def _convert_point(point: Point) -> qdrant.Point:
    vectors = {"terms": _sparse_vector(point.sparse), **dense_vectors(point)}
    return qdrant.Point(point.id, vectors, dict(point.payload))


def _strip_check(point: StoredPoint, vectors: bool) -> StoredPoint:
    """The point without the field of this adapter; if it was read with its vectors, with what is wrong with them.

    A point has no checksum if its writing was interrupted: its commit is repeated.
    """
    payload = dict(point.payload)
    checksum = payload.pop(_VECTORS_CHECKSUM, None)
    wrong = vectors and checksum is not None and checksum != _vectors_checksum(point)
    return replace(point, payload=payload, damage="its vectors differ from their checksum" if wrong else "")


def _vectors_checksum(point: StoredPoint) -> int:
    dense = np.empty(0, np.float32) if point.dense is None else np.ascontiguousarray(point.dense, np.float32)
    sparse = point.sparse or Sparse((), ())
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


def _hits(scored: Sequence[tuple[str, float]], search: Search, points: Mapping[str, KeptPoint]) -> list[Hit]:
    """The hits of a search. A point that cannot be read has only its score."""
    if not search.payload and not search.with_sparse:
        return [Hit(id_, score) for id_, score in scored]
    found = [(id_, score, points.get(id_, _UNREADABLE)) for id_, score in scored]
    with_payload, with_sparse = bool(search.payload), search.with_sparse
    return [
        Hit(id_, score, point.payload if with_payload else {}, point.sparse if with_sparse else None)
        for id_, score, point in found
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
