"""Messages that LangChain and LangGraph write as JSON.

A message is `{"type": "human", "data": {...}}` (messages_to_dict), `{"lc": 1, "type": "constructor", "id": [...,
"HumanMessage"], "kwargs": {...}}` (dumpd), or its fields (`model_dump`): `{"type": "human", "content": ...}`. A
conversation is a list of messages, a state with `messages`, a snapshot with `values`, or a checkpoint with
`channel_values`, alone or beside its `config`. The `thread_id` names it. Of several states of one thread the longest is
read, and the others are counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from recallog_schemas.errors import InvalidEvent
from recallog_service.formats.conversation_file import Found, reader
from recallog_service.formats.conversations import Conversation
from recallog_service.formats.format import Format, Options
from recallog_service.formats.guess import objects, wrong_format
from recallog_service.formats.response_items import left_out
from recallog_service.formats.source import Sample

_EXPECTED = "messages of LangChain or LangGraph"
_TYPES = {
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function",
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "FunctionMessage": "function", "HumanMessageChunk": "user", "AIMessageChunk": "assistant",
    "SystemMessageChunk": "system", "ToolMessageChunk": "tool", "FunctionMessageChunk": "function",
}  # fmt: skip
_WITH_A_ROLE = ("chat", "ChatMessage", "ChatMessageChunk")
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk"})
"""Blocks of a content that repeat the calls of its message."""
_STATES = ("channel_values", "values", "checkpoint", "state", "output")
_MORE = ("reasoning_content", "refusal", "timestamp", "created_at")
"""Fields of `additional_kwargs` that are read."""
_DEPTH_MAX = 4
_OTHER_STATE = "earlier_state_of_the_thread"


def _find(found: Sequence[object], _options: Options) -> Found:
    if found and not any(_recognised(each) for each in found):
        raise wrong_format(_EXPECTED, found)
    if _is_message(next((each for each in found if isinstance(each, dict)), None)):
        return Found([Conversation(1, {}, [_message(each) for each in found])])
    conversations: list[Conversation | InvalidEvent] = []
    of_threads: dict[str, int] = {}
    repeated: list[str] = []
    for document in found:
        each = _conversation(len(conversations) + 1, document)
        thread = each.fields.get("thread_id") if isinstance(each, Conversation) else None
        if not isinstance(each, Conversation) or not isinstance(thread, str):
            conversations.append(each)
            continue
        before = of_threads.setdefault(thread, len(conversations))
        if before == len(conversations):
            conversations.append(each)
            continue
        other = conversations[before]
        shorter, longer = sorted((other, each), key=_length)
        if isinstance(shorter, Conversation) and isinstance(longer, Conversation) and _continues(longer, shorter):
            kept = Conversation(before + 1, longer.fields, longer.messages)
            conversations[before] = kept
            repeated.append(_OTHER_STATE)
        else:
            conversations.append(each)  # another branch of the thread, under the same name: it is refused
    return Found(conversations, repeated)


def _conversation(number: int, document: object) -> Conversation | InvalidEvent:
    if isinstance(document, InvalidEvent):
        return document
    messages = document if isinstance(document, list) else _messages(document)
    if messages is None:
        return InvalidEvent("neither a list of messages nor a state with messages", path="messages")
    fields = document if isinstance(document, dict) else {}
    thread = _thread(fields)
    about = {**fields, "thread_id": thread} if thread else fields
    # The id of a checkpoint names one state of the thread, not the conversation.
    kept = {name: value for name, value in about.items() if name != "id" or not (thread or "channel_values" in fields)}
    return Conversation(number, kept, [_message(each) for each in messages])


def _messages(document: object, depth: int = _DEPTH_MAX) -> list[object] | None:
    """The messages of a state or a checkpoint."""
    if not isinstance(document, dict) or depth == 0:
        return None
    messages = document.get("messages")
    if isinstance(messages, list):
        return messages
    inner = (_messages(document.get(name), depth - 1) for name in _STATES)
    return next((each for each in inner if each is not None), None)


def _thread(document: Mapping[str, Any]) -> str | None:
    """The thread that a state belongs to: its own field, or that of its config or checkpoint."""
    places: list[object] = [document, document.get("config"), document.get("checkpoint"), document.get("metadata")]
    config = document.get("config")
    if isinstance(config, dict):
        places.insert(1, config.get("configurable"))
    threads = (place.get("thread_id") for place in places if isinstance(place, dict))
    return next((str(each) for each in threads if isinstance(each, str | int) and str(each)), None)


def _length(each: Conversation | InvalidEvent) -> int:
    return len(each.messages) if isinstance(each, Conversation) else 0


def _continues(longer: Conversation, shorter: Conversation) -> bool:
    try:
        return list(longer.messages[: len(shorter.messages)]) == list(shorter.messages)
    except RecursionError:
        return False


def _message(value: object) -> object:
    """A message with a role, as `recallog.conversations.messages` reads it."""
    if not isinstance(value, dict) or "role" in value:
        return value
    kind, fields = _kind(value)
    if kind in _WITH_A_ROLE:
        return {**fields, "role": fields.get("role")}
    if kind not in _TYPES:
        return left_out(kind) if kind else value
    more = fields.get("additional_kwargs")
    more = more if isinstance(more, dict) else {}
    calls = [*objects(fields.get("tool_calls")), *objects(fields.get("invalid_tool_calls"))]
    calls = calls or objects(more.get("tool_calls"))
    kept = {name: fields[name] for name in ("id", "name", "tool_call_id", "status") if name in fields}
    kept |= {name: more[name] for name in _MORE if name in more}
    if not calls and "function_call" in more:
        kept["function_call"] = more["function_call"]
    message = {**kept, "role": _TYPES[kind], "content": _content(fields.get("content"), bool(calls))}
    return message | ({"tool_calls": calls} if calls else {})


def _kind(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The type of a message, and its fields."""
    kind, id_ = value.get("type"), value.get("id")
    if kind == "constructor" and isinstance(id_, list) and id_ and isinstance(value.get("kwargs"), dict):
        return str(id_[-1]), value["kwargs"]
    if isinstance(value.get("data"), dict):
        return str(kind), value["data"]
    return str(kind) if isinstance(kind, str) else "", value


def _content(content: object, has_calls: bool) -> object:
    if not has_calls or not isinstance(content, list):
        return content
    return [part for part in content if not (isinstance(part, dict) and part.get("type") in _CALLS)]


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or "role" in value:
        return False
    kind, fields = _kind(value)
    return (kind in _TYPES or kind in _WITH_A_ROLE) and "content" in fields


def _recognised(document: object) -> bool:
    messages = document if isinstance(document, list) else _messages(document)
    if messages is None:
        return _is_message(document)
    return any(map(_is_message, messages)) or (isinstance(document, dict) and "channel_values" in document)


def _recognises(sample: Sample) -> bool:
    return any(_recognised(each) for each in sample.documents[:20])


FORMAT = Format(
    "langchain",
    "messages of LangChain, states and checkpoints of LangGraph",
    _recognises,
    reader(_EXPECTED, _find),
)
