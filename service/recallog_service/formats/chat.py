"""The reader of chat files: conversations in OpenAI's message format, each in a space of its own.

The file is a JSON list of conversations, one conversation, or JSONL of conversations. A conversation is an object with
`messages`, or a list of messages; the module `messages` maps each message to events. A numeric `reward` of the
conversation becomes a last event, session.ended {"reward", "outcome"?} by "assistant".

space     the given space if the file is one conversation; else "<space>/<name>", where the name is the conversation's
          own id if that is a valid name and unique in the file, else "<task_id>-<trial>", else its ordinal ("0007")
session   "1"
turn      0 until the user speaks, then one more with each message of the user
at        the message's own time, else one second after the previous event; the first event is at `start`
id        uuid5 of (space, session, ordinal of the event)
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recallog_schemas import codec
from recallog_schemas.errors import EventTooLarge, InvalidEvent
from recallog_service.formats.guess import wrong_format
from recallog_service.formats.item import DEFAULT_START, Item, derived_id, is_name, made, refused
from recallog_service.formats.messages import ASSISTANT, Draft, Refusal, drafts_of

SESSION = "1"

_EXPECTED = 'conversations: a JSON list of objects with "{}", one of them, or one a line'


@dataclass(frozen=True, slots=True)
class _Conversation:
    fields: Mapping[str, Any]
    messages: list[object]


def read(
    text: bytes,
    *,
    space: str | None = None,
    start: datetime = DEFAULT_START,
    messages_key: str = "messages",
) -> Iterator[Item]:
    """The events of all conversations, in file order; `Item.number` is the conversation's ordinal, from 1.

    Raises `InvalidEvent` for a file without conversations, and `InvalidArgument` for a `space` that is not a name.
    """
    if space is not None:
        codec.check_name(space)
    conversations = _conversations(text, messages_key)
    for number, (conversation, name) in enumerate(
        zip(conversations, _spaces(conversations, space), strict=True), start=1
    ):
        if isinstance(conversation, InvalidEvent):
            yield refused(number, f"conversation {number}", conversation)
        else:
            yield from _items(number, conversation, name, start)


def _items(number: int, conversation: _Conversation, space: str, start: datetime) -> Iterator[Item]:
    at: datetime | None = None
    drafts = [*drafts_of(conversation.messages), *_end(conversation)]
    for ordinal, draft in enumerate(drafts, 1):
        own = draft.at if isinstance(draft, Draft) else None
        at = own or (start if at is None else at + timedelta(seconds=1))
        location = f"conversation {number}: {draft.location}"
        if isinstance(draft, Refusal):
            yield refused(number, location, draft.error)
        else:
            yield _item(number, location, draft, space=space, at=at, ordinal=ordinal)


def _item(number: int, location: str, draft: Draft, *, space: str, at: datetime, ordinal: int) -> Item:
    fields = {
        "id": derived_id(space, SESSION, ordinal),
        "space": space,
        "session": SESSION,
        "agent": draft.agent,
        "kind": draft.kind,
        "turn": draft.turn,
        "at": at,
        "payload": draft.payload,
    }
    item = made(number, location, fields)
    if item.event is None and draft.arguments_as_written is not None and not isinstance(item.error, EventTooLarge):
        # A model may write 1e999 or a number of 30 digits: the ledger refuses such JSON, but accepts it as a string.
        as_written = draft.payload | {"arguments": draft.arguments_as_written}
        second = made(number, location, fields | {"payload": as_written})
        return second if second.event is not None else item
    return item


def _end(conversation: _Conversation) -> Iterator[Draft]:
    reward, outcome = conversation.fields.get("reward"), conversation.fields.get("outcome")
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        payload = {"reward": reward} | ({"outcome": outcome} if isinstance(outcome, str) else {})
        turn = sum(isinstance(message, dict) and message.get("role") == "user" for message in conversation.messages)
        yield Draft("reward", turn, ASSISTANT, "session.ended", payload)


def _conversations(text: bytes, messages_key: str) -> list[_Conversation | InvalidEvent]:
    """All conversations of a file; an element that is not a conversation is an error. Raises if all of them are."""
    found = _documents(text, messages_key)
    if not found:
        return []
    first = next((document for document in found if not isinstance(document, InvalidEvent)), None)
    if isinstance(first, dict) and "role" in first and messages_key not in first:
        return [_Conversation({}, found)]
    conversations = [_conversation(document, messages_key) for document in found]
    if all(isinstance(conversation, InvalidEvent) for conversation in conversations):
        raise wrong_format(_EXPECTED.format(messages_key), found)
    return conversations


def _conversation(document: object, messages_key: str) -> _Conversation | InvalidEvent:
    if isinstance(document, InvalidEvent):
        return document
    if isinstance(document, list):
        return _Conversation({}, document)
    messages = document.get(messages_key) if isinstance(document, dict) else None
    if isinstance(document, dict) and isinstance(messages, list):
        return _Conversation(document, messages)
    return InvalidEvent(f'neither an object with a list of "{messages_key}" nor a list', path=messages_key)


def _documents(text: bytes, messages_key: str) -> list[object]:
    """The elements of a JSON list, or the one object, or the lines; a line that is not JSON as an error."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        lines = [_line(line) for line in text.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
        # In a JSON document with a syntax error almost no line is JSON by itself; in JSONL with an error most are.
        broken = sum(isinstance(line, InvalidEvent) for line in lines)
        if len(lines) < 2 or broken > len(lines) / 2:
            wrong = wrong_format(_EXPECTED.format(messages_key))
            raise InvalidEvent(f"not JSON: {error}; {wrong}", rule="unparsable") from None
        return lines
    return document if isinstance(document, list) else [document]


def _line(line: bytes) -> object:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return InvalidEvent(f"not JSON: {error}", rule="unparsable")
    return value if isinstance(value, dict | list) else InvalidEvent("not a conversation", rule="unparsable")


def _spaces(conversations: list[_Conversation | InvalidEvent], space: str | None) -> list[str]:
    """The space of each conversation, in order; no two share one."""
    if space is not None and len(conversations) == 1:
        return [space]
    prefix = space or "chat"
    names = _own_names([{} if isinstance(one, InvalidEvent) else one.fields for one in conversations], prefix)
    taken = set(names)
    for index, name in enumerate(names):
        if not name:
            ordinal = f"{index + 1:04d}"
            while ordinal in taken:
                ordinal += "_"
            names[index] = ordinal
            taken.add(ordinal)
    return [f"{prefix}/{name}" for name in names]


def _own_names(conversations: list[Mapping[str, Any]], prefix: str) -> list[str]:
    """The name that each conversation's own fields give it; "" if they give no valid and unique name."""
    names = [""] * len(conversations)
    taken: set[str] = set()
    for source in _NAME_SOURCES:
        candidates = [source(fields) for fields in conversations]
        counts = Counter(candidates)
        for index, name in enumerate(candidates):
            if not names[index] and counts[name] == 1 and name not in taken and is_name(f"{prefix}/{name}"):
                names[index] = name
                taken.add(name)
    return names


def _field(name: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda fields: _as_text(fields.get(name))


def _task_and_trial(fields: Mapping[str, Any]) -> str:
    task, trial = _as_text(fields.get("task_id")), _as_text(fields.get("trial"))
    return f"{task}-{trial}" if task and trial else ""


def _as_text(value: object) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


_NAME_SOURCES = (_field("id"), _field("conversation_id"), _field("sample_id"), _field("uuid"), _task_and_trial)
