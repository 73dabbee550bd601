"""Generates `documents.json` of the HTTP door: what the OpenAPI and AsyncAPI documents of all servers have."""

import json

from recallog.operations.routes import JOBS
from recallog_schemas import Event
from recallog_schemas.views import Published, Remembered
from recallog_service.http import cloudevents, disclosure, events, problems, requests, sse
from recallog_service.http.documents import (
    REF,
    TROUBLE,
    Models,
    Schema,
    answers_of,
    body_of,
    described_as,
    object_of,
    parameter_of,
    query_of,
    refer_to,
)
from recallog_service.http.jobs import Job, JobsPage

_TEXT: Schema = {"type": "string"}
_PROBLEM: Schema = {
    "description": "Why a request failed (RFC 9457). `title` is the class of the error in Python.",
    **object_of(
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
_ITEM = object_of({"position": _TEXT, "event": {"$ref": REF.format(model="Event")}})
_NEXT: Schema = {
    "type": ["string", "null"],
    "description": "Pass it as `start` to get the next page; null at the end. A page may be short, or empty.",
}
_PAGE = object_of({"items": {"type": "array", "items": _ITEM}, "next": _NEXT})
_READY = object_of({"status": _TEXT})
_TROUBLE = {
    400: "The request is malformed.",
    401: "A key or a token is needed, or the given one is not valid.",
    403: "A page of another origin sends it.",
    404: "Not found, or not permitted by this key.",
    405: "The path does not take this method.",
    408: "The body took too long.",
    409: "It conflicts with the present state.",
    413: "The body, or an event in it, is too large.",
    415: "The content type is not accepted.",
    421: "The server does not answer under this name.",
    422: "An argument is invalid; `path` names it.",
    429: "Too many requests; `Retry-After` says how long to wait.",
    500: "A defect.",
    502: "A model gave no valid answer.",
    503: "Not possible now. `retryable`: the same request can succeed later; if not, an operator must act.",
}


def generated() -> str:
    """The text of `documents.json`."""
    return json.dumps({"openapi": openapi(), "asyncapi": asyncapi()}, indent=2, ensure_ascii=False) + "\n"


def openapi() -> Schema:
    """The OpenAPI document without operations."""
    models = Models()
    text = {"description": "Metrics", "content": {"text/plain": {"schema": _TEXT}}}
    metrics = {"200": text, **refer_to(TROUBLE[:1])}
    healthy = answers_of(200, _READY, TROUBLE[1:])
    health = (("healthz", "Whether the process is alive."), ("readyz", "Whether the memory can answer."))
    paths = {
        events.EVENTS: {"post": _publish(models), "get": _read(models)},
        events.STREAM: {"get": _stream()},
        JOBS: {"get": _jobs(models)},
        f"{JOBS}/{{id}}": {"get": _job(models)},
        f"{disclosure.PREFIX}/viewer": {"get": _viewer()},
        **{f"/{name}": {"get": described_as(name, summary, [], healthy)} for name, summary in health},
        "/metrics": {"get": described_as("metrics", "Metrics for Prometheus.", [], metrics)},
    }
    problem = {problems.CONTENT_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
    return {
        "openapi": "3.1.0",
        "info": _info(),
        "security": [{}, {"key": []}],
        "paths": paths,
        "components": {
            "schemas": {**models.definitions(), "Problem": _PROBLEM, "EventsPage": _PAGE},
            "responses": {
                "304": {"description": "The client has it: `If-None-Match` names its ETag."},
                **{statuses: {"description": _statuses(statuses), "content": problem} for statuses in TROUBLE},
            },
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key, or a JWT."}},
        },
    }


def _statuses(among: str) -> str:
    """What each status of a range means."""
    return "\n".join(f"- {status}: {text}" for status, text in _TROUBLE.items() if str(status)[0] == among[0])


def asyncapi() -> Schema:
    """The AsyncAPI document of the event streams."""
    models = Models()
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
                    object_of({"reason": {"type": "string", "enum": [*sse.End]}, "problem": _PROBLEM}, "problem"),
                ),
                "Begin": _message(
                    "The event `begin`: where the stream begins. Come back with `start` if none came since.",
                    object_of({"start": _TEXT}),
                ),
                "Gap": _message(
                    "The event `gap`: the views retain no events before `kept_from`; the ledger does.",
                    object_of({"kept_from": _TEXT}),
                ),
            },
        },
    }


def _message(summary: str, payload: Schema) -> Schema:
    return {"summary": summary, "contentType": "application/json", "payload": payload}


def _info() -> Schema:
    return {
        "title": "Recallog",
        "description": "Event-sourced memory for AI agents: one durable ledger, every memory a rebuildable view of it.",
        "license": {"name": "Apache-2.0"},
    }


def _publish(models: Models) -> Schema:
    event = models.of(Event, "validation")
    cloud = object_of({"specversion": {"const": "1.0"}, "id": _TEXT, "source": _TEXT, "type": _TEXT})
    one_or_more = {"anyOf": [event, {"type": "array", "items": event}]}
    summary = "Publish one event, a list of them, or CloudEvents: all or none."
    answers = answers_of(201, models.of(Published, "serialization"), TROUBLE)
    described = described_as("events.publish", summary, [_space()], answers)
    described["requestBody"] = body_of(
        {
            requests.JSON: one_or_more,
            cloudevents.STRUCTURED: cloud,
            cloudevents.BATCHED: {"type": "array", "items": cloud},
        }
    )
    return described


def _read(models: Models) -> Schema:
    given = [_space(), *query_of(models, events.PAGE, but=("space",)), _LAST_EVENT_ID]
    summary = "A page of all events of a space or, with `Accept: text/event-stream`, a tail. Needs the verb `tail`."
    answers = answers_of(200, {"$ref": REF.format(model="EventsPage")}, TROUBLE)
    answers["200"]["content"][sse.MEDIA_TYPE] = {"schema": {"type": "string"}}
    return described_as("events.read", summary, given, answers)


def _stream() -> Schema:
    agent = parameter_of("path", "agent", {"type": "string"}, {"description": "Name of the agent."}, required=True)
    given = [_space(), agent, _START, _LAST_EVENT_ID]
    content = {"description": "The stream.", "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}}}
    summary = "What an agent may see, as it arrives: `text/event-stream`."
    return described_as("events.stream", summary, given, {"200": content, **refer_to(TROUBLE)})


def _jobs(models: Models) -> Schema:
    answers = answers_of(200, models.of(JobsPage, "serialization"), TROUBLE)
    return described_as("jobs", "The jobs of this server: a caller's own, and for operators all.", [], answers)


def _job(models: Models) -> Schema:
    given = [parameter_of("path", "id", {"type": "string"}, {"description": "Id of the job."}, required=True)]
    answers = answers_of(200, models.of(Job, "serialization"), TROUBLE)
    answers["200"]["content"][sse.MEDIA_TYPE] = {"schema": {"type": "string"}}
    return described_as("job", "The progress of a job; with `Accept: text/event-stream`, as a stream.", given, answers)


def _viewer() -> Schema:
    names = ("space", "agent", "q", "anchor_id", "ids")
    given = [parameter_of("query", name, {"type": "string"}, {}, required=False) for name in names]
    summary = "The way to the page of the console that shows these stages to people."
    answers = {"307": {"description": "The page.", "headers": {"Location": {"schema": {"type": "string"}}}}}
    return described_as("disclosure.viewer", summary, given, answers)


def _space() -> Schema:
    described = {"description": "Name of the space; a slash in it is %2F."}
    return parameter_of("path", "space", {"type": "string"}, described, required=True)


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


_START = parameter_of(
    "query",
    "start",
    {"type": "string"},
    {"description": "From this position on; default: from now on."},
    required=False,
)
_LAST_EVENT_ID = parameter_of(
    "header",
    "Last-Event-ID",
    {"type": "string"},
    {"description": "The position of the last event that the client has."},
    required=False,
)
