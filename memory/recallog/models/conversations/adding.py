"""Makes the events of messages that are added to a conversation, one event for each message.

user                  user.injected {"text", "message"} for the agent, by the message's `name`, else by "user"
assistant             agent.spoke {"text", "refusal"?, "message"} by the agent
tool, function        tool.used {"tool", "arguments", "result", "ok", "message"} by the agent
system, developer     message.added {"message"} by the agent; so is a message without a text

Items of OpenAI's Responses API have no role. By their type they are items of the assistant, or results of tools. A
message of the AI SDK has its text in its parts. `form` of the event names these forms.

`message` contains the parts of the message that other fields do not have, so that the message can be restored. A
message that is larger than an event is stored as JSON in `message.part` events before its own event, whose text is cut.
Results of tools in the content of a message, as in Anthropic's API and the AI SDK, are stored as `tool.used` {...,
"within"} events before its own event.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from recallog.messages.blocks import Block, SaidBlock, ToolCall, ToolResult, blocks_of, calls_of, nonempty, result_of
from recallog.messages.mapping import MESSAGE_TIMES, Cast, author_of
from recallog.messages.times import time_in
from recallog_projections.models.conversations import rendering
from recallog_projections.models.conversations.rendering import Message
from recallog_projections.models.conversations.tables import ConversationKey
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import EventTooLarge, InvalidArgument, InvalidEvent
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.roles import ASSISTANT, USER

ROLES = frozenset({USER, ASSISTANT}) | rendering.INSTRUCTIONS | rendering.RESULTS
"""The roles of messages, as OpenAI's chat completions name them."""

_UNKNOWN_TOOL = "unknown"
_SHOWN_OF_LARGE = ("role", "type", "name", "tool_call_id", "call_id")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Draft:
    """The part of an event that follows from a message."""

    kind: str
    agent: str
    fields: dict[str, Any]
    """The payload without `message`."""
    rest: dict[str, Any]
    """`payload.message`."""
    arguments_as_written: str | None = None


def check_message(message: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A message as a JSON object. Raises `InvalidArgument`, which names the field below `path`."""
    try:
        plain = msgspec.json.decode(_encode(message))
    except (msgspec.MsgspecError, TypeError, ValueError, UnicodeError, RecursionError) as error:
        raise InvalidArgument(f"{path}: must be JSON: {error}", path=path, rule="json_type") from None
    if not isinstance(plain, dict):
        raise InvalidArgument(f"{path}: should be a message, an object with a role", path=path, rule="dict_type")
    if rendering.role_in(plain) not in ROLES:
        names = ", ".join(sorted(ROLES))
        role = plain.get("role")
        raise InvalidArgument(f"{path}.role: {role!r} is not one of {names}", path=f"{path}.role", rule="role")
    try:
        _blocks_in(plain)
        calls_of(plain)
    except InvalidEvent as error:
        raise InvalidArgument(f"{path}.{error}", path=f"{path}.{error.path}", rule=error.rule) from None
    return plain


def id_of(conversation: ConversationKey, *key: object) -> str:
    """The id of the event of a message: 32 hex digits that depend on its conversation and on `key`."""
    return f"message-{hashlib.blake2b(_encode([*conversation, *key]), digest_size=16).hexdigest()}"


def calls_by_id(messages: Sequence[Message]) -> dict[str, ToolCall]:
    """The tool calls in messages by their ids; of two calls with one id the later."""
    return {
        call.id: call
        for message in messages
        if rendering.role_in(message) == ASSISTANT
        for call in [*calls_of(message), *_blocks_in(message)]
        if isinstance(call, ToolCall) and call.id is not None
    }


def part_ids(id_: str, count: int) -> list[str]:
    """The ids of the events with the parts of a message."""
    return [f"{id_}/{number}" for number in range(1, count + 1)]


def called_by(message: Message) -> set[str]:
    """The ids of the calls that a message answers."""
    return {result.call_id for result in _results_in(message) if result.call_id is not None}


def says_something(message: Message) -> bool:
    """Whether a message contains more than results of tools."""
    blocks = _blocks_in(message)
    return not blocks or any(not isinstance(block, ToolResult) for block in blocks)


def _blocks_in(message: Message) -> list[Block]:
    """The blocks of a message whose role does not name a tool."""
    form = rendering.form_of(message)
    if form == rendering.ITEM:
        return blocks_of([message])
    return blocks_of(message.get("parts" if form == rendering.UI else "content"))


def _results_in(message: Message) -> list[ToolResult]:
    if rendering.form_of(message) is None and message["role"] in rendering.RESULTS:
        return [result_of(message)]
    return [block for block in _blocks_in(message) if isinstance(block, ToolResult)]


@dataclass(frozen=True, slots=True)
class MessageEvent:
    """The input for the event of a message."""

    conversation: ConversationKey
    message: Message
    id: str
    turn: int
    subject: str | None


def events_of(event: MessageEvent, calls: Mapping[str, ToolCall], path: str) -> list[Event]:
    """The event of a message, after the events of results in its content, and after its parts if it is larger than an
    event. `calls` are the calls that it may answer.

    Raises `InvalidArgument`, which names the field below `path`, and `EventTooLarge` for more than 16 MiB.
    """
    conversation, message = event.conversation, event.message
    draft = _draft(conversation, message, calls)
    if (form := rendering.form_of(message)) is not None:
        draft = replace(draft, fields=draft.fields | {"form": form})
    moment = time_in(message, MESSAGE_TIMES)
    fields = {
        "id": event.id,
        "space": conversation.space,
        "agent": draft.agent,
        "kind": draft.kind,
        "session": conversation.session,
        "turn": event.turn,
        **({} if event.subject is None else {"subject": event.subject}),
        **({} if moment is None else {"at": moment}),
        **({"audience": (conversation.agent,)} if draft.agent != conversation.agent else {}),
    }
    try:
        results = [] if draft.kind == rendering.TOOL_USED else _within(conversation, fields, message, calls)
        try:
            return [*results, _make_event(fields, {**draft.fields, "message": draft.rest}, draft.arguments_as_written)]
        except EventTooLarge:
            return [*results, *_in_parts(conversation, message, fields, draft, path)]
    except EventTooLarge:
        raise
    except InvalidEvent as error:
        raise InvalidArgument(f"{path}: {error}", path=path, rule=error.rule) from None


def _draft(conversation: ConversationKey, message: Message, calls: Mapping[str, ToolCall]) -> _Draft:
    role, content = rendering.role_in(message), message.get("content")
    added = _Draft(rendering.ADDED, conversation.agent, {}, dict(message))
    if role in rendering.INSTRUCTIONS:
        return added
    if role in rendering.RESULTS:
        return _result(conversation, message, calls)
    if rendering.form_of(message) == rendering.ITEM:
        return added
    said = [block for block in _blocks_in(message) if isinstance(block, SaidBlock)]
    refused = [SaidBlock(refusal, refusal=True)] if (refusal := nonempty(message.get("refusal"))) is not None else []
    spoken = said if role == USER else [*said, *refused]
    text = content if isinstance(content, str) and content else "\n".join(block.text for block in spoken)
    if not text.strip():
        return added
    fields: dict[str, Any] = {"text": text}
    if role == ASSISTANT and any(block.refusal for block in spoken):
        fields["refusal"] = True
    rest = {name: value for name, value in message.items() if name not in ("role", "content")}
    if content != text and "content" in message:
        rest["content"] = content
    if role == ASSISTANT:
        return _Draft(rendering.AGENT_SAID, conversation.agent, fields, rest)
    author = author_of(message, Cast(agent=conversation.agent))
    author = author if author != conversation.agent else f"{USER}-of-{conversation.agent}"
    return _Draft(rendering.USER_SAID, author, fields, rest)


def _result(conversation: ConversationKey, message: Message, calls: Mapping[str, ToolCall]) -> _Draft:
    (found, *_), written = _results_in(message), "output" if rendering.form_of(message) else "content"
    fields, call = _answer(found, calls)
    left_out = {written} | ({"role"} if message.get("role") == rendering.TOOL else set())
    rest = {name: value for name, value in message.items() if name not in left_out}
    if not (isinstance(message.get(written), str) and message[written] == found.result):
        rest[written] = message.get(written)
    return _Draft(rendering.TOOL_USED, conversation.agent, fields, rest, call.arguments_as_written)


def _answer(found: ToolResult, calls: Mapping[str, ToolCall]) -> tuple[dict[str, Any], ToolCall]:
    """The payload of a result, and the call that it answers."""
    call = calls.get(found.call_id or "") or ToolCall(found.call_id, found.tool or _UNKNOWN_TOOL)
    arguments = {} if call.arguments is None else {"arguments": call.arguments}
    return {"tool": call.tool, **arguments, "result": found.result, "ok": found.ok}, call


def _within(
    conversation: ConversationKey, fields: Mapping[str, Any], message: Message, calls: Mapping[str, ToolCall]
) -> list[Event]:
    """The events of the results in the content of a message. A large result is cut."""
    common = {name: value for name, value in fields.items() if name != "audience"}
    common |= {"agent": conversation.agent, "kind": rendering.TOOL_USED}
    made: list[Event] = []
    for number, result in enumerate(_results_in(message), 1):
        answer, call = _answer(result, calls)
        of_result, payload = common | {"id": f"{fields['id']}/result-{number}"}, answer | {"within": fields["id"]}
        try:
            made.append(_make_event(of_result, payload, call.arguments_as_written))
        except EventTooLarge:
            made.append(_make_event(of_result, _shorten_payload(payload), None))
    return made


def _make_event(fields: Mapping[str, Any], payload: Mapping[str, Any], arguments_as_written: str | None) -> Event:
    try:
        return codec.make({**fields, "payload": payload})
    except InvalidEvent as error:
        if isinstance(error, EventTooLarge) or arguments_as_written is None:
            raise
        # A model may have written a number that ledgers do not accept, such as 1e999.
        return codec.make({**fields, "payload": {**payload, "arguments": arguments_as_written}})


def _in_parts(
    conversation: ConversationKey, message: Message, fields: dict[str, Any], draft: _Draft, path: str
) -> list[Event]:
    """The parts of a large message, and its event with the beginning of its text."""
    written = _encode(message).decode()
    if len(written.encode()) > conversations_limits.MESSAGE_BYTES_MAX:
        raise EventTooLarge(
            f"{path}: the message has {len(written.encode()):,} bytes, "
            f"the limit is {conversations_limits.MESSAGE_BYTES_MAX:,}; "
            "keep large content elsewhere and put a reference into the message",
            path=path,
            rule="too_large",
        )
    size = conversations_limits.MESSAGE_PART_CHARS
    # Parts have no turn. They may be written without the message's event, and must not change the turn of the next
    # attempt.
    pieces = [written[start : start + size] for start in range(0, len(written), size)]
    common = {name: value for name, value in fields.items() if name not in ("id", "kind", "agent", "audience", "turn")}
    parts = [
        codec.make(
            {
                **common,
                "id": id_,
                "agent": conversation.agent,
                "kind": rendering.PART,
                "payload": {"message": fields["id"], "number": number, "data": piece},
            }
        )
        for number, (id_, piece) in enumerate(zip(part_ids(fields["id"], len(pieces)), pieces, strict=True), 1)
    ]
    stated = {
        "count": len(pieces),
        "chars": rendering.chars_of(message),
        "digest": rendering.digest_of(message),
    }
    # These fields are shown if parts are missing, and to other agents that see the message.
    rest = {name: draft.rest[name] for name in _SHOWN_OF_LARGE if _is_short(draft.rest.get(name))}
    if draft.kind == rendering.ADDED:
        rest["content"] = _beginning(rendering.content_in(message))
    short = _shorten_payload(draft.fields)
    own = codec.make({**fields, "payload": {**short, "message": rest, "parts": stated}})
    return [*parts, own]


def _shorten_payload(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _beginning(value) for name, value in payload.items()}


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= limits.ID_CHARS_MAX


def _beginning(value: Any) -> Any:
    """A text, or another value as JSON, cut so that three of them fit into an event."""
    text = value if isinstance(value, str) else _encode(value).decode()
    return (
        value
        if len(text) <= conversations_limits.MESSAGE_PART_CHARS // 3
        else text[: conversations_limits.MESSAGE_PART_CHARS // 3]
    )
