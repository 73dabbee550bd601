"""Progressive disclosure over HTTP: previews, the neighbours of a memory, whole texts, and a redirect to their page in
the console.

These paths begin with `/api/v1/memory`, and take the space and the agent as arguments. They give the answers of
`search`, `around`, `entries` and the operations of tiers, but are lenient: a number out of range is replaced by the
nearest allowed one, unknown names in lists are ignored, and only an argument that cannot be corrected is a 400. Each
caller has 60 reads, 30 statistics and 10 changes per minute.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from pydantic import Field, PlainValidator, WithJsonSchema
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as Endpoint

from recallog import Memory
from recallog.operations import parameters
from recallog.operations.facade import all_operations
from recallog.operations.operation import CheckedMethod, Operation
from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument, OutOfRange
from recallog_schemas.kinds.payload import Tier
from recallog_schemas.models import import_parts
from recallog_service.http import requests
from recallog_service.http.door import Door, HttpClient
from recallog_service.http.problems import RequestError

PREFIX = "/api/v1/memory"
WHY = "/console/why"
PER_MINUTE = {"read": 60, "stats": 30, "mutate": 10}
"""Requests of each class that a caller may send per minute."""
_IDS_CHARS_MAX = 2_000

_TIERS: Sequence[Tier] = get_args(Tier)
_TEXT = {"type": "string"}


def _names(value: object) -> Sequence[str]:
    """The names in a text, separated by commas."""
    return list(dict.fromkeys(name.strip() for name in str(value).split(",") if name.strip()))


def _tiers(value: object) -> Sequence[Tier] | None:
    return [each for each in _TIERS if each in _names(value)] or None


def _ids(value: object) -> Sequence[str]:
    if len(str(value)) > _IDS_CHARS_MAX:
        raise InvalidArgument(f"ids: at most {_IDS_CHARS_MAX:,} characters", path="ids", rule="string_too_long")
    found = _names(value)[: limits.ENTRIES_IDS_MAX]
    if not found:
        raise InvalidArgument("ids: name at least one", path="ids", rule="too_short")
    return found


Agent = Annotated[
    parameters.OneAgent, Field(description="Name of the agent; may be left out with a key for one agent.")
]
SomeTiers = Annotated[
    Sequence[Tier] | None,
    PlainValidator(_tiers),
    Field(description="Only entries of these tiers, separated by commas; unknown ones are ignored. Default: all."),
    WithJsonSchema(_TEXT),
]
Ids = Annotated[
    Sequence[str],
    PlainValidator(_ids),
    Field(description=f"Ids separated by commas; the first {limits.ENTRIES_IDS_MAX} are used."),
    WithJsonSchema({**_TEXT, "maxLength": _IDS_CHARS_MAX}),
]


@dataclass(frozen=True)
class Path:
    """One path: its parameters, and the operation that answers."""

    method: Literal["GET", "POST"]
    name: str
    rate: Literal["read", "stats", "mutate"]
    operation: Operation
    takes: CheckedMethod


class Stages:
    """The parameters of the stages. Each method returns the arguments of its operation."""

    def search_index(
        self,
        space: parameters.Space,
        q: parameters.SearchQuery,
        *,
        agent: Agent = None,
        limit: parameters.SearchLimit = limits.SEARCH_HITS,
        tier: SomeTiers = None,
        min_importance: parameters.MinImportance = None,
        use_hybrid: Annotated[bool, Field(description="Rank only entries, by meaning and words.")] = False,
        include_external: parameters.IncludeExternal = False,
        external: Annotated[
            Sequence[str],
            PlainValidator(_names),
            Field(description="Names of external sources, separated by commas; external_reason names unknown ones."),
            WithJsonSchema(_TEXT),
        ] = (),
    ) -> dict[str, Any]:
        """Previews of the memories of an agent that match a question, best first."""
        preset = "hybrid" if use_hybrid else None
        found = {"space": space, "agent": agent, "query": q, "limit": limit, "preset": preset}
        asked = {"include_external": include_external, "external": external}
        return {**found, **asked, "tiers": tier, "min_importance": min_importance}

    def search_timeline(
        self,
        space: parameters.Space,
        anchor_id: Annotated[str, Field(min_length=1, description="Id of the event or entry.")],
        *,
        agent: Agent = None,
        before: parameters.EntriesBefore = limits.AROUND_EVENTS,
        after: parameters.EntriesAfter = limits.AROUND_EVENTS,
    ) -> dict[str, Any]:
        """Previews of an event or entry and of its neighbours, oldest first."""
        named = {"space": space, "agent": agent, "event_id": anchor_id}
        return {**named, "entries_before": before, "entries_after": after}

    def entries(self, space: parameters.Space, ids: Ids, *, agent: Agent = None) -> dict[str, Any]:
        """Whole events and entries by id, in the order of the ids."""
        return {"space": space, "agent": agent, "ids": ids}


_OPERATIONS = all_operations(Memory)
STAGES = [
    Path("GET", "search-index", "read", _OPERATIONS["search"], CheckedMethod(Stages.search_index)),
    Path("GET", "search-timeline", "read", _OPERATIONS["around"], CheckedMethod(Stages.search_timeline)),
    Path("GET", "entries", "read", _OPERATIONS["entries"], CheckedMethod(Stages.entries)),
]


@cache
def paths() -> Sequence[Path]:
    """All paths: those of the stages, and those of models."""
    return [*STAGES, *(each for part in import_parts("recallog_service", "paths") for each in part.PATHS)]


class Disclosure:
    """The endpoints of these paths."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def endpoints(self) -> Sequence[Endpoint]:
        found = [
            Endpoint(
                f"{PREFIX}/{path.name}", self._endpoint(path), methods=[path.method], name=f"disclosure.{path.name}"
            )
            for path in paths()
        ]
        return [*found, Endpoint(f"{PREFIX}/viewer", self._view, methods=["GET"], name="disclosure.viewer")]

    def _endpoint(self, path: Path) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            client = await self._client(request, path.rate)
            given = requests.query(request) if path.method == "GET" else await requests.json_object(request)
            content = path.operation.to_json(await self._answer(client, path, given))
            return Response(content, media_type=requests.JSON)

        return answer

    async def _client(self, request: Request, rate: str) -> HttpClient:
        client = await self._door.client(request)
        self._door.access.limits.take(client.name, rate, calls_per_minute=PER_MINUTE[rate])
        return client

    async def _answer(self, client: HttpClient, path: Path, given: Mapping[str, Any]) -> Any:
        try:
            valid = path.takes.validate(given, strict=False)
            arguments = path.takes.function(None, **valid)
            return await self._door.answer(
                client, path.operation, {name: value for name, value in arguments.items() if value is not None}
            )
        except InvalidArgument as error:
            raise RequestError(400, str(error), rule=error.rule, path=error.path) from None
        except OutOfRange as error:
            if error.path == "event_id":
                error.path = "anchor_id"
            raise

    async def _view(self, request: Request) -> Response:
        """A redirect to the page of the console that shows these stages. The page itself asks for a key."""
        given = requests.query(request)
        named = {name: given.get(name) for name in ("space", "agent", "q")}
        one = given.get("anchor_id") or next(iter(_names(given.get("ids", ""))), None)
        shown = {name: value for name, value in {**named, "id": one}.items() if value}
        return RedirectResponse(f"{WHY}?{urlencode(shown, errors='surrogatepass')}" if "space" in shown else "/")
