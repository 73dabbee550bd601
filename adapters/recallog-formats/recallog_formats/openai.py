"""Logs of OpenAI's API: chat completions and responses, with their requests if the log has them.

A record is a response ("chat.completion", "response"), a request and its response (`request` and `response`, or the
request's fields beside the response), a line of a batch (`custom_id` with `body`, or with `response`), or an example
for preference tuning (`input`, `preferred_output`). Bodies may be JSON in a string. A list object of the API is its
`data`.

The first choice is read; other choices, answers that were not preferred, chunks of a stream and errors are counted.
The module `exchanges` says which records are one conversation. Files of `messages` alone are `chat`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from recallog import InvalidEvent
from recallog_service.formats import (
    Exchange,
    Format,
    FoundMessages,
    LeftOutBlock,
    Options,
    conversations_of,
    left_out,
    messages_of_item,
    reader,
    structure_of,
)

_EXPECTED = "requests or responses of OpenAI's API"
_COMPLETION, _CHUNK, _RESPONSE = "chat.completion", "chat.completion.chunk", "response"
_CONVERSATION_FIELDS = ("custom_id", "conversation_id", "session_id", "thread_id", "chat_id")
_TIMES = ("created", "created_at", "timestamp", "time", "start_time", "request_time")
_ERROR, _OTHER_CHOICE, _NOT_PREFERRED = "error_response", "other_choice", "non_preferred_output"


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    return conversations_of(_exchange(record) for record in _records(found))


def _records(found: Sequence[object]) -> Iterator[object]:
    for each in found:
        if isinstance(each, dict) and each.get("object") == "list" and isinstance(each.get("data"), list):
            yield from each["data"]
        else:
            yield each


def _exchange(record: object) -> Exchange | InvalidEvent | LeftOutBlock:
    if isinstance(record, InvalidEvent):
        return record
    if not isinstance(record, dict):
        return InvalidEvent("not a record of OpenAI's API: not an object", rule="dict_type")
    if record.get("object") == _CHUNK:
        return LeftOutBlock(_CHUNK)
    if isinstance(record.get("input"), dict) and "preferred_output" in record:
        return _preference(record)
    request, response = parts_of(record)
    asked = [*configuration(request.get("instructions") or response.get("instructions")), *_asked(request)]
    said, reasons = _said(response)
    if record.get("error") or response.get("error"):
        reasons.append(_ERROR)
    if not asked and not said:
        return left_out(reasons[0] if reasons else str(record.get("object") or "record_without_messages"))
    conversation = response.get("conversation") or request.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return Exchange(
        asked,
        said,
        about(record, request),
        text_of(conversation) or first_text(record, _CONVERSATION_FIELDS),
        text_of(response.get("id")) or text_of(record.get("id")),
        text_of(request.get("previous_response_id")) or text_of(response.get("previous_response_id")),
        first_of((response, record), _TIMES),
        reasons,
    )


def _preference(record: Mapping[str, Any]) -> Exchange:
    preferred = record["preferred_output"]
    reasons = [_NOT_PREFERRED] if record.get("non_preferred_output") else []
    return Exchange(
        _asked(record["input"]), preferred if isinstance(preferred, list) else [preferred], {}, left_out=reasons
    )


def parts_of(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The bodies of the request and of the response of a record; empty ones if it has none."""
    if "request" in record or "response" in record:
        request = _body(record.get("request"))
        return request or (record if "messages" in record or "input" in record else {}), _body(record.get("response"))
    if "body" in record:
        return _body(record), {}
    if "params" in record:
        return _body(record["params"]), {}
    is_request = "messages" in record or "input" in record
    return record if is_request else {}, record


def _body(value: object) -> Mapping[str, Any]:
    """An object, parsed if it is a string; its `body`, if it has one."""
    for _ in range(3):
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                return {}
        if isinstance(value, dict) and "body" in value:
            value = value["body"]
    return value if isinstance(value, dict) else {}


def _asked(request: Mapping[str, Any]) -> list[object]:
    messages, given = request.get("messages"), request.get("input")
    if isinstance(messages, list):
        return messages
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, list):
        return [each for item in given for each in (messages_of_item(item) if isinstance(item, dict) else [item])]
    return []


def _said(response: Mapping[str, Any]) -> tuple[list[object], list[str]]:
    """The messages of a response, and the parts of it that are left out."""
    choices, output = response.get("choices"), response.get("output")
    if isinstance(choices, list):
        messages = [choice.get("message") for choice in choices if isinstance(choice, dict)]
        said = [{"role": "assistant", **each} if isinstance(each, dict) else each for each in messages[:1] if each]
        return said, [_OTHER_CHOICE] * len(choices[1:])
    if isinstance(output, list):
        return [each for item in output for each in (messages_of_item(item) if isinstance(item, dict) else [item])], []
    return [], []


def about(record: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """The data in a record about its conversation, without the messages and the ids of records."""
    said = (
        "messages", "input", "id", "request", "response", "body", "choices", "output", "params", "reward", "system",
    )  # fmt: skip
    known = {**record, **request}
    return {name: value for name, value in known.items() if name not in said and name not in _TIMES}


def configuration(text: object) -> list[object]:
    """The message that configures the agent with a `system` text or `instructions`; empty without a text."""
    return [{"role": "system", "content": text}] if isinstance(text, str | list) and text else []


def first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str | None:
    return next((text for name in names if (text := text_of(fields.get(name)))), None)


def first_of(places: Sequence[Mapping[str, Any]], names: Sequence[str]) -> object:
    return next((place[name] for place in places for name in names if place.get(name) is not None), None)


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


FORMAT = Format(
    "openai",
    "requests and responses of OpenAI's API, also of batches",
    structure_of("openai"),
    reader(_EXPECTED, _find, structure_of("openai")),
    "messages, reasoning, tool calls; of each request what earlier ones do not say",
    "other choices, answers that were not preferred, chunks of streams, errors",
)
