"""Logs of Anthropic's API: messages, with their requests if the log has them.

A record is a response (`"type": "message"`), a request and its response (`request` and `response`, or the request's
fields beside the response), or a line of a batch (`custom_id` with `params`, or with `result`). Bodies may be JSON in a
string. Errors, and requests of a batch that were cancelled or expired, are counted. The module `exchanges` says which
records are one conversation. Files of `messages` alone are `chat`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from recallog import InvalidEvent
from recallog_formats.openai import about, configuration, first_of, first_text, parts_of, text_of
from recallog_service.formats import (
    Exchange,
    Format,
    FoundMessages,
    LeftOutBlock,
    Options,
    conversations_of,
    left_out,
    reader,
    structure_of,
)

_EXPECTED = "requests or responses of Anthropic's API"
_CONVERSATION_FIELDS = ("custom_id", "conversation_id", "session_id", "thread_id", "chat_id")
_TIMES = ("created_at", "timestamp", "time", "start_time", "request_time")


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    return conversations_of(_exchange(record) for record in found)


def _exchange(record: object) -> Exchange | InvalidEvent | LeftOutBlock:
    if isinstance(record, InvalidEvent):
        return record
    if not isinstance(record, dict):
        return InvalidEvent("not a record of Anthropic's API: not an object", rule="dict_type")
    request, response, reason = _parts(record)
    messages = request.get("messages")
    asked = [*configuration(request.get("system")), *(messages if isinstance(messages, list) else [])]
    said = [{"role": "assistant", "content": response.get("content")}] if _is_response(response) else []
    if not asked and not said:
        return left_out(reason or str(record.get("type") or "record_without_messages"))
    return Exchange(
        asked,
        said,
        about(record, request),
        first_text(record, _CONVERSATION_FIELDS),
        text_of(response.get("id")) or text_of(record.get("id")),
        None,
        first_of((response, record), _TIMES),
        [reason] if reason else [],
    )


def _parts(record: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any], str | None]:
    """The request, the response, and why there is no response."""
    result = record.get("result")
    if isinstance(result, dict) and "custom_id" in record:
        message = result.get("message")
        if isinstance(message, dict):
            return {}, message, None
        return {}, {}, f"{result.get('type') or 'unknown'}_request"
    request, response = parts_of(record)
    failed = bool(record.get("error")) or response.get("type") == "error"
    return request, response, "error_response" if failed else None


def _is_response(response: Mapping[str, Any]) -> bool:
    return response.get("type") == "message" and isinstance(response.get("content"), list | str)


FORMAT = Format(
    "anthropic",
    "requests and responses of Anthropic's API, also of batches",
    structure_of("anthropic"),
    reader(_EXPECTED, _find, structure_of("anthropic")),
    "messages, reasoning, tool calls; of each request what earlier ones do not say",
    "errors, requests that were cancelled or expired",
)
