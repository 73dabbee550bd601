"""Collections in this process and its folder: `qdrant-edge-py`, the engine of a Qdrant server as a library.

<folder>/<collection>/          a shard, whole and in use
<folder>/<collection>.new/      one that is being made; left behind by a crash, it is thrown away
<folder>/<collection>.dropped/  one that is being deleted
<folder>/.lock                  held while shards are made and deleted

No graph is built (only `optimize` would), so that every search is exact: 100,000 points of a space take some 25 ms.
Every call of the library keeps the whole process waiting, which is why points are written in small slices.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as qdrant
from filelock import FileLock, Timeout

from recallog_projections.index.engines.conditions import (
    AnyOf,
    Between,
    OneOf,
    conditions,
    finds_nothing,
    hit,
    stored,
)
from recallog_projections.index.engines.engine import (
    INTEGER_FIELDS,
    KEYWORD_FIELDS,
    Engine,
    Filter,
    Hit,
    Point,
    Search,
    Shape,
    Sparse,
    Stored,
)
from recallog_schemas import limits
from recallog_schemas.errors import IndexLost, IndexUnavailable, InvariantViolation

SLICE_POINTS = 50
"""Points of one call: 15 to 30 ms on a busy 2-core machine, in which nothing else of the process runs."""

FLUSH_POINTS = 2_000
"""Points after which what the write-ahead log holds goes into the shard's own files.

A flush takes 0.3 to 0.6 s however little there is to do. Without any, the log grows for ever (30 KB a point), and
opening after a crash writes all its points again.
"""

FREE_BYTES_MIN = 256 * 1024 * 1024
"""The library writes through memory maps: on a full disk, the system kills the process instead of failing a call."""

READ_AHEAD_BYTES_MAX = 2 * 1024 * 1024 * 1024
"""Of vectors of word-pieces and payloads: some 300,000 memories."""

_ADVISED_BYTES = 128 * 1024
"""Of one piece of advice; of a longer one Linux takes no more than the disk's read-ahead."""
_READ_AHEAD = ("vector_storage-token_vectors", "payload_storage")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")

Result = TypeVar("Result")


@dataclass(slots=True)
class _Open:
    """A shard in use."""

    shard: qdrant.EdgeShard
    inode: int
    """Of its folder, to see that it was deleted, or is another one by now."""
    unflushed_points: int = FLUSH_POINTS
    """What a crash has left in the log is unknown, so that the first write after opening flushes."""


def disk_bytes(folder: Path) -> int:
    """What a folder takes on the disk: its files have holes."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # a shard's own threads rename and delete
            size += path.lstat().st_blocks * 512
    return size


def collections_in(folder: Path) -> set[str]:
    """The names of a folder's collections. Any process may look, whoever has them open."""
    if not folder.exists():
        return set()
    return {entry.name for entry in folder.iterdir() if entry.is_dir() and _NAME.fullmatch(entry.name)}


class EdgeEngine(Engine):
    """The collections of one folder, which one process uses at a time.

    Every call may raise `IndexUnavailable`: another process has the collection open, the disk is full, or its files are
    damaged. What `upsert` wrote survives `kill -9` and, since the write-ahead log is synced, a power cut.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Open] = {}
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="recallog-index")

    async def create(self, collection: str, shape: Shape) -> None:
        await self._run(self._create, collection, shape)

    async def collections(self) -> set[str]:
        return await self._run(collections_in, self._folder)

    async def drop(self, collection: str) -> None:
        await self._run(self._drop, collection)

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        """As in `Engine`. Searches get their turn between slices; a crash in between leaves whole slices."""
        await self._run(self._shard, collection)
        for start in range(0, len(points), SLICE_POINTS):
            await self._run(self._upsert, collection, points[start : start + SLICE_POINTS])
        if points:
            await self._run(self._sync, collection)

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        return await self._run(self._search, collection, searches)

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, Stored]:
        return await self._run(self._retrieve, collection, ids, payload, vectors)

    async def scroll(self, collection: str, after: str | None, limit: int, *, vectors: bool = False) -> list[Stored]:
        return await self._run(self._scroll, collection, after, limit, vectors)

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        return await self._run(self._count, collection, filter)

    async def size_bytes(self) -> int:
        """The blocks that the folder's files take; they are sparse, and longer than that."""
        return await self._run(disk_bytes, self._folder)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    async def _run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        if self._closed:
            raise IndexUnavailable("the memory is closed, and with it its semantic index; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work, *arguments)

    def _work(self, work: Callable[..., Result], *arguments: Any) -> Result:
        with self._named_errors():
            return work(*arguments)

    # What follows runs in the thread.

    def _create(self, collection: str, shape: Shape) -> None:
        with self._locked():
            ordinal = self._place(collection)
            if ordinal.exists():
                return
            self._clear()
            making = self._folder / f"{collection}.new"
            making.mkdir()
            shard = qdrant.EdgeShard.create(str(making), _config(shape))
            for field in KEYWORD_FIELDS:
                keyword = qdrant.KeywordIndexParams(is_tenant=field == "space")
                shard.update(qdrant.UpdateOperation.create_field_index(field, keyword))
            for field in INTEGER_FIELDS:
                integer = qdrant.IntegerIndexParams(lookup=False, range=True)
                shard.update(qdrant.UpdateOperation.create_field_index(field, integer))
            shard.flush()
            shard.close()
            making.rename(ordinal)
            _sync_file(self._folder)

    def _drop(self, collection: str) -> None:
        ordinal = self._place(collection)
        if not ordinal.exists():
            return
        with self._locked():
            self._clear()
            if found := self._open.pop(collection, None):
                found.shard.close()
            ordinal.rename(self._folder / f"{collection}.dropped")
            _sync_file(self._folder)
            self._clear()

    def _clear(self) -> None:
        """Throw away what was being made or deleted when a process died."""
        for entry in self._folder.iterdir():
            if entry.suffix in (".new", ".dropped"):
                shutil.rmtree(entry)

    def _upsert(self, collection: str, points: Sequence[Point]) -> None:
        if shutil.disk_usage(self._folder).free < FREE_BYTES_MIN:
            raise IndexUnavailable(
                f"less than {FREE_BYTES_MIN >> 20} MiB are left on the disk of {self._folder}: free some of it"
            )
        found = self._shard(collection)
        found.shard.update(qdrant.UpdateOperation.upsert_points([_written(point) for point in points]))
        found.unflushed_points += len(points)
        if found.unflushed_points >= FLUSH_POINTS:
            found.shard.flush()
            found.unflushed_points = 0

    def _sync(self, collection: str) -> None:
        """Make what was written outlast a power cut: the library itself leaves its log to the system's cache."""
        _sync_log(self._place(collection) / "wal")
        self._shard(collection)  # or the collection was deleted meanwhile

    def _search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        shard = self._shard(collection).shard
        asked = [number for number, search in enumerate(searches) if not finds_nothing(search)]
        found: list[list[Hit]] = [[] for _ in searches]
        if asked:
            filters = _Filters()
            requests = [_request(searches[number], filters) for number in asked]
            answers = shard.query_batch(qdrant.QueryBatchRequest(requests))
            for number, scored in zip(asked, answers, strict=True):
                found[number] = _hits(scored, searches[number])
        return found

    def _retrieve(
        self, collection: str, ids: Sequence[str], payload: Collection[str] | None, vectors: bool
    ) -> dict[str, Stored]:
        shard = self._shard(collection).shard
        with_payload: bool | list[str] = True if payload is None else list(payload) or False
        records = shard.retrieve(list(dict.fromkeys(ids)), with_payload, vectors)
        return {str(record.id): stored(record) for record in records}

    def _scroll(self, collection: str, after: str | None, limit: int, vectors: bool) -> list[Stored]:
        shard = self._shard(collection).shard
        # The library begins with the id it is given, so that one more is read, and that one left out.
        more = 0 if after is None else 1
        request = qdrant.ScrollRequest(offset=after, limit=limit + more, with_payload=True, with_vector=vectors)
        records, _ = shard.scroll(request)
        return [stored(record) for record in records if str(record.id) != after][:limit]

    def _count(self, collection: str, filter: Filter | None) -> int:  # noqa: A002
        shard = self._shard(collection).shard
        return shard.count(qdrant.CountRequest(exact=True, filter=None if filter is None else _Filters().of(filter)))

    def _close(self) -> None:
        while self._open:
            with self._named_errors():
                self._open.popitem()[1].shard.close()

    def _shard(self, collection: str) -> _Open:
        ordinal = self._place(collection)
        found = self._open.get(collection)
        try:
            inode = ordinal.stat().st_ino
        except FileNotFoundError:
            inode = -1
        if found is not None and found.inode == inode:
            return found
        if found is not None:
            del self._open[collection]
            found.shard.close()
        if inode == -1:
            raise IndexLost(f"the semantic index {ordinal} is not there; it is built anew")
        opened = _Open(_loaded(ordinal), inode)
        self._open[collection] = opened
        with suppress(OSError):  # it is advice, and the library's own threads rename and delete
            _read_ahead(ordinal / "segments")
        return opened

    def _place(self, collection: str) -> Path:
        if not _NAME.fullmatch(collection):
            raise InvariantViolation(f"{collection!r} is no collection's name: 1 to 128 letters, digits, _ and -")
        return self._folder / collection

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self._folder / ".lock", timeout=limits.LOCK_WAIT_SECONDS):
                yield
        except Timeout as error:
            raise IndexUnavailable(
                f"another process has been making or deleting a semantic index in {self._folder} for "
                f"{limits.LOCK_WAIT_SECONDS:g} s; try again when it is done"
            ) from error

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        """The library raises bare `Exception`s, and a panic where it meets damaged files."""
        try:
            yield
        except (IndexUnavailable, InvariantViolation):
            raise
        except Exception as error:
            raise IndexUnavailable(f"the semantic index in {self._folder} did not do as asked: {error}") from error
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise IndexUnavailable(f"the semantic index in {self._folder} failed: {error}") from error


def _loaded(ordinal: Path) -> qdrant.EdgeShard:
    try:
        return qdrant.EdgeShard.load(str(ordinal))
    except Exception as error:
        if "WouldBlock" in str(error):
            raise IndexUnavailable(
                f"the semantic index {ordinal} is open elsewhere: one process uses it at a time; close the other"
            ) from error
        raise IndexUnavailable(
            f"the semantic index {ordinal} cannot be opened: {error}. Delete that folder, and it is built anew"
        ) from error


def _read_ahead(folder: Path) -> None:
    """Have the system read into its cache what the library reads piece by piece, a disk's wait for each memory.

    When it opens a collection, the library drops what was cached of it: the first questions took ten times as long.
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
    """The parts of a sparse file that hold anything, as start and length."""
    end = 0
    with suppress(OSError):  # behind the last one
        while True:
            start = os.lseek(file, end, os.SEEK_DATA)
            end = os.lseek(file, start, os.SEEK_HOLE)
            yield start, end - start


def _sync_log(folder: Path) -> None:
    """Sync all files of a write-ahead log, whose own thread renames them as they are begun and full."""
    while folder.exists():
        with suppress(FileNotFoundError):
            for path in (*folder.iterdir(), folder):
                _sync_file(path)
            return


def _sync_file(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _config(shape: Shape) -> qdrant.EdgeConfig:
    # The embedder's vectors are of length 1, which makes the dot product the cosine.
    vectors = {"dense": qdrant.EdgeVectorParams(size=shape.dimension, distance=qdrant.Distance.Dot)}
    if shape.token_vectors:
        # Dot and not Cosine, which would take a question's weights off its pieces. 8 bits a number: half of float16's
        # disk, and an error of 1e-3 in a sum over eight pieces. Cold: read where asked for, not all when opened.
        vectors["token_vectors"] = qdrant.EdgeVectorParams(
            size=shape.dimension,
            distance=qdrant.Distance.Dot,
            multivector_config=qdrant.MultiVectorConfig(qdrant.MultiVectorComparator.MaxSim),
            datatype=qdrant.VectorStorageDatatype.Turbo8,
            hnsw_config=qdrant.HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=10_000),
            memory=qdrant.Memory.Cold,
        )
    terms = qdrant.EdgeSparseVectorParams(modifier=qdrant.Modifier.Idf)
    return qdrant.EdgeConfig(vectors=vectors, sparse_vectors={"terms": terms})


def _written(point: Point) -> qdrant.Point:
    # Lists, as the library takes twice as long over two-dimensional arrays.
    vectors: dict[str, Any] = {"dense": point.dense.tolist(), "terms": _sparse_vector(point.sparse)}
    if len(point.token_vectors):  # an empty multivector is refused, a missing one is not
        vectors["token_vectors"] = point.token_vectors.tolist()
    return qdrant.Point(point.id, vectors, dict(point.payload))


class _Filters:
    """The filters of one batch, whose searches share a few: one of hundreds of ids takes a millisecond to make."""

    def __init__(self) -> None:
        self._made: list[tuple[Filter, qdrant.Filter]] = []

    def of(self, filter: Filter) -> qdrant.Filter:  # noqa: A002
        for known, made in self._made:
            if known == filter:
                return made
        must, should = [], []
        for condition in conditions(filter):
            if isinstance(condition, AnyOf) and condition.field == "readers" and condition.values:
                # The same as a list of values: 10 % quicker by vectors, and twice as quick by terms.
                should = [_condition(AnyOf(condition.field, [value])) for value in condition.values]
            else:
                must.append(_condition(condition))
        made = qdrant.Filter(must=must, should=should)
        self._made.append((filter, made))
        return made


def _request(search: Search, filters: _Filters) -> qdrant.QueryRequest:
    vector: Any
    if search.dense is not None:
        using, vector = "dense", search.dense.tolist()
    elif search.sparse is not None:
        using, vector = "terms", _sparse_vector(search.sparse)
    elif search.token_vectors is not None:
        using, vector = "token_vectors", search.token_vectors.tolist()
    else:
        raise InvariantViolation("a search is by dense, sparse or pieces")
    idf = None if search.corpus is None else qdrant.IdfParams(corpus=filters.of(search.corpus))
    return qdrant.QueryRequest(
        limit=search.limit,
        query=qdrant.Query.Nearest(vector, using=using),
        filter=filters.of(search.filter),
        params=qdrant.SearchParams(exact=search.exact, idf=idf if using == "terms" else None),
        with_payload=list(search.payload) or False,
        with_vector=["terms"] if search.with_sparse else False,
    )


def _hits(found: Sequence[qdrant.ScoredPoint], search: Search) -> list[Hit]:
    """What a search found. A point's properties are made each time they are asked for, so only where they are there."""
    if not search.payload and not search.with_sparse:
        return [Hit(str(point.id), point.score) for point in found]
    return [hit(point) for point in found]


def _condition(condition: AnyOf | Between | OneOf) -> "qdrant.ConditionType":  # in the stubs alone
    match condition:
        case AnyOf(field, [value]):  # which is cheaper than a list of one
            return qdrant.FieldCondition(field, match=qdrant.MatchValue(value))
        case AnyOf(field, values):
            return qdrant.FieldCondition(field, match=qdrant.MatchAny(values))
        case Between(field, at_least, below, at_most):
            # Numbers go as floats, which are exact up to 2**53: offsets, and microseconds until the year 2255.
            return qdrant.FieldCondition(field, range=qdrant.RangeFloat(gte=at_least, lt=below, lte=at_most))
        case OneOf(ids):
            return qdrant.HasIdCondition(set(ids))


def _sparse_vector(sparse: Sparse) -> qdrant.SparseVector:
    return qdrant.SparseVector(list(sparse.indices), list(sparse.values))
