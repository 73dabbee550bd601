"""Messages that LangChain and LangGraph write as JSON.

A message is `{"type": "human", "data": {...}}` (messages_to_dict), `{"lc": 1, "type": "constructor", "id": [...,
"HumanMessage"], "kwargs": {...}}` (dumpd), or its fields (`model_dump`): `{"type": "human", "content": ...}`. A
conversation is a list of messages, a state with `messages`, a snapshot with `values`, or a checkpoint with
`channel_values`, alone or beside its `config`. The `thread_id` names it. If a thread has several states, the longest is
read, and the others are counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from recallog import InvalidEvent
from recallog_service.formats import (
    MESSAGE_TIMES,
    FileConversation,
    Format,
    FoundMessages,
    LeftOutBlock,
    Options,
    Structure,
    left_out,
    objects,
    reader,
    structure_of,
)

_EXPECTED = "messages of LangChain or LangGraph"
_TYPES = {
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "function",
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
    "FunctionMessage": "function", "HumanMessageChunk": "user", "AIMessageChunk": "assistant",
    "SystemMessageChunk": "system", "ToolMessageChunk": "tool", "FunctionMessageChunk": "function",
}  # fmt: skip
_WITH_A_ROLE = ("chat", "ChatMessage", "ChatMessageChunk")
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk")
"""Blocks of a content that repeat the calls of its message."""
_STATES = ("channel_values", "values", "checkpoint", "state", "output")
_MORE = ("reasoning_content", "refusal", "timestamp", "created_at")
"""Fields of `additional_kwargs` that are read."""
_DEPTH_MAX = 4
_WITH_TYPES = Structure([*structure_of("langchain").patterns, {"**": {"role": "<none>", "type": [*_TYPES]}}])
"""Also matches types that records of other programs have. They do not suffice to recognise a file."""
_EARLIER = "earlier_state_of_the_thread"


def _find(found: Sequence[object], _options: Options) -> FoundMessages:
    if _is_message(next((each for each in found if isinstance(each, dict)), None)):
        return FoundMessages([FileConversation(1, {}, [_message(each) for each in found])])
    read = [_state(document) for document in found]
    threads: dict[str, list[FileConversation]] = {}
    for each in read:
        if isinstance(each, FileConversation) and isinstance(thread := each.fields.get("thread_id"), str):
            threads.setdefault(thread, []).append(each)
    merged = {thread: _merged(states) for thread, states in threads.items()}
    conversations: list[FileConversation | InvalidEvent] = []
    left: list[str] = [each.type for each in read if isinstance(each, LeftOutBlock)]
    for each in read:
        if isinstance(each, FileConversation) and isinstance(thread := each.fields.get("thread_id"), str):
            conversations += merged.pop(thread, [])
        elif not isinstance(each, LeftOutBlock):
            conversations.append(each)
    kept = sum(isinstance(each, FileConversation) for each in conversations)
    left += [_EARLIER] * (sum(isinstance(each, FileConversation) for each in read) - kept)
    numbered = [
        replace(each, number=number) if isinstance(each, FileConversation) else each
        for number, each in enumerate(conversations, 1)
    ]
    return FoundMessages(numbered, left)


def _merged(states: Sequence[FileConversation]) -> list[FileConversation]:
    """One conversation of the states of a thread, whose messages have the times of the first states that have them.

    States that do not continue each other are branches. They are returned unchanged, and are refused under one name.
    """
    ordered = sorted(states, key=lambda state: len(state.messages))
    if len(ordered) == 1 or not all(_continues(after, before) for before, after in pairwise(ordered)):
        return ordered
    messages: list[object] = []
    for state in ordered:
        messages += [_dated(each, state.fields.get("created_at")) for each in state.messages[len(messages) :]]
    fields = {**ordered[-1].fields, "created_at": ordered[0].fields.get("created_at")}
    return [FileConversation(1, fields, messages)]


def _dated(message: object, time: object) -> object:
    if not isinstance(message, dict) or time is None or any(name in message for name in MESSAGE_TIMES):
        return message
    return {**message, "created_at": time}


def _state(document: object) -> FileConversation | InvalidEvent | LeftOutBlock:
    if isinstance(document, InvalidEvent):
        return document
    fields = document if isinstance(document, dict) else {}
    messages = document if isinstance(document, list) else _messages(document)
    if messages is None:
        if any(isinstance(fields.get(name), dict) for name in _STATES):
            return LeftOutBlock("state_without_messages")
        return InvalidEvent("neither a list of messages nor a state with messages", path="messages")
    thread, checkpoint = _thread(fields), fields.get("checkpoint")
    # The id of a checkpoint names one state of the thread, not the conversation.
    known = {
        name: value for name, value in fields.items() if name != "id" or not (thread or "channel_values" in fields)
    }
    if thread:
        known["thread_id"] = thread
    time = checkpoint.get("ts") if isinstance(checkpoint, dict) else fields.get("ts")
    if known.get("created_at") is None and time is not None:
        known["created_at"] = time
    return FileConversation(1, known, [_message(each) for each in messages])


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


def _continues(longer: FileConversation, shorter: FileConversation) -> bool:
    try:
        return list(longer.messages[: len(shorter.messages)]) == list(shorter.messages)
    except RecursionError:
        return False


def _message(value: object) -> object:
    """A message with a role, as `recallog.messages.mapping` reads it."""
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


FORMAT = Format(
    "langchain",
    "messages of LangChain, states and checkpoints of LangGraph",
    structure_of("langchain"),
    reader(_EXPECTED, _find, _WITH_TYPES),
    "messages, reasoning, tool calls with their results",
    "earlier states of a thread, states without messages",
)
