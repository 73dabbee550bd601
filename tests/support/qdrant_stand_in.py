"""A stand-in for a Qdrant server, over HTTP and gRPC on a port of this machine. It is not Qdrant.

It was written from the requests that the real client sends. The answers are computed by the client's local mode, a
separate implementation in Python without graphs, shards and optimizers. What the stand-in adds is the door: it refuses
calls, fields, filters and options of the query that the documented API does not have or that no test has needed yet;
it has strict mode, keys that may only read, and the errors of the API. Estimates of counts are wrong on purpose.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import grpc
from pydantic import BaseModel, TypeAdapter, ValidationError
from qdrant_client import grpc as messages
from qdrant_client import models
from qdrant_client.conversions.conversion import GrpcToRest
from qdrant_client.grpc import points_service_pb2_grpc
from qdrant_client.local.qdrant_local import QdrantLocal

from recallog_projections.index.engines.server_collections import GENERATION, Tenancy

VERSION = "1.20.1"
REQUEST_BYTES_MAX = 32 * 1024 * 1024
_HELD_SECONDS = 30.0
_OPTIONS = {"wait", "timeout", "ordering", "consistency"}
"""The options that a query of a URL may have."""


class Refused(Exception):
    """An error of the API."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True)
class Request:
    """A request that the client has sent."""

    method: str
    path: str
    options: Mapping[str, str]
    body: Any
    key: str | None = None

    @property
    def call(self) -> str:
        """The request without the names of collections, for example "POST /collections/*/points/count"."""
        return f"{self.method} {re.sub(r'^/collections/(?!aliases$)[^/]+', '/collections/*', self.path)}"


Model = TypeVar("Model")
Value = TypeVar("Value")
Route = Callable[[Request, str], Any]


@dataclass
class StandIn:
    """The stand-in. Collections that clients create have `strict`, like those of a server whose configuration does."""

    version: str = VERSION
    strict: models.StrictModeConfig = field(default_factory=models.StrictModeConfig)
    key: str | None = None
    """The key that may do everything; without one, everybody may."""
    reading_key: str | None = None
    """A key that may only read."""
    url: str = ""
    grpc_port: int = 0
    requests: list[Request] = field(default_factory=list)
    """All requests so far."""
    by_grpc: list[Any] = field(default_factory=list)
    """The messages of gRPC so far."""
    created: dict[str, models.CreateCollection] = field(default_factory=dict)
    """What each existing collection was created with."""
    indexes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The payload indexes of each collection, by field."""
    failures: list[tuple[str, Refused | None]] = field(default_factory=list)
    """A part of the call that fails next, and the error; None: the connection breaks."""
    unanswered: list[str] = field(default_factory=list)
    """A part of the call that is carried out next, and whose connection breaks before the answer."""
    answering: threading.Event = field(default_factory=threading.Event)
    """Cleared: requests get no answer."""

    def __post_init__(self) -> None:
        self.local = QdrantLocal(":memory:")
        self.lock = threading.Lock()
        self.answering.set()
        self._read = self._written = 0
        collection = r"/collections/([^/]+)"
        self.routes: dict[tuple[str, str], Route] = {
            ("GET", r"()/"): lambda request, _: {"title": "stand-in", "version": self.version},
            ("GET", r"()/collections"): lambda request, _: self.local.get_collections(),
            ("GET", r"()/aliases"): lambda request, _: self.local.get_aliases(),
            ("POST", r"()/collections/aliases"): self._change_aliases,
            ("GET", collection): self._describe,
            ("PUT", collection): self._create,
            ("DELETE", collection): self._delete_collection,
            ("GET", f"{collection}/exists"): lambda request, name: {"exists": self._exists(name)},
            ("PUT", f"{collection}/index"): self._create_index,
            ("PUT", f"{collection}/points"): self._upsert,
            ("POST", f"{collection}/points"): self._retrieve,
            ("POST", f"{collection}/points/delete"): self._delete,
            ("POST", f"{collection}/points/scroll"): self._scroll,
            ("POST", f"{collection}/points/count"): self._count,
            ("POST", f"{collection}/points/query/batch"): self._query,
        }

    def answer(self, request: Request) -> Any:
        """The result of a request. Raises `Refused`."""
        self.requests.append(request)
        self._authorise(request)
        if self.failures and self.failures[0][0] in request.call:
            _, error = self.failures.pop(0)
            raise error or ConnectionError
        if unknown := request.options.keys() - _OPTIONS:
            raise Refused(400, f"Bad request: unknown options {sorted(unknown)}")
        self._limit("timeout", int(request.options.get("timeout", 0)), self.strict.max_timeout)
        for (method, pattern), route in self.routes.items():
            if method == request.method and (found := re.fullmatch(pattern, request.path)):
                with self.lock:
                    result = route(request, unquote(found[1]))
                if self.unanswered and self.unanswered[0] in request.call:
                    self.unanswered.pop(0)
                    raise ConnectionError
                return result
        raise Refused(404, f"the stand-in does not know {request.call}")

    def called(self) -> list[str]:
        """The calls of all requests so far."""
        return [request.call for request in self.requests]

    def fails(self, call: str, status: int, text: str, **headers: str) -> None:
        """The next request whose call contains `call` gets this error; one of status 200 is text without JSON."""
        self.failures.append((call, Refused(status, text, {k.replace("_", "-"): v for k, v in headers.items()})))

    def breaks(self, call: str) -> None:
        """The connection of the next request whose call contains `call` breaks."""
        self.failures.append((call, None))

    def separate(self, generation: str) -> None:
        """Move a generation to a collection of its own, as earlier versions of the project made them."""
        alias, own = f"recallog.generation.{generation}", f"recallog.{generation}"
        name = self.local.aliases.pop(alias)
        tenancy = Tenancy(alias, name, generation)
        stored, _ = self.local.scroll(name, models.Filter(must=tenancy.conditions()), 1_000_000, with_vectors=True)
        made = self.created[name]
        assert isinstance(made.vectors, dict)
        self.local.create_collection(own, made.vectors, made.sparse_vectors)
        self.created[own] = made
        self.indexes[own] = {field: index for field, index in self.indexes[name].items() if field != GENERATION}
        self.local.upsert(
            own,
            [
                models.PointStruct(
                    id=tenancy.id_of(str(each.id)),
                    vector=each.vector or {},
                    payload={field: value for field, value in (each.payload or {}).items() if field != GENERATION},
                )
                for each in stored
            ],
        )
        self.local.delete(name, [each.id for each in stored])
        if name not in self.local.aliases.values():
            self._delete_collection(Request("DELETE", "", {}, None), name)

    def _authorise(self, request: Request) -> None:
        if self.key is None or request.key == self.key:
            return
        if request.key is None or request.key != self.reading_key:
            raise Refused(401, "Must provide an API key or an Authorization bearer token")
        reads = request.method == "GET" or request.call.endswith(("/points", "/scroll", "/count", "/query/batch"))
        if not reads or request.method == "PUT":
            raise Refused(403, "Forbidden: Global write access is required")

    # Collections and aliases.

    def _exists(self, name: str) -> bool:
        return name in self.local.collections or name in self.local.aliases

    def _collection(self, name: str) -> str:
        """The collection of a name or an alias."""
        name = self.local.aliases.get(name, name)
        if name not in self.local.collections:
            raise Refused(404, f"Not found: Collection `{name}` doesn't exist!")
        return name

    def _describe(self, request: Request, name: str) -> models.CollectionInfo:
        name = self._collection(name)
        schema = {
            key: models.PayloadIndexInfo(data_type=models.PayloadSchemaType(index.type.value), points=0, params=index)
            for key, index in self.indexes[name].items()
        }
        return self.local.get_collection(name).model_copy(update={"payload_schema": schema})

    def _create(self, request: Request, name: str) -> bool:
        wanted = _valid(models.CreateCollection, request.body)
        if self._exists(name):
            raise Refused(409, f"Wrong input: Collection `{name}` already exists!")
        assert isinstance(wanted.vectors, dict)
        self.local.create_collection(name, wanted.vectors, wanted.sparse_vectors)
        self.created[name] = wanted
        self.indexes[name] = {}
        return True

    def _delete_collection(self, request: Request, name: str) -> bool:
        self.created.pop(name, None)
        self.indexes.pop(name, None)
        return name in self.local.collections and bool(self.local.delete_collection(name))

    def _change_aliases(self, request: Request, _: str) -> bool:
        actions = _valid(models.ChangeAliasesOperation, request.body).actions
        for action in actions:
            if isinstance(action, models.CreateAliasOperation):
                self._collection(action.create_alias.collection_name)
                if action.create_alias.alias_name in self.local.collections:
                    raise Refused(409, f"Wrong input: Collection `{action.create_alias.alias_name}` already exists!")
            if (
                isinstance(action, models.RenameAliasOperation)
                and action.rename_alias.old_alias_name not in self.local.aliases
            ):
                raise Refused(404, f"Not found: Alias {action.rename_alias.old_alias_name} does not exists!")
        return self.local.update_collection_aliases(actions)

    def _create_index(self, request: Request, name: str) -> Any:
        if name in self.local.aliases:
            raise Refused(400, "the stand-in creates payload indexes by the names of collections alone")
        name = self._collection(name)
        wanted = _valid(models.CreateFieldIndex, request.body)
        indexes = self.indexes[name]
        if wanted.field_name not in indexes:
            count = len(indexes) + 1
            self._limit("payload indexes", count, self.strict.max_payload_index_count)
        indexes[wanted.field_name] = wanted.field_schema
        return _completed()

    # Points.

    def _upsert(self, request: Request, name: str) -> Any:
        return self.write(name, _valid(models.PointsList, request.body).points)

    def write(self, name: str, points: Sequence[models.PointStruct]) -> Any:
        """Write points, which came by HTTP or gRPC."""
        name = self._collection(name)
        self._limit("upsert_max_batchsize", len(points), self.strict.upsert_max_batchsize)
        self._written += 1
        self._rate(self._written, self.strict.write_rate_limit, "Write")
        self.local.upsert(name, points)
        return _completed()

    def _delete(self, request: Request, name: str) -> Any:
        name = self._collection(name)
        selector: Any = _valid(models.PointsSelector, request.body)
        if isinstance(selector, models.FilterSelector):
            self._check_filter(name, selector.filter, self.strict.unindexed_filtering_update)
        self.local.delete(name, selector)
        return _completed()

    def _retrieve(self, request: Request, name: str) -> Any:
        name = self._collection(name)
        wanted = _valid(models.PointRequest, request.body)
        return self.local.retrieve(name, wanted.ids, _or(wanted.with_payload, True), _or(wanted.with_vector, False))

    def _scroll(self, request: Request, name: str) -> Any:
        name = self._collection(name)
        wanted = _valid(models.ScrollRequest, request.body)
        limit = 10 if wanted.limit is None else wanted.limit
        self._limit("limit", limit, self.strict.max_query_limit)
        self._check_filter(name, wanted.filter, self.strict.unindexed_filtering_retrieve)
        points, after = self.local.scroll(
            name,
            wanted.filter,
            limit,
            offset=wanted.offset,
            with_payload=_or(wanted.with_payload, True),
            with_vectors=_or(wanted.with_vector, False),
        )
        return {"points": [_dump(point) for point in points], "next_page_offset": after}

    def _count(self, request: Request, name: str) -> Any:
        name = self._collection(name)
        wanted = _valid(models.CountRequest, request.body)
        if wanted.exact is not False:
            self._allow_exact()
        self._check_filter(name, wanted.filter, self.strict.unindexed_filtering_retrieve)
        count = self.local.count(name, wanted.filter).count
        return {"count": count if wanted.exact is not False else count - count // 4}

    def _query(self, request: Request, name: str) -> Any:
        name = self._collection(name)
        searches = _valid(models.QueryRequestBatch, request.body).searches
        self._limit("search_max_batchsize", len(searches), self.strict.search_max_batchsize)
        self._read += 1
        self._rate(self._read, self.strict.read_rate_limit, "Read")
        for search in searches:
            self._limit("limit", search.limit or 10, self.strict.max_query_limit)
            self._check_filter(name, search.filter, self.strict.unindexed_filtering_retrieve)
            if search.params is not None:
                if search.params.exact:
                    self._allow_exact()
                if isinstance(search.params.idf, models.IdfCorpusParams):
                    self._check_filter(name, search.params.idf.corpus, self.strict.unindexed_filtering_retrieve)
                    search.params = models.SearchParams(idf=search.params.idf)  # local mode warns about others
                else:
                    search.params = None
        return self.local.query_batch_points(name, searches)

    # Strict mode.

    def _limit(self, name: str, value: int, limit: int | None) -> None:
        if self.strict.enabled and limit is not None and value > limit:
            raise Refused(
                400,
                f'Bad request: Limit exceeded {value} > {limit} for "{name}". Help: Reduce the "{name}" parameter to '
                f"or below {limit}.",
            )

    def _rate(self, done: int, limit: int | None, sort: str) -> None:
        """Refuse requests above a limit per minute; the minute never ends here."""
        if self.strict.enabled and limit is not None and done > limit:
            raise Refused(429, f"{sort} rate limit exceeded, retry later", {"Retry-After": "7"})

    def _allow_exact(self) -> None:
        if self.strict.enabled and self.strict.search_allow_exact is False:
            raise Refused(400, "Bad request: Exact search disabled!. Help: Set exact=false.")

    def _check_filter(self, name: str, wanted: models.Filter | None, unindexed: bool | None) -> None:
        conditions = [*_conditions(wanted)]
        self._limit("filter_max_conditions", len(conditions), self.strict.filter_max_conditions)
        for condition in conditions:
            if isinstance(condition, models.HasIdCondition):
                self._limit("condition_max_size", len(condition.has_id), self.strict.condition_max_size)
            if not isinstance(condition, models.FieldCondition):
                continue
            values = getattr(condition.match, "any", None) or getattr(condition.match, "except_", None) or []
            self._limit("condition_max_size", len(values), self.strict.condition_max_size)
            needed = ["keyword"] if condition.match is not None else ["integer", "float"]
            index = self.indexes[name].get(condition.key)
            if self.strict.enabled and unindexed is False and (index is None or index.type.value not in needed):
                raise Refused(
                    400,
                    f'Bad request: Index required but not found for "{condition.key}" of one of the following types: '
                    f"[{', '.join(needed)}]. Help: Create an index for this key or use a different filter.",
                )


def _valid(model: type[Model], body: Any) -> Model:
    try:
        return TypeAdapter(model).validate_python(body)
    except ValidationError as error:
        raise Refused(400, f"Format error in JSON body: {error}") from error


def _conditions(wanted: Any) -> Iterator[Any]:
    """The conditions of a filter, at any depth. Raises `Refused` for one that no test has needed."""
    if isinstance(wanted, models.Filter):
        for part in (wanted.must, wanted.must_not, wanted.should, wanted.min_should):
            for each in part if isinstance(part, list) else [part]:
                yield from _conditions(each)
    elif isinstance(wanted, models.FieldCondition | models.HasIdCondition | models.HasVectorCondition):
        given = wanted.model_dump(exclude_none=True).keys() - {"key", "match", "range"}
        if isinstance(wanted, models.FieldCondition) and given:
            raise Refused(400, f"the stand-in does not know the conditions {sorted(given)}")
        yield wanted
    elif wanted is not None:
        raise Refused(400, f"the stand-in does not know the condition {type(wanted).__name__}")


def _or(value: Value | None, default: Value) -> Value:
    return default if value is None else value


def _completed() -> models.UpdateResult:
    return models.UpdateResult(operation_id=0, status=models.UpdateStatus.COMPLETED)


def _dump(result: Any) -> Any:
    if isinstance(result, BaseModel):
        return result.model_dump(mode="json")
    return [_dump(each) for each in result] if isinstance(result, list) else result


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stand_in: StandIn

    def _serve(self) -> None:
        parsed = urlsplit(self.path)
        size = int(self.headers["Content-Length"] or 0)
        body = self.rfile.read(size)
        if not self.stand_in.answering.is_set():
            self.stand_in.answering.wait(_HELD_SECONDS)
            self.close_connection = True
            return
        try:
            if size > REQUEST_BYTES_MAX:
                raise Refused(413, f"JSON payload ({size} bytes) is larger than allowed")
            options = dict(parse_qsl(parsed.query))
            given = json.loads(body) if body else None
            request = Request(self.command, parsed.path, options, given, self.headers["api-key"])
            self._reply(200, {"result": _dump(self.stand_in.answer(request)), "status": "ok", "time": 0.0})
        except Refused as error:
            content = str(error) if error.status == 200 else {"status": {"error": str(error)}, "time": 0.0}
            self._reply(error.status, content, error.headers)
        except ConnectionError:
            self.close_connection = True
        except Exception as error:
            text = f"Service internal error: {type(error).__name__}: {error}"
            self._reply(500, {"status": {"error": text}, "time": 0.0})
            raise

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def _reply(self, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
        if isinstance(content, dict) and self.path == "/" and status == 200:
            content = content["result"]
        written = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def log_message(self, *_: object) -> None:
        pass


class _Points(points_service_pb2_grpc.PointsServicer):
    """The calls of gRPC that write points."""

    def __init__(self, stand_in: StandIn) -> None:
        self._stand_in = stand_in

    def Upsert(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._stand_in.by_grpc.append(request)
        key = dict(context.invocation_metadata()).get("api-key")
        try:
            self._stand_in._authorise(Request("PUT", "/collections/*/points", {}, None, key))
            if self._stand_in.failures and self._stand_in.failures[0][0] in "gRPC Upsert":
                raise self._stand_in.failures.pop(0)[1] or Refused(503, "broken")
            points = [GrpcToRest.convert_point_struct(point) for point in request.points]
            with self._stand_in.lock:
                self._stand_in.write(request.collection_name, points)
        except Refused as error:
            context.abort(_CODES.get(error.status, grpc.StatusCode.INVALID_ARGUMENT), str(error))
        return messages.PointsOperationResponse(
            result=messages.UpdateResult(operation_id=0, status=messages.UpdateStatus.Completed)
        )


_CODES = {
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
    503: grpc.StatusCode.UNAVAILABLE,
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """The client sees the error; the connection of a closed client is not one."""


@contextmanager
def serve(stand_in: StandIn | None = None) -> Iterator[StandIn]:
    """A stand-in that serves HTTP at its `url` and gRPC at its `grpc_port`."""
    served = stand_in or StandIn()
    handler = type("Handler", (_Handler,), {"stand_in": served})
    by_grpc = grpc.server(ThreadPoolExecutor(4))
    points_service_pb2_grpc.add_PointsServicer_to_server(_Points(served), by_grpc)
    served.grpc_port = by_grpc.add_insecure_port("127.0.0.1:0")
    by_grpc.start()
    with _Server(("127.0.0.1", 0), handler) as server:
        served.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield served
        finally:
            served.answering.set()
            server.shutdown()
            by_grpc.stop(None).wait()
            served.local.close()
