"""The engine on a Qdrant server, for the cluster form: version 1.19 or later, which computes idf per space."""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import msgspec
from qdrant_client import AsyncQdrantClient
from qdrant_client import models as qdrant
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from recallog_projections.breaker import Breaker
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
    hit,
    make_point,
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
from recallog_projections.index.engines.folder import NAME
from recallog_projections.plugins import AdapterSettings
from recallog_schemas import limits
from recallog_schemas.errors import IndexLost, IndexUnavailable, SettingsError

VERSION_MIN = (1, 19)
"""The first version that computes idf over the points of a filter. Older ones use the points of all tenants."""

VERSION_OF_TURBO8 = (1, 20)
"""The first version that stores vectors with 8 bits per number. On older ones they take twice the disk space."""

WRITE_SECONDS = 15.0
"""How long a call of a builder may take: it writes, or reads whole pages of points."""

UPSERT_BYTES = 8 * 1024 * 1024
"""JSON of one request, by an estimate; a server accepts 32 MB."""

DELETED_POINTS = 10_000
"""Points of one request that deletes."""

_NUMBER_BYTES = 22
"""A float of a vector in JSON."""

_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,64}")
_ADDRESS = "write https://host:6333, with ?api_key=… at the end if the server needs a key, percent-encoded"

_FieldIndex = qdrant.KeywordIndexParams | qdrant.IntegerIndexParams | qdrant.FloatIndexParams

Result = TypeVar("Result")


class _NoAnswer(Exception):
    """The server cannot be reached, or does not answer in time."""


class ServerEngine(Engine):
    """The collections `prefix`.* of the server at `url`: http(s)://host[:port][/path][?api_key=…], port 6333.

    With `client`, it uses and finally closes that client, and `url` only appears in messages. Methods raise
    `IndexUnavailable` if the server cannot be reached, does not answer in time, or refuses, and `SettingsError` if it
    is older than 1.19. All of them can be repeated after a failure. The constructor raises `SettingsError` if `url` or
    `prefix` is invalid.

    Calls of a question wait `deadline_seconds` for a server that does not answer, and fail at once for some seconds
    after that; those of a builder wait `WRITE_SECONDS`.
    """

    def __init__(
        self,
        url: str,
        prefix: str = "recallog",
        *,
        client: AsyncQdrantClient | None = None,
        deadline_seconds: float = limits.DEADLINE_SECONDS,
    ) -> None:
        if not _PREFIX.fullmatch(prefix):
            raise SettingsError(f"the prefix {prefix!r} is not 1 to 64 letters, digits and . _ -")
        self._prefix = f"{prefix}."
        self._secret = ""
        if client is None:
            client = self._connect(url)
        else:
            self._address = url
        self._client = client
        self._version: tuple[int, int] | None = None
        self._complete: set[str] = set()
        """The collections whose missing payload indexes this process has created or requested."""
        self._closed = False
        self._breaker = Breaker(
            lambda reason: IndexUnavailable(
                f"the Qdrant at {self._address} {reason}: check that it runs and that the address is right"
            ),
            deadline_seconds,
            failures=(_NoAnswer,),
            reason_of=str,
        )

    def _connect(self, url: str) -> AsyncQdrantClient:
        try:
            parsed = urlsplit(url)
            options = parse_qs(parsed.query, strict_parsing=True) if parsed.query else {}
            host, port = parsed.hostname, parsed.port or 6333
        except ValueError:  # without the text of the error, which may show a part of the key
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}") from None
        if parsed.scheme not in ("http", "https") or not host or parsed.username or options.keys() - {"api_key"}:
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}")
        [*_, self._secret] = options.get("api_key", [""])
        self._address = f"{parsed.scheme}://{host}:{port}{parsed.path}"
        try:
            return AsyncQdrantClient(
                url=f"{parsed.scheme}://{f'[{host}]' if ':' in host else host}:{port}",
                prefix=parsed.path.rstrip("/") or None,
                api_key=self._secret or None,
                timeout=int(WRITE_SECONDS),
                check_compatibility=False,  # it would query the server now, in a thread; `_checked` does so later
            )
        except ValueError:  # an impossible host, such as one with a space
            raise SettingsError(f"not the address of a Qdrant server: {_ADDRESS}") from None

    async def create(self, collection: str, dimension: int, *, multilingual: bool = False) -> None:
        """As in `Engine`. A second call completes an interrupted one."""
        name = self._name(collection)
        version = await self._check_version()
        if not await self._write(lambda: self._client.collection_exists(name)):
            try:
                parameters = _parameters(dimension, version, multilingual=multilingual)
                await self._write(lambda: self._client.create_collection(name, **parameters))
            except IndexUnavailable:
                # Another process may have created it meanwhile.
                if not await self._write(lambda: self._client.collection_exists(name)):
                    raise
        await self._create_missing_indexes(name)

    async def _create_missing_indexes(self, name: str) -> None:
        """Index the fields of filters. A server in strict mode refuses a filter on a field without an index."""
        for field, schema in await self._missing_indexes(name, self._write):
            await self._write(partial(self._client.create_payload_index, name, field, schema, wait=True))
        self._complete.add(name)

    async def _missing_indexes(
        self, name: str, run: "Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]]"
    ) -> list[tuple[str, _FieldIndex]]:
        indexed = (await run(lambda: self._client.get_collection(name))).payload_schema
        return [(field, schema) for field, schema in _payload_indexes().items() if field not in indexed]

    async def _request_missing_indexes(self, name: str) -> None:
        """The same for the first question to a collection, which an older version may have made.

        It does not wait for the server to build them. A key that may only read cannot request them; the process that
        writes the collection does.
        """
        if name in self._complete:
            return
        missing = await self._missing_indexes(name, self._run)
        self._complete.add(name)
        with suppress(IndexUnavailable):
            for field, schema in missing:
                await self._run(partial(self._client.create_payload_index, name, field, schema, wait=False))

    async def collections(self) -> set[str]:
        found = await self._run(self._client.get_collections)
        names = (about.name.removeprefix(self._prefix) for about in found.collections if self._is_ours(about.name))
        return {name for name in names if NAME.fullmatch(name)}

    async def drop(self, collection: str) -> None:
        name = self._name(collection)
        if await self._write(lambda: self._client.collection_exists(name)):
            await self._write(lambda: self._client.delete_collection(name))

    async def upsert(self, collection: str, points: Sequence[Point]) -> None:
        name = self._name(collection)
        await self._check_version()
        if name not in self._complete:
            await self._create_missing_indexes(name)
        if not points:
            await self._require(name)
        for part in _requests(points):
            await self._write(partial(self._client.upsert, name, part, wait=True))

    async def delete(self, collection: str, ids: Collection[str]) -> None:
        name = self._name(collection)
        await self._check_version()
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            await self._require(name)
        for start in range(0, len(wanted), DELETED_POINTS):
            selected = qdrant.PointIdsList(points=list(wanted[start : start + DELETED_POINTS]))
            await self._write(partial(self._client.delete, name, selected, wait=True))

    async def search(self, collection: str, searches: Sequence[Search]) -> list[list[Hit]]:
        name = self._name(collection)
        await self._check_version()
        await self._request_missing_indexes(name)
        numbers = [number for number, search in enumerate(searches) if not finds_nothing(search)]
        requests = [_request(searches[number]) for number in numbers]
        found: list[list[Hit]] = [[] for _ in searches]
        if not requests:
            await self._require(name)
            return found
        answers = await self._run(lambda: self._client.query_batch_points(name, requests))
        for number, answer in zip(numbers, answers, strict=True):
            found[number] = [hit(point) for point in answer.points]
        return found

    async def retrieve(
        self, collection: str, ids: Sequence[str], *, payload: Collection[str] | None = None, vectors: bool = False
    ) -> dict[str, StoredPoint]:
        name = self._name(collection)
        with_payload: bool | list[str] = True if payload is None else list(payload) or False
        wanted = list(dict.fromkeys(ids))
        run = self._write if vectors else self._run  # only builders need the vectors
        records = await run(lambda: self._client.retrieve(name, wanted, with_payload, vectors))
        return {str(record.id): make_point(record) for record in records}

    async def scroll(
        self, collection: str, after: str | None, limit: int, *, vectors: bool = False
    ) -> list[StoredPoint]:
        name = self._name(collection)
        # The server includes `after`, so that one more point is read, and `after` is left out.
        more = limit if after is None else limit + 1
        records, _ = await self._write(
            lambda: self._client.scroll(name, limit=more, offset=after, with_payload=True, with_vectors=vectors)
        )
        return [make_point(record) for record in records if str(record.id) != after][:limit]

    async def count(self, collection: str, filter: Filter | None = None) -> int:  # noqa: A002
        name = self._name(collection)
        wanted = None if filter is None else _filter(filter)
        if wanted is not None:
            await self._request_missing_indexes(name)
        return (await self._run(lambda: self._client.count(name, wanted, exact=True))).count

    async def size_bytes(self) -> None:
        """None: a server does not report it."""

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._client.close()

    def _name(self, collection: str) -> str:
        check_name(collection)
        return self._prefix + collection

    def _is_ours(self, name: str) -> bool:
        return name.startswith(self._prefix)

    async def _require(self, name: str) -> None:
        """Raises `IndexLost` if the collection does not exist, for calls that send no other request."""
        if not await self._run(lambda: self._client.collection_exists(name)):
            raise self._make_lost_error()

    async def _check_version(self) -> tuple[int, int]:
        """The server's version, requested once. Raises `SettingsError` if it is too old."""
        if self._version is None:
            reported = (await self._run(self._client.info)).version
            found = re.match(r"(\d+)\.(\d+)", reported)
            version = (int(found[1]), int(found[2])) if found else (0, 0)
            if version < VERSION_MIN:
                raise SettingsError(
                    f"the Qdrant at {self._address} is {reported}; the semantic index needs {VERSION_MIN[0]}."
                    f"{VERSION_MIN[1]} or later, which computes idf per space: upgrade the server"
                )
            self._version = version
        return self._version

    async def _write(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """As `_run`, for a call of a builder, which may take longer."""
        return await self._run(call, WRITE_SECONDS)

    async def _run(self, call: Callable[[], Awaitable[Result]], seconds: float | None = None) -> Result:
        """The result of `call`, which is repeated once after a network error: idle connections break unnoticed."""
        if self._closed:
            raise closed_error()

        async def work() -> Result:
            try:
                return await call()
            except ResponseHandlingException as error:
                if not isinstance(error.source, httpx.NetworkError | httpx.RemoteProtocolError):
                    raise self._no_answer(error) from error
            try:
                return await call()
            except ResponseHandlingException as error:
                raise self._no_answer(error) from error

        with self._translated_errors():
            return await self._breaker.call(work, seconds)

    def _no_answer(self, error: ResponseHandlingException) -> _NoAnswer:
        if isinstance(error.source, httpx.TimeoutException):
            return _NoAnswer(f"does not answer within {WRITE_SECONDS:g} s")
        return _NoAnswer(f"cannot be reached ({self._safe(str(error.source) or type(error.source).__name__)})")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except UnexpectedResponse as error:
            raise self._translated_error(error) from error
        except (ApiException, QdrantException) as error:
            raise IndexUnavailable(
                f"the Qdrant at {self._address} failed a call ({self._safe(str(error))}); try again later"
            ) from error
        except ValueError as error:
            if re.fullmatch(r"Collection \S+ not found", str(error)):  # the client's local mode
                raise self._make_lost_error() from error
            raise IndexUnavailable(
                f"the server at {self._address} is not a Qdrant: check that the address is right"
            ) from error

    def _translated_error(self, error: UnexpectedResponse) -> IndexUnavailable:
        text = self._safe(error.content.decode(errors="replace"))
        if error.status_code == 404 and "doesn't exist" in text:
            return self._make_lost_error()
        if error.status_code in (401, 403):
            return IndexUnavailable(
                f"the Qdrant at {self._address} refuses the API key, or needs one: give it as ?api_key=…"
            )
        return IndexUnavailable(f"the Qdrant at {self._address} answers {error.status_code}: {text[:300]}; see its log")

    def _make_lost_error(self) -> IndexLost:
        return IndexLost(f"the semantic index is no longer on the Qdrant at {self._address}; it is rebuilt. Try again")

    def _safe(self, text: str) -> str:
        return text.replace(self._secret, "***").replace(quote(self._secret), "***") if self._secret else text


def open_engine(url: str, settings: AdapterSettings) -> ServerEngine:
    """The engine at the URL of a Qdrant server. Raises `SettingsError`."""
    return ServerEngine(url, deadline_seconds=settings.deadline_seconds)


def _parameters(dimension: int, version: tuple[int, int], *, multilingual: bool) -> dict[str, Any]:
    # A graph for each space and none over all, since every search is within one space. Small spaces are searched
    # exactly. The embedder's vectors have length 1, so that the dot product is the cosine.
    dense = qdrant.VectorParams(
        size=dimension,
        distance=qdrant.Distance.DOT,
        datatype=qdrant.Datatype.TURBO8 if version >= VERSION_OF_TURBO8 else qdrant.Datatype.FLOAT16,
        multivector_config=qdrant.MultiVectorConfig(comparator=qdrant.MultiVectorComparator.MAX_SIM),
        hnsw_config=qdrant.HnswConfigDiff(m=0, payload_m=16),
    )
    terms = qdrant.SparseVectorParams(modifier=qdrant.Modifier.IDF)
    vectors = dict.fromkeys((DENSE, MULTILINGUAL) if multilingual else (DENSE,), dense)
    return {"vectors_config": vectors, "sparse_vectors_config": {"terms": terms}}


def _payload_indexes() -> dict[str, _FieldIndex]:
    keywords: dict[str, _FieldIndex] = {
        field: qdrant.KeywordIndexParams(
            type=qdrant.KeywordIndexType.KEYWORD, is_tenant=field == "space", enable_hnsw=field == "space"
        )
        for field in KEYWORD_FIELDS
    }
    integers: dict[str, _FieldIndex] = {
        field: qdrant.IntegerIndexParams(
            type=qdrant.IntegerIndexType.INTEGER, lookup=False, range=True, enable_hnsw=False
        )
        for field in INTEGER_FIELDS
    }
    floats: dict[str, _FieldIndex] = {
        field: qdrant.FloatIndexParams(type=qdrant.FloatIndexType.FLOAT) for field in FLOAT_FIELDS
    }
    return keywords | integers | floats


def _requests(points: Sequence[Point]) -> Iterator[list[qdrant.PointStruct]]:
    """The points in parts of at most `UPSERT_BYTES`, or of a single larger point."""
    part: list[qdrant.PointStruct] = []
    part_bytes = 0
    for point in points:
        size = (point.dense.size + point.multilingual.size) * _NUMBER_BYTES + len(msgspec.json.encode(point.payload))
        if part and part_bytes + size > UPSERT_BYTES:
            yield part
            part, part_bytes = [], 0
        part.append(_convert_point(point))
        part_bytes += size
    if part:
        yield part


def _convert_point(point: Point) -> qdrant.PointStruct:
    vectors = {"terms": _sparse_vector(point.sparse), **dense_vectors(point)}
    return qdrant.PointStruct(id=point.id, vector=vectors, payload=dict(point.payload))


def _request(search: Search) -> qdrant.QueryRequest:
    vector: Any = None
    using = None
    params = qdrant.SearchParams(exact=True) if search.exact else None
    if search.dense is not None:
        using, vector = vector_name(search), [search.dense.tolist()]
    elif search.sparse is not None:
        using, vector = "terms", _sparse_vector(search.sparse)
        if search.corpus is not None:
            corpus = qdrant.IdfCorpusParams(corpus=_filter(search.corpus))
            params = qdrant.SearchParams(exact=search.exact, idf=corpus)
    return qdrant.QueryRequest(
        query=None if vector is None else qdrant.NearestQuery(nearest=vector),
        using=using,
        filter=None if search.filter is None else _filter(search.filter),
        params=params,
        limit=search.limit,
        with_payload=list(search.payload) or False,
        with_vector=["terms"] if search.with_sparse else False,
    )


def _filter(filter: Filter) -> qdrant.Filter:  # noqa: A002
    must: list[qdrant.Condition] = []
    must_not: list[qdrant.Condition] = []
    for condition in conditions(filter):
        if isinstance(condition, NotBetween):
            excluded = qdrant.Range(gt=condition.above, lte=condition.at_most)
            must_not.append(qdrant.FieldCondition(key=condition.field, range=excluded))
        elif isinstance(condition, NoVector):
            must_not.append(qdrant.HasVectorCondition(has_vector=condition.name))
        else:
            must.append(_condition(condition))
    return qdrant.Filter(must=must, must_not=must_not)


def _condition(condition: Required) -> qdrant.FieldCondition | qdrant.HasIdCondition:
    match condition:
        case AnyOf(field, [value]):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchValue(value=value))
        case AnyOf(field, values):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchAny(any=values))
        case NoneOf(field, values):
            return qdrant.FieldCondition(key=field, match=qdrant.MatchExcept(**{"except": values}))
        case Between(field, at_least, below, at_most):
            # Numbers go as floats, which are exact up to 2**53: offsets, and microseconds until the year 2255.
            return qdrant.FieldCondition(key=field, range=qdrant.Range(gte=at_least, lt=below, lte=at_most))
        case IdIn(ids):
            return qdrant.HasIdCondition(has_id=list(ids))


def _sparse_vector(sparse: Sparse) -> qdrant.SparseVector:
    return qdrant.SparseVector(indices=list(sparse.indices), values=list(sparse.values))
