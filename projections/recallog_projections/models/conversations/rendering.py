"""The messages in events, in the form in which they were added, else in that of OpenAI's chat completions.

An event that `conversation.add` wrote has in `payload.message` what its other fields do not say of its message, and in
`payload.form` its form, if it has a form of its own. Other events of a session are messages too, except for those of
tool results that a message contains (`payload.within`):

user.injected    a message of the user
agent.spoke      a message of the assistant, or, for other agents that see it, of a user with the speaker's name
tool.used        a call by the assistant and its result, with the event's id as the id of the call
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from recallog_schemas import Event
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.roles import ASSISTANT, USER

USER_SAID = "user.injected"
AGENT_SAID = "agent.spoke"
TOOL_USED = "tool.used"
ADDED = "message.added"
PART = "message.part"
REMOVAL = "message.removed"
COMPACTION = "conversation.compacted"

TOOL = "tool"
FUNCTION = "function"
INSTRUCTIONS = frozenset({"system", "developer"})
"""The roles of messages that instruct the model."""
RESULTS = frozenset({TOOL, FUNCTION})
"""The roles of messages with the result of a tool."""

ITEM = "item"
"""The form of an item of OpenAI's Responses API: it has no role, and the result of a tool is its output."""
UI = "ui"
"""The form of a message of the AI SDK: it has parts and no content."""

ROLE_OF: Mapping[str, str] = {USER_SAID: USER, AGENT_SAID: ASSISTANT, TOOL_USED: TOOL}
"""The role of the messages in events of a kind, unless an event says another one."""
ROLE_OF_PLAIN: Mapping[str, str] = {USER_SAID: USER, AGENT_SAID: ASSISTANT, TOOL_USED: ASSISTANT, ADDED: ""}
"""The role of events that were not added as messages; of a call and its result that of the call."""

Message = Mapping[str, Any]
"""A message in the form of OpenAI's chat completions."""

_TEXT = {USER_SAID: "text", AGENT_SAID: "text", TOOL_USED: "result"}
_TEXT_IN: Mapping[str | None, str | None] = {ITEM: "output", UI: None}
"""The field with the text of a message, for forms that have it outside of `content`."""
_OWN_ID = "id"
_PARTS_MAX = conversations_limits.MESSAGE_BYTES_MAX // conversations_limits.MESSAGE_PART_CHARS + 1
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def is_added(event: Event) -> bool:
    """Whether the event is a message that was added to a conversation."""
    return isinstance(event.payload.get("message"), dict)


def form_of(message: Message) -> str | None:
    """The form of a message that has one of its own; None for those of chat completions and of Anthropic."""
    if "role" not in message:
        return ITEM if isinstance(message.get("type"), str) else None
    return UI if "content" not in message and isinstance(message.get("parts"), list | tuple) else None


def role_in(message: Message) -> str:
    """The role of a message; an item has the role of its author."""
    if form_of(message) == ITEM:
        return TOOL if message["type"].endswith("_output") else ASSISTANT
    role = message.get("role")
    return role if isinstance(role, str) else ""


def content_in(message: Message) -> object:
    """The content of a message: a text or a list of parts, if it has any."""
    return message.get({ITEM: "output", UI: "parts"}.get(form_of(message) or "", "content"))


def answers_calls(message: Message) -> bool:
    """Whether a message has results of tools that an earlier one has called."""
    role, content = role_in(message), message.get("content")
    parts = content if role == USER and isinstance(content, list | tuple) else ()
    return role in RESULTS or "tool_result" in [part.get("type") for part in parts if isinstance(part, Mapping)]


def is_within(event: Event) -> bool:
    """Whether the event is of a tool result that a message contains, and therefore is not a message."""
    return isinstance(event.payload.get("within"), str)


def parts_of(event: Event) -> int:
    """The number of parts of a message that is larger than its event; 0 for other messages."""
    parts = event.payload.get("parts")
    count = parts.get("count") if isinstance(parts, Mapping) and is_added(event) else None
    return count if type(count) is int and 0 < count <= _PARTS_MAX else 0


def whole_of(written: str, digest: str) -> dict[str, Any] | None:
    """The large message in the joined text of its parts; None if it does not have this digest."""
    try:
        message = msgspec.json.decode(written)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return message if isinstance(message, dict) and digest_of(message) == digest else None


def messages_of(event: Event, reader: str) -> list[dict[str, Any]]:
    """The message in an event as `reader` sees it: one, or a call and its result; the beginning of a large one."""
    payload = event.payload
    if is_added(event):
        rest = dict(payload["message"])
        form = payload.get("form")
        if event.kind == ADDED:
            return [rest if form == ITEM else rest | {"role": role_of(event)}]
        rest.pop("role", None)
        message: dict[str, Any] = {} if form == ITEM else {"role": role_of(event)}
        if event.kind == AGENT_SAID and event.agent != reader:
            return [_of_other(event)]
        where = _TEXT_IN.get(form, "content")
        if where is not None and where not in rest:
            message[where] = payload.get(_TEXT[event.kind])
        return [message | rest]
    if event.kind == USER_SAID:
        named = {} if event.agent == USER else {"name": event.agent}
        return [{"role": USER, "content": event.text} | named]
    if event.kind == AGENT_SAID:
        return [{"role": ASSISTANT, "content": event.text} if event.agent == reader else _of_other(event)]
    function = {"name": payload["tool"], "arguments": _as_text(payload.get("arguments"), "{}")}
    call = {"id": event.id, "type": "function", "function": function}
    return [
        {"role": ASSISTANT, "content": None, "tool_calls": [call]},
        {"role": TOOL, "tool_call_id": event.id, "content": _outcome(payload)},
    ]


def role_of(event: Event) -> str:
    """The role of a message that was added, in the conversation of its author. Messages from others have the role
    of their kind: no agent may instruct the model of another one."""
    role = event.payload["message"].get("role")
    if event.kind == ADDED:
        if event.payload.get("form") == ITEM:
            return role_in(event.payload["message"])
        return role if isinstance(role, str) else ""
    return FUNCTION if event.kind == TOOL_USED and role == FUNCTION else ROLE_OF[event.kind]


def chars_of(message: Message) -> int:
    """The characters of a message that a model reads as text: its content, and the calls of tools in it."""
    content = content_in(message)
    texts: list[object] = [message.get("refusal")]
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, Sequence):
        texts += [part.get("text") for part in content if isinstance(part, Mapping)]
    for call in calls_in(message):
        texts += [call.get("name"), call.get("arguments")]
    return sum(len(text) for text in texts if isinstance(text, str))


def calls_in(message: Message) -> list[Mapping[str, Any]]:
    """The functions in the calls of a message."""
    calls = message.get("tool_calls")
    listed = calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ()
    functions = [call.get("function") for call in listed if isinstance(call, Mapping)]
    return [each for each in (*functions, message.get("function_call")) if isinstance(each, Mapping)]


def digest_of(message: Message) -> str:
    """32 hex digits that equal messages have in common, whatever their ids. A field that is null counts as absent."""
    fields = {name: value for name, value in message.items() if value is not None and name != _OWN_ID}
    return hashlib.blake2b(_encode_sorted(fields), digest_size=16).hexdigest()


def _of_other(event: Event) -> dict[str, Any]:
    return {"role": USER, "name": event.agent, "content": event.text}


def _outcome(payload: Mapping[str, Any]) -> str:
    """The result of a call, for a model."""
    texts = [_as_text(payload.get(name)) for name in ("error", "result")]
    return "\n".join(text for text in texts if text)


def _as_text(value: object, absent: str = "") -> str:
    """A text as it is, and any other JSON value as JSON."""
    if value is None:
        return absent
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
