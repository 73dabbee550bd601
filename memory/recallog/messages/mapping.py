"""Maps the messages of one conversation to drafts of events; `blocks` says which forms of content are read.

system, developer           agent.configured {"persona"} of the assistant
user                        user.injected {"text", "name"?, "message_id"?} by the message's `name`, else by "user"
assistant                   agent.spoke {"text", "name"?, "refusal"?, "message_id"?} and agent.thought, in their order
human; ai, model, bot       as user; as assistant
a tool call                 tool.used {"tool", "arguments", "ok": false, "error"} by "assistant"
tool, function (a result)   completes its call: tool.used {"tool", "arguments", "result", "ok"} by "assistant"

Memories that Recallog added to a message, and calls of its tools, are left out.

A tool.used event has the position of the result, because the agent knew it only then. A call without a result has the
position of the call, with `ok` false and the error "no result".
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, TypeGuard

from recallog.messages.blocks import (
    Block,
    LeftOutBlock,
    SaidBlock,
    Thought,
    ToolCall,
    ToolResult,
    blocks_of,
    calls_of,
    nonempty,
    result_of,
)
from recallog.messages.recalled import is_own_tool, strip_memories
from recallog.messages.times import time_in
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.names import in_nfc, is_name
from recallog_schemas.roles import ASSISTANT, USER

_UNANSWERED = {"ok": False, "error": "no result"}

MESSAGE_TIMES = ("timestamp", "created_at", "create_time", "at", "createdAt", "date", "time", "ts")
_OTHER_ROLES = {"human": USER, "ai": ASSISTANT, "model": ASSISTANT, "bot": ASSISTANT}
_ROLES_AS_TYPES = ("human", "ai", "system", "tool", "function")
_NAME_CHARS_MAX = 50
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")


@dataclass(frozen=True, slots=True)
class Cast:
    """The participants of a conversation."""

    agent: str = ASSISTANT
    """The agent whose messages have the role `assistant`."""
    writer: str = USER
    """The author of messages with the role `user` that have no name."""
    kind: str = "user.injected"
    """The kind of the event."""
    audience: tuple[str, ...] = ()
    """Further readers of the events."""


CAST = Cast()


@dataclass(frozen=True, slots=True)
class Draft:
    """An event without its space, session and id, which the conversation gives it."""

    location: str
    turn: int
    agent: str
    kind: str
    payload: dict[str, Any]
    key: tuple[str, ...]
    """The id depends on this key and on the number of earlier drafts of the conversation with the same key."""
    at: datetime | None = None
    """The message's own time, if it has one."""
    arguments_as_written: str | None = None
    """The text of a tool call's arguments, written if the ledger refuses the parsed ones."""
    audience: tuple[str, ...] = ()
    awaits_result: bool = False
    """Whether it is a call that a later result can name."""


@dataclass(frozen=True, slots=True)
class MessageRefusal:
    """A message that cannot be read. It takes one second, like a draft."""

    location: str
    error: InvalidEvent


@dataclass(frozen=True, slots=True)
class Omission:
    """A block of a message that is not stored in an event, by its type."""

    type: str


_EMPTY = Omission("empty_message")
_OPEN = Omission("call_without_a_result_yet")
_RECALLED = Omission("recalled")


@dataclass(frozen=True, slots=True)
class _OpenCall:
    call: ToolCall
    draft_index: int
    draft: Draft


@dataclass(slots=True)
class Dialogue:
    """The drafts so far. `turn` is 0 until the user speaks, and increases by one with each message of the user."""

    cast: Cast
    turn: int = 0
    drafts: list[Draft | MessageRefusal | Omission | None] = field(default_factory=list)
    unanswered: list[_OpenCall] = field(default_factory=list)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The calls so far, by the values on which their keys depend."""
    by_position: bool = False
    """Whether keys depend on the position of a message instead of its content."""
    unit: str = "message"

    def location(self, ordinal: int) -> str:
        return f"{self.unit} {ordinal}"


@dataclass(slots=True)
class _Message:
    """The fields that the drafts of one message share."""

    dialogue: Dialogue
    ordinal: int
    fields: dict[str, Any]
    agent: str
    kind: str
    text_field: str
    said: list[SaidBlock] = field(default_factory=list)

    def add(self, kind: str, payload: dict[str, Any], *, agent: str = "", key: tuple[str, ...] = ()) -> Draft:
        cast = self.dialogue.cast
        agent = agent or cast.agent
        if (given := own_id(self.fields)) is not None:
            derived: tuple[str, ...] = ("message", given, kind)
            payload = payload if kind == "tool.used" else payload | {"message_id": given}
        elif self.dialogue.by_position and kind != "agent.configured":  # a system text may contain today's date
            derived = ("position", str(self.ordinal), kind)
        else:
            derived = (kind, agent, _canonical(payload))
        at = time_in(self.fields, MESSAGE_TIMES)
        draft = Draft(
            self.dialogue.location(self.ordinal),
            self.dialogue.turn,
            agent,
            kind,
            payload,
            key or derived,
            at,
            audience=cast.audience if agent == cast.writer else (),
        )
        self.dialogue.drafts.append(draft)
        return draft

    def flush(self) -> None:
        """Add the text since the last event of the message."""
        text = strip_memories("\n".join(each.text for each in self.said))
        refusal = any(each.refusal for each in self.said)
        self.said = []
        if text.strip():
            name = nonempty(self.fields.get("name"))
            more = ({"name": name} if name else {}) | ({"refusal": True} if refusal else {})
            self.add(self.kind, {self.text_field: text} | more, agent=self.agent)


def drafts_of(
    messages: Iterable[tuple[int, object]], cast: Cast = CAST, *, by_position: bool = False, unit: str = "message"
) -> tuple[list[Draft | MessageRefusal | Omission], int]:
    """Drafts in the order of `messages`, each with its ordinal, and the last turn.

    The keys of messages without an id depend on their content or, with `by_position`, on their ordinals. A message that
    cannot be read yields one refusal instead of drafts. A `LeftOut` in place of a message is an omission, and so is an
    empty message. Thus every message is a draft, a part of one, or an omission. `unit` is the name of the items that
    ordinals count.
    """
    dialogue = Dialogue(cast, by_position=by_position, unit=unit)
    for ordinal, message in messages:
        before = len(dialogue.drafts)
        try:
            _add(dialogue, ordinal, message)
            if len(dialogue.drafts) == before:
                dialogue.drafts.append(_EMPTY)
        except InvalidEvent as error:
            dialogue.drafts.append(MessageRefusal(dialogue.location(ordinal), error))
    return [_without_own_tools(draft) for draft in dialogue.drafts if draft is not None], dialogue.turn


def _without_own_tools(draft: Draft | MessageRefusal | Omission) -> Draft | MessageRefusal | Omission:
    is_own = isinstance(draft, Draft) and draft.kind == "tool.used" and is_own_tool(draft.payload["tool"])
    return _RECALLED if is_own else draft


def without_open_calls(drafts: Sequence[Draft | MessageRefusal | Omission]) -> list[Draft | MessageRefusal | Omission]:
    """The drafts, with omissions in place of calls that may still get their results because their agent has not
    continued in a later turn."""
    last_turns = {each.agent: each.turn for each in drafts if isinstance(each, Draft) and not _is_open(each)}
    return [_OPEN if _is_open(each) and each.turn >= last_turns.get(each.agent, 0) else each for each in drafts]


def _is_open(draft: Draft | MessageRefusal | Omission) -> TypeGuard[Draft]:
    return isinstance(draft, Draft) and draft.awaits_result


def _add(dialogue: Dialogue, ordinal: int, message: object) -> None:
    if isinstance(message, InvalidEvent):
        raise message
    if isinstance(message, LeftOutBlock):
        dialogue.drafts.append(Omission(message.type))
        return
    cast = dialogue.cast
    if not isinstance(message, dict):
        raise InvalidEvent("not a JSON object with role and content", rule="dict_type")
    match role_of(message):
        case "user":
            _add_of_user(_Message(dialogue, ordinal, message, author_of(message, cast), cast.kind, "text"))
        case "assistant":
            _add_blocks(_Message(dialogue, ordinal, message, cast.agent, "agent.spoke", "text"), _of_assistant(message))
        case "system" | "developer":
            _add_blocks(
                _Message(dialogue, ordinal, message, cast.agent, "agent.configured", "persona"),
                blocks_of(content_of(message)),
            )
        case "tool" | "function":
            _add_blocks(_Message(dialogue, ordinal, message, cast.agent, "agent.spoke", "text"), [result_of(message)])
        case None if isinstance(message.get("type"), str):  # an item of OpenAI's Responses: a call, a result, reasoning
            _add_blocks(_Message(dialogue, ordinal, message, cast.agent, "agent.spoke", "text"), blocks_of([message]))
        case role:
            raise InvalidEvent(
                f"role: {role!r} is not one of system, developer, user, assistant, tool, function",
                path="role",
                rule="role",
            )


def role_of(message: Mapping[str, Any]) -> object:
    """The role of a message, in OpenAI's terms. LangChain's messages have it in `type`."""
    role = message.get("role")
    if role is None and message.get("type") in _ROLES_AS_TYPES:
        role = message["type"]
    return _OTHER_ROLES.get(role, role) if isinstance(role, str) else role


def own_id(message: Mapping[str, Any]) -> str | None:
    """The message's own id as a text; None if it has none."""
    given = message.get("id")
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) and given != "" else None


def content_of(message: Mapping[str, Any]) -> object:
    content = message.get("content")
    return message.get("text", message.get("parts")) if content is None else content


def author_of(message: Mapping[str, Any], cast: Cast) -> str:
    """The user's name. A name that is not a valid agent, or is that of the assistant, is changed as little as possible;
    different names stay different."""
    given = nonempty(message.get("name"))
    if given is None or not given.strip():
        return cast.writer
    name = in_nfc(given).strip()
    if name == cast.agent:
        return f"{name} (user)"
    return name if is_name(name) else _as_name(name)


def _as_name(text: str) -> str:
    shown = "".join(each if is_name(each) or each == " " else "_" for each in text[:_NAME_CHARS_MAX])
    return f"{shown.strip()} {sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


def _of_assistant(message: dict[str, Any]) -> list[Block]:
    thoughts = (nonempty(message.get(name)) for name in _THOUGHT_FIELDS)
    thought = next((Thought(text) for text in thoughts if text is not None), None)
    refusal, audio = nonempty(message.get("refusal")), message.get("audio")
    blocks: list[Block] = [] if thought is None else [thought]
    blocks += blocks_of(content_of(message))
    if isinstance(audio, dict):
        blocks.append(SaidBlock(audio["transcript"]) if nonempty(audio.get("transcript")) else LeftOutBlock("audio"))
    if refusal is not None:
        blocks.append(SaidBlock(refusal, refusal=True))
    return [*blocks, *calls_of(message)]


def _add_of_user(message: _Message) -> None:
    """Results come first: they belong to the previous turn. A message with only results does not begin a turn."""
    try:
        blocks = blocks_of(content_of(message.fields))
    except InvalidEvent:
        message.dialogue.turn += 1  # later messages then keep their turn if this message is corrected
        raise
    results = [block for block in blocks if isinstance(block, ToolResult)]
    _add_blocks(message, results)
    if not results or len(results) < len(blocks):
        message.dialogue.turn += 1
        _add_blocks(message, [block for block in blocks if not isinstance(block, ToolResult)])


def _add_blocks(message: _Message, blocks: Iterable[Block]) -> None:
    for block in blocks:
        if isinstance(block, LeftOutBlock):
            message.dialogue.drafts.append(Omission(block.type))
            continue
        if not isinstance(block, SaidBlock) or any(each.refusal != block.refusal for each in message.said):
            message.flush()
        match block:
            case SaidBlock():
                message.said.append(block)
            case Thought():
                if block.text.strip():
                    message.add("agent.thought", {"text": block.text})
            case ToolCall():
                _add_call(message, block)
            case ToolResult():
                _add_result(message, block)
    message.flush()


def _add_call(message: _Message, call: ToolCall) -> None:
    dialogue = message.dialogue
    payload: dict[str, Any] = {"tool": call.tool}
    if call.arguments is not None:
        payload["arguments"] = call.arguments
    # Answered calls count too: an open call has the same key once an earlier call with the same name has its result.
    same = ("call", str(message.ordinal) if dialogue.by_position else call.id or _canonical(payload))
    dialogue.calls[same] += 1
    draft = _tool_used(message, call, payload | _UNANSWERED, (*same, str(dialogue.calls[same])))
    dialogue.drafts[-1] = draft = replace(draft, awaits_result=call.id is not None)
    dialogue.unanswered.append(_OpenCall(call, len(dialogue.drafts) - 1, draft))


def _add_result(message: _Message, block: ToolResult) -> None:
    dialogue = message.dialogue
    answered = _call_of(dialogue, block)
    call = ToolCall(block.call_id, block.tool or "unknown") if answered is None else answered.call
    payload: dict[str, Any] = {"tool": call.tool}
    if answered is not None:
        dialogue.unanswered.remove(answered)
        dialogue.drafts[answered.draft_index] = None
        payload = {name: value for name, value in answered.draft.payload.items() if name not in _UNANSWERED}
    key = ("result", call.id) if call.id is not None and not dialogue.by_position else ()
    _tool_used(message, call, payload | {"result": block.result, "ok": block.ok}, key)


def _tool_used(message: _Message, call: ToolCall, payload: dict[str, Any], key: tuple[str, ...]) -> Draft:
    draft = message.add("tool.used", payload, key=key)
    written = replace(draft, arguments_as_written=call.arguments_as_written)
    message.dialogue.drafts[-1] = written
    return written


def _call_of(dialogue: Dialogue, result: ToolResult) -> _OpenCall | None:
    """The call to which a result belongs: the first one with its id, preferably of the present turn.

    Without ids, it is the first call of the present turn with the same name and without a result.
    """
    calls = [each for each in dialogue.unanswered if result.call_id is not None and each.call.id == result.call_id]
    if not calls:
        calls = [
            each
            for each in dialogue.unanswered
            if each.draft.turn == dialogue.turn
            and (each.call.id is None or result.call_id is None)
            and result.tool in (None, each.call.tool)
        ]
    of_this_turn = [each for each in calls if each.draft.turn == dialogue.turn]
    return next(iter(of_this_turn or calls), None)


def _canonical(payload: dict[str, Any]) -> str:
    try:
        return json.dumps(payload, sort_keys=True)
    except RecursionError:
        return "nested too deeply"  # such an event is refused
