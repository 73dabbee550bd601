"""Spans and log records of OpenTelemetry in OTLP JSON, with the messages of the semantic conventions for GenAI.

The messages of a request and its response are attributes (`gen_ai.input.messages`, `gen_ai.output.messages`,
`gen_ai.system_instructions`), events of the span or log records (`gen_ai.user.message`, `gen_ai.choice`, …), or
attributes with numbers (`gen_ai.prompt.0.content`). The calls of models are read. Spans of
agents and tools, which repeat them, are only counted, unless the file has no others. `gen_ai.conversation.id` or the
trace names the conversation; the module `exchanges` joins the calls of a conversation.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recallog.messages.blocks import LeftOutBlock
from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import FoundMessages, reader
from recallog_service.formats.exchanges import Exchange, conversations_of
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import objects
from recallog_service.formats.response_items import left_out
from recallog_service.formats.structure import Structure

_EXPECTED = "OTLP JSON of OpenTelemetry: objects with resourceSpans or resourceLogs"
_STRUCTURE = Structure([{"resourceSpans": "<list>"}, {"resourceLogs": "<list>"}])
_NUMBERED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(role|content|tool_calls|name|tool_call_id)")
_OF_AGENTS = ("invoke_agent", "create_agent", "execute_tool", "invoke_workflow")


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    spans = sorted(_spans(found), key=lambda span: str(span.get("startTimeUnixNano") or span.get("timeUnixNano") or ""))
    exchanges = [_exchange(span) for span in spans]
    if any(isinstance(each, Exchange) and each.fields["operation"] not in _OF_AGENTS for each in exchanges):
        exchanges = [
            left_out(each.fields["operation"])
            if isinstance(each, Exchange) and each.fields["operation"] in _OF_AGENTS
            else each
            for each in exchanges
        ]
    return conversations_of([*exchanges, *(each for each in found if isinstance(each, InvalidEvent))])


def _spans(found: Sequence[object]) -> Iterator[dict[str, Any]]:
    """The spans; the log records of a span are combined into one."""
    logs: dict[object, dict[str, Any]] = {}
    for document in objects(found):
        for resource in objects(document.get("resourceSpans")):
            for scope in objects(resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")):
                yield from objects(scope.get("spans"))
        for resource in objects(document.get("resourceLogs")):
            for scope in objects(resource.get("scopeLogs")):
                for record in objects(scope.get("logRecords")):
                    span = logs.setdefault(record.get("spanId") or id(record), {**record, "events": []})
                    span["events"].append(record)
    yield from logs.values()


def _exchange(span: Mapping[str, Any]) -> Exchange | LeftOutBlock:
    fields = _attributes(span)
    asked = [*_system(fields.get("gen_ai.system_instructions")), *_messages(fields.get("gen_ai.input.messages"))]
    said = _messages(fields.get("gen_ai.output.messages"))
    for event in objects(span.get("events")):
        own = _attributes(event)
        body = _plain(event.get("body"))
        own |= body if isinstance(body, dict) else {}
        name = str(event.get("eventName") or event.get("name") or own.get("event.name"))
        if name == "gen_ai.choice":
            message = _parse_json(own.get("message"))
            said.append({"role": "assistant", **(message if isinstance(message, dict) else own)})
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked.append(_message({"role": name.split(".")[1], **own}))
        else:
            asked += [*_system(own.get("gen_ai.system_instructions")), *_messages(own.get("gen_ai.input.messages"))]
            said += _messages(own.get("gen_ai.output.messages"))
    for which, messages in (("prompt", asked), ("completion", said)):
        messages += _read_numbered(fields, which)
    operation = str(fields.get("gen_ai.operation.name") or span.get("name") or "log_record")
    if not asked and not said:
        return left_out(operation)
    end = span.get("endTimeUnixNano") or span.get("timeUnixNano")
    conversation = fields.get("gen_ai.conversation.id") or fields.get("session.id") or span.get("traceId")
    return Exchange(
        asked,
        [{"created_at": end, **each} if isinstance(each, dict) else each for each in said],
        {"operation": operation, "user_id": fields.get("user.id")},
        conversation if isinstance(conversation, str) else None,
        time=span.get("startTimeUnixNano") or end,
    )


def _read_numbered(fields: Mapping[str, Any], which: str) -> list[object]:
    found: dict[int, dict[str, Any]] = {}
    for name, value in fields.items():
        if (match := _NUMBERED.fullmatch(name)) and match[1] == which:
            found.setdefault(int(match[2]), {"role": "assistant" if which == "completion" else "user"})[match[3]] = (
                value
            )
    return [found[number] for number in sorted(found)]


def _messages(value: object) -> list[object]:
    value = _parse_json(value)
    return [_message(each) if isinstance(each, dict) else each for each in value] if isinstance(value, list) else []


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """A message with parsed calls, and with results as its parts."""
    has_results = message.get("role") == "tool" and "parts" in message
    calls = _parse_json(message.get("tool_calls"))
    more: dict[str, Any] = {"tool_calls": calls} if isinstance(calls, list) else {}
    if message.get("role") == "tool" and not has_results and "tool_call_id" not in message:
        more["tool_call_id"] = message.get("id")
    return {**message, **more} | ({"role": "user"} if has_results else {})


def _system(value: object) -> list[object]:
    value = _parse_json(value)
    return [{"role": "system", "content": value}] if value else []


def _attributes(place: Mapping[str, Any]) -> dict[str, Any]:
    return {str(each.get("key")): _plain(each.get("value")) for each in objects(place.get("attributes"))}


def _plain(value: object) -> Any:
    """The Python value of an `AnyValue` of OTLP."""
    match value:
        case {"kvlistValue": {"values": list(pairs)}}:
            return {str(each.get("key")): _plain(each.get("value")) for each in objects(pairs)}
        case {"arrayValue": {"values": list(values)}}:
            return list(map(_plain, values))
    return next(iter(value.values()), None) if isinstance(value, dict) else value


def _parse_json(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("[", "{") else value
    except (ValueError, RecursionError):
        return value


FORMAT = Format(
    "opentelemetry",
    "spans and logs of OpenTelemetry with messages of GenAI (OTLP JSON)",
    _STRUCTURE,
    reader(_EXPECTED, _find, _STRUCTURE),
    "messages, reasoning, tool calls with their results, system instructions; each once",
    "spans without messages, spans of agents and tools that repeat the calls of models",
)
