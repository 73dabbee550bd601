"""The documents that describe the HTTP door: OpenAPI 3.1 and AsyncAPI 3.0, from the declarations of the operations."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, TypeAdapter

from recallog import Memory, __version__
from recallog.operations.operation import CheckedMethod
from recallog.operations.routes import JOBS, Route, routes
from recallog_schemas import Event, export
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.views import Published, Remembered
from recallog_service.http import cloudevents, disclosure, events, problems, requests, sse
from recallog_service.http.jobs import Job, JobsPage

Schema = dict[str, Any]

_REF = "#/components/schemas/{model}"
_TEXT: Schema = {"type": "string"}


def _object(properties: Mapping[str, Schema], *optional: str) -> Schema:
    """An object with these fields; all but the `optional` ones are required."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def _closed(properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    """The body of a request: an object without other fields."""
    return {
        **_object(properties, *(name for name in properties if name not in required)),
        "additionalProperties": False,
    }


_PROBLEM: Schema = {
    "description": "Why a request was not answered (RFC 9457). `title` is the class of the error in Python.",
    **_object(
        {
            "type": {"type": "string", "pattern": "^urn:recallog:"},
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": {"type": "string", "description": "What happened, and what to do next."},
            "retryable": {"type": "boolean", "description": "Whether the same request can succeed later."},
            "path": {"type": "string", "description": "The field that is wrong."},
            "rule": {"type": "string", "description": "A stable word for the rule that it breaks."},
        },
        "path",
        "rule",
    ),
}
_ITEM = _object({"position": _TEXT, "event": {"$ref": _REF.format(model="Event")}})
_NEXT: Schema = {
    "type": ["string", "null"],
    "description": "Pass it as `start` to get the next page; null at the end. A page may be short, or empty.",
}
_PAGE = _object({"items": {"type": "array", "items": _ITEM}, "next": _NEXT})
_READY = _object({"status": _TEXT})

_TROUBLE = {
    400: "The request is malformed.",
    401: "A key or a token is needed, or the given one is not valid.",
    403: "A page of another origin sends it.",
    404: "There is no such thing, or the key may not see it.",
    405: "The path does not take this method.",
    408: "The body took too long.",
    409: "It conflicts with what is there.",
    413: "The body, or an event in it, is too large.",
    415: "The content type is not accepted.",
    421: "The server does not answer under this name.",
    422: "An argument is invalid; `path` names it.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    500: "A defect.",
    502: "A model gave no valid answer.",
    503: "Not possible now. `retryable`: the same request can succeed later; if not, an operator must act.",
}


def openapi() -> Schema:
    """The OpenAPI document of all routes."""
    models = _Models()
    paths: dict[str, Schema] = {}

    def add(path: str, method: str, described: Schema) -> None:
        paths.setdefault(path, {})[method.lower()] = described

    for route in routes(Memory).values():
        add(route.path, route.method, _operation(models, route))
    add(events.EVENTS, "POST", _publish(models))
    add(events.EVENTS, "GET", _read(models))
    add(events.STREAM, "GET", _stream())
    add(JOBS, "GET", _jobs(models))
    add(f"{JOBS}/{{id}}", "GET", _job(models))
    for path in disclosure.paths():
        add(f"{disclosure.PREFIX}/{path.name}", path.method, _disclosed(models, path))
    add(f"{disclosure.PREFIX}/viewer", "GET", _viewer())
    for name, summary in (("healthz", "Whether the process lives."), ("readyz", "Whether the memory can answer.")):
        add(f"/{name}", "GET", _described(name, summary, [], _answers(200, _READY, (503,))))
    text = {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}
    add("/metrics", "GET", _described("metrics", "Metrics for Prometheus.", [], {"200": text, **_problems((404,))}))
    return {
        "openapi": "3.1.0",
        "info": _info(),
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": {**models.definitions(), "Problem": _PROBLEM, "EventsPage": _PAGE},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key, or a JWT."}},
        },
    }


def asyncapi() -> Schema:
    """The AsyncAPI document of the event streams."""
    models = _Models()
    event, seen = models.of(Event, "validation"), models.of(Remembered, "serialization")
    return {
        "asyncapi": "3.0.0",
        "info": _info(),
        "defaultContentType": "application/json",
        "channels": {
            "events": _channel(events.EVENTS, "All events of a space, as the ledger has them.", "Event"),
            "seen": _channel(events.STREAM, "The events that an agent may see, with their texts.", "Remembered"),
        },
        "operations": {
            name: {
                "action": "send",
                "channel": {"$ref": f"#/channels/{name}"},
                "messages": [{"$ref": f"#/channels/{name}/messages/event"}],
                "summary": "An event of the stream; its `id` is the position to resume from (`Last-Event-ID`).",
            }
            for name in ("events", "seen")
        },
        "components": {
            "schemas": models.definitions(),
            "messages": {
                "Event": {"contentType": "application/json", "payload": event},
                "Remembered": {"contentType": "application/json", "payload": seen},
                "End": _message(
                    "The event `end`: why the stream ends. Come back after `slow` and `stopping`.",
                    _object({"reason": {"type": "string", "enum": [*sse.End]}, "problem": _PROBLEM}, "problem"),
                ),
                "Begin": _message(
                    "The event `begin`: where the stream begins. Come back with `start` if none came since.",
                    _object({"start": _TEXT}),
                ),
                "Gap": _message(
                    "The event `gap`: the views retain no events before `kept_from`; the ledger does.",
                    _object({"kept_from": _TEXT}),
                ),
            },
        },
    }


def _message(summary: str, payload: Schema) -> Schema:
    return {"summary": summary, "contentType": "application/json", "payload": payload}


class _Models:
    """The schemas of models, with one definition of each."""

    def __init__(self) -> None:
        self._inputs: dict[tuple[Any, str], TypeAdapter[Any]] = {}
        self._definitions: dict[str, Schema] = {}

    def of(self, model: Any, mode: str) -> Schema:
        """The schema of a model, which refers to definitions in the document."""
        schema = TypeAdapter(model).json_schema(
            mode=mode,  # type: ignore[arg-type]  # one of two words
            ref_template=_REF,
            schema_generator=export.Documented,
        )
        self._definitions |= schema.pop("$defs", {})
        if isinstance(model, type) and "$ref" not in schema:
            self._definitions[model.__name__] = schema
            return {"$ref": _REF.format(model=model.__name__)}
        found: Schema = schema
        return found

    def definitions(self) -> dict[str, Schema]:
        """All definitions that were referred to."""
        return dict(sorted(self._definitions.items()))

    def properties(self, arguments: type[BaseModel]) -> tuple[dict[str, Schema], Sequence[str]]:
        """The schemas of arguments, and the names of required ones."""
        schema = TypeAdapter(arguments).json_schema(
            mode="validation", ref_template=_REF, schema_generator=export.Documented
        )
        self._definitions |= schema.pop("$defs", {})
        return schema.get("properties", {}), schema.get("required", [])


def _info() -> Schema:
    return {
        "title": "Recallog",
        "version": __version__,
        "description": "Event-sourced memory for AI agents: one durable ledger, every memory a rebuildable view of it.",
        "license": {"name": "Apache-2.0"},
    }


def _operation(models: _Models, route: Route) -> Schema:
    operation = route.operation
    properties, required = models.properties(operation.arguments)
    given = [_parameter("path", name, {"type": "string"}, properties[name], required=True) for name in route.in_path]
    rest = {name: schema for name, schema in properties.items() if name not in route.in_path}
    if route.method == "GET":
        given += [
            _parameter("query", name, _in_query(schema, is_list=name in route.lists), schema, required=name in required)
            for name, schema in rest.items()
        ]
    if route.is_job:
        answers = _answers(202, models.of(Job, "serialization"), tuple(_TROUBLE))
    else:
        answers = _answers(200, models.of(operation.answer, "serialization"), tuple(_TROUBLE))
    described = _described(operation.qualified_name, operation.summary, given, answers)
    described["description"] = "\n\n".join(operation.description)
    described["tags"] = [operation.group or "memory"]
    if route.method == "GET":
        described["responses"]["304"] = {"description": "The client has it: `If-None-Match` names its ETag."}
    else:
        described["requestBody"] = _body({requests.JSON: _closed(rest, required)})
    return described


def _publish(models: _Models) -> Schema:
    event = models.of(Event, "validation")
    cloud = _object({"specversion": {"const": "1.0"}, "id": _TEXT, "source": _TEXT, "type": _TEXT})
    one_or_more = {"anyOf": [event, {"type": "array", "items": event}]}
    summary = "Publish one event, a list of them, or CloudEvents: all or none."
    answers = _answers(201, models.of(Published, "serialization"), tuple(_TROUBLE))
    described = _described("events.publish", summary, [_space()], answers)
    described["requestBody"] = _body(
        {
            requests.JSON: one_or_more,
            cloudevents.STRUCTURED: cloud,
            cloudevents.BATCHED: {"type": "array", "items": cloud},
        }
    )
    return described


def _read(models: _Models) -> Schema:
    given = [_space(), *_query_of(models, events.PAGE, but=("space",)), _LAST_EVENT_ID]
    summary = "A page of all events of a space or, with `Accept: text/event-stream`, a tail. Needs the verb `tail`."
    answers = _answers(200, {"$ref": _REF.format(model="EventsPage")}, tuple(_TROUBLE))
    answers["200"]["content"][sse.MEDIA_TYPE] = {"schema": {"type": "string"}}
    return _described("events.read", summary, given, answers)


def _stream() -> Schema:
    agent = _parameter("path", "agent", {"type": "string"}, {"description": "Name of the agent."}, required=True)
    given = [_space(), agent, _START, _LAST_EVENT_ID]
    content = {"description": "The stream.", "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}}}
    summary = "What an agent may see, as it comes: `text/event-stream`."
    return _described("events.stream", summary, given, {"200": content, **_problems(tuple(_TROUBLE))})


def _jobs(models: _Models) -> Schema:
    answers = _answers(200, models.of(JobsPage, "serialization"), tuple(_TROUBLE))
    return _described("jobs", "The jobs of this server: a caller's own, and for operators all.", [], answers)


def _job(models: _Models) -> Schema:
    given = [_parameter("path", "id", {"type": "string"}, {"description": "Id of the job."}, required=True)]
    answers = _answers(200, models.of(Job, "serialization"), tuple(_TROUBLE))
    answers["200"]["content"][sse.MEDIA_TYPE] = {"schema": {"type": "string"}}
    return _described("job", "How far a job is; with `Accept: text/event-stream`, as it goes on.", given, answers)


def _disclosed(models: _Models, path: disclosure.Path) -> Schema:
    schema: Schema = models.of(path.operation.answer, "serialization")
    answers = _answers(200, schema, tuple(_TROUBLE))
    summary = paragraphs(path.takes.function)[0]
    if path.method == "GET":
        return _described(f"disclosure.{path.name}", summary, _query_of(models, path.takes), answers)
    properties, required = models.properties(path.takes.arguments)
    described = _described(f"disclosure.{path.name}", summary, [], answers)
    described["requestBody"] = _body({requests.JSON: _closed(properties, required)})
    return described


def _viewer() -> Schema:
    content = {"description": "The page.", "content": {"text/html": {"schema": {"type": "string"}}}}
    names = ("space", "agent", "q", "anchor_id", "ids")
    given = [_parameter("query", name, {"type": "string"}, {}, required=False) for name in names]
    summary = "A page for people that shows these stages."
    return _described("disclosure.viewer", summary, given, {"200": content, **_problems(tuple(_TROUBLE))})


def _described(name: str, summary: str, given: Sequence[Schema], answers: Schema) -> Schema:
    return {"operationId": name, "summary": summary, "parameters": list(given), "responses": answers}


def _answers(status: int, schema: Schema, trouble: Sequence[int]) -> Schema:
    answer = {"description": "The answer.", "content": {requests.JSON: {"schema": schema}}}
    return {str(status): answer, **_problems(trouble)}


def _problems(trouble: Sequence[int]) -> Schema:
    content = {problems.CONTENT_TYPE: {"schema": {"$ref": _REF.format(model="Problem")}}}
    return {str(status): {"description": _TROUBLE[status], "content": content} for status in trouble}


def _body(schemas: Mapping[str, Schema]) -> Schema:
    return {"required": True, "content": {kind: {"schema": schema} for kind, schema in schemas.items()}}


def _parameter(where: str, name: str, schema: Schema, described: Schema, *, required: bool) -> Schema:
    text = {"description": described["description"]} if "description" in described else {}
    return {"name": name, "in": where, "required": required, "schema": schema, **text}


def _query_of(models: _Models, takes: CheckedMethod, but: Sequence[str] = ()) -> list[Schema]:
    properties, required = models.properties(takes.arguments)
    return [
        _parameter("query", name, _in_query(schema, is_list=False), schema, required=name in required)
        for name, schema in properties.items()
        if name not in but
    ]


def _in_query(schema: Schema, *, is_list: bool) -> Schema:
    """The schema of an argument in a query: without null, which leaving it out says, and without objects."""
    kinds = [each for each in schema.get("anyOf", ()) if each.get("type") not in ("null", "object")]
    if is_list:
        kinds = [each for each in kinds if each.get("type") == "array"] or kinds
    kept = {name: value for name, value in schema.items() if name not in ("anyOf", "description", "default")}
    if len(kinds) == 1:
        return {**kept, **kinds[0]}
    return {**kept, "anyOf": kinds} if kinds else kept


def _space() -> Schema:
    described = {"description": "Name of the space; a slash in it is %2F."}
    return _parameter("path", "space", {"type": "string"}, described, required=True)


def _channel(path: str, description: str, message: str) -> Schema:
    names = [part.strip("{}") for part in path.split("/") if part.startswith("{")]
    return {
        "address": path,
        "description": description,
        "parameters": {name: {"description": f"Name of the {name}."} for name in names},
        "messages": {
            "event": {"$ref": f"#/components/messages/{message}"},
            "begin": {"$ref": "#/components/messages/Begin"},
            "end": {"$ref": "#/components/messages/End"},
            "gap": {"$ref": "#/components/messages/Gap"},
        },
    }


_START = _parameter(
    "query",
    "start",
    {"type": "string"},
    {"description": "From this position on; default: from now on."},
    required=False,
)
_LAST_EVENT_ID = _parameter(
    "header",
    "Last-Event-ID",
    {"type": "string"},
    {"description": "The position of the last event that the client has."},
    required=False,
)
