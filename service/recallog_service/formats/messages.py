"""Maps the messages of one conversation, with OpenAI's roles, to drafts of events.

system, developer           agent.configured {"persona"} of the assistant
user                        user.injected {"text"} by "user"
assistant                   agent.spoke {"text"}; each of its tool calls becomes a tool.used
tool, function (a result)   completes its call: tool.used {"tool", "arguments", "result", "ok"} by "assistant"

A tool.used event has the position of the result, because the agent knew it only then. A call without a result has the
position of the call, with `ok` false and no result.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from recallog_schemas.errors import InvalidEvent

USER = "user"
ASSISTANT = "assistant"

_TIME_FIELDS = ("timestamp", "created_at", "at")
_SECONDS_MAX = 10**11  # the year 5138; a larger number is JavaScript's milliseconds
_YEAR_MAX = 9998  # times count on from here, and the calendar ends with 9999


@dataclass(frozen=True, slots=True)
class Draft:
    """An event without its space, session and id, which the conversation gives it."""

    location: str
    turn: int
    agent: str
    kind: str
    payload: dict[str, Any]
    at: datetime | None = None
    """The message's own time, if it has one."""
    arguments_as_written: str | None = None
    """The text of a tool call's arguments, written if the ledger refuses the parsed ones."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that cannot be read. It takes an ordinal and a second, as a draft does."""

    location: str
    error: InvalidEvent


@dataclass(frozen=True, slots=True)
class _Call:
    id: str | None
    slot: int
    draft: Draft


@dataclass(slots=True)
class _Dialogue:
    """The drafts so far. `turn` is 0 until the user speaks, and grows by one with each message of the user."""

    turn: int = 0
    drafts: list[Draft | Refusal | None] = field(default_factory=list)
    unanswered: list[_Call] = field(default_factory=list)


def drafts_of(messages: Iterable[object]) -> list[Draft | Refusal]:
    """Drafts in the order of `messages`; a message that cannot be read gives one refusal instead of its drafts."""
    dialogue = _Dialogue()
    for ordinal, message in enumerate(messages, 1):
        location = f"message {ordinal}"
        try:
            _add(dialogue, location, message)
        except InvalidEvent as error:
            dialogue.drafts.append(Refusal(location, error))
    return [draft for draft in dialogue.drafts if draft is not None]


def _add(dialogue: _Dialogue, location: str, message: object) -> None:
    if isinstance(message, InvalidEvent):
        raise message
    if not isinstance(message, dict):
        raise InvalidEvent("not a JSON object with role and content", rule="dict_type")
    match message.get("role"):
        case "user":
            dialogue.turn += 1
            _add_text(dialogue, location, message, USER, "user.injected", "text")
        case "assistant":
            calls = _calls(message)
            _add_text(dialogue, location, message, ASSISTANT, "agent.spoke", "text")
            for call in calls:
                _add_call(dialogue, location, message, call)
        case "system" | "developer":
            _add_text(dialogue, location, message, ASSISTANT, "agent.configured", "persona")
        case "tool" | "function":
            _add_result(dialogue, location, message)
        case role:
            raise InvalidEvent(
                f"role: {role!r} is not one of system, developer, user, assistant, tool, function",
                path="role",
                rule="role",
            )


def _add_text(dialogue: _Dialogue, location: str, message: dict[str, Any], agent: str, kind: str, name: str) -> None:
    text = _text(message.get("content"))
    if text.strip():
        dialogue.drafts.append(Draft(location, dialogue.turn, agent, kind, {name: text}, _own_time(message)))


def _text(content: object) -> str:
    """The text of `content`: a string, null, or a list of parts, where a picture becomes "[image]"."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part, index) for index, part in enumerate(content))
    raise InvalidEvent("content: neither a string, null nor a list of parts", path="content", rule="content")


def _part(part: object, index: int) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("type"), str):
        # "image_url" and "input_image" both become "[image]", and "input_text" is text.
        name = part["type"].removeprefix("input_").removeprefix("output_").removesuffix("_url")
        if name != "text":
            return f"[{name}]"
        if isinstance(part.get("text"), str):
            return str(part["text"])
    raise InvalidEvent(f"content.{index}: not a part with a type", path=f"content.{index}", rule="content")


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Each call as {"id"?, "function": {"name", "arguments"}}."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidEvent("tool_calls: not a list of calls", path="tool_calls", rule="list_type")
    legacy = message.get("function_call")
    return [*calls, {"function": legacy}] if isinstance(legacy, dict) else calls


def _add_call(dialogue: _Dialogue, location: str, message: dict[str, Any], call: dict[str, Any]) -> None:
    given = call.get("function")
    function = given if isinstance(given, dict) else {}
    payload: dict[str, Any] = {"tool": _nonempty(function.get("name")) or "unknown"}
    written = function.get("arguments")
    if written is not None:
        payload["arguments"] = _parsed(written) if isinstance(written, str) else written
    draft = Draft(
        location,
        dialogue.turn,
        ASSISTANT,
        "tool.used",
        payload | {"ok": False},
        _own_time(message),
        written if isinstance(written, str) else None,
    )
    dialogue.unanswered.append(_Call(_nonempty(call.get("id")), len(dialogue.drafts), draft))
    dialogue.drafts.append(draft)


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _add_result(dialogue: _Dialogue, location: str, message: dict[str, Any]) -> None:
    content = message.get("content")
    result = _text(content) if content is None or isinstance(content, str | list) else content
    ok = not (isinstance(result, str) and result.lower().startswith("error"))
    call = _call_of(dialogue, _nonempty(message.get("tool_call_id")), _nonempty(message.get("name")))
    if call is None:
        payload, written = {"tool": _nonempty(message.get("name")) or "unknown"}, None
    else:
        dialogue.unanswered.remove(call)
        dialogue.drafts[call.slot] = None
        payload, written = {**call.draft.payload}, call.draft.arguments_as_written
        del payload["ok"]
    dialogue.drafts.append(
        Draft(
            location,
            dialogue.turn,
            ASSISTANT,
            "tool.used",
            payload | {"result": result, "ok": ok},
            _own_time(message),
            written,
        )
    )


def _call_of(dialogue: _Dialogue, call_id: str | None, tool: str | None) -> _Call | None:
    """The call to which a result belongs: the first one with its id, preferably of the present turn.

    Without ids, the first call of the present turn that has the same name and no result yet.
    """
    calls = [call for call in dialogue.unanswered if call_id is not None and call.id == call_id]
    if not calls:
        calls = [
            call
            for call in dialogue.unanswered
            if call.draft.turn == dialogue.turn
            and (call.id is None or call_id is None)
            and tool in (None, call.draft.payload["tool"])
        ]
    of_this_turn = [call for call in calls if call.draft.turn == dialogue.turn]
    return next(iter(of_this_turn or calls), None)


def _nonempty(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _own_time(message: dict[str, Any]) -> datetime | None:
    """The time of a message: ISO 8601 with a zone, or a number of seconds (or milliseconds) since 1970."""
    return next((time for name in _TIME_FIELDS if (time := _moment(message.get(name))) is not None), None)


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None:
                return None
            moment = moment.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value if abs(value) < _SECONDS_MAX else value / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment.year <= _YEAR_MAX else None
