"""The reader of chat files: conversations in the message formats of OpenAI and Anthropic.

The file is a JSON list of conversations, one conversation, or JSONL of conversations. A conversation is an object with
`messages`, a list of messages, or an export of ChatGPT or Claude (module `exports`). The module `messages` maps each
message to events, after a `system` text of the conversation. A numeric `reward` of the conversation becomes a last
event, session.ended {"reward", "outcome"?} by "assistant". The module `conversations` says what identifies a
conversation (its name), and which spaces there are.

space     the given one, or the one of the person whom the file names; else "chat/<name>" for each conversation
session   the conversation's name in a space of many, "1" in a space of its own
turn      0 until the user speaks, then one more with each message of the user
at        the message's own time, else one second after the previous event; the first event is at the time at which
          the conversation began, else at `start`
id        uuid5 of (space, session, key), where the key is the message's own id; else the id of its tool call or the
          content of the event; a number tells events with the same key apart

A conversation that has grown gives its earlier events with the same ids. Another conversation may have the same name if
that is a short id, or follows from the beginning. There the key of the user's first message is fixed, and the keys of
other messages without an id are their positions, so that another conversation under the name is an `IdConflict`.
Conversations of one space are read in the order of their times if all of them have times.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recallog.conversations.messages import ASSISTANT, Draft, Omission, Refusal, drafts_of
from recallog_schemas import codec
from recallog_schemas.errors import EventTooLarge, InvalidEvent
from recallog_service.formats import exports, swe_agent
from recallog_service.formats.conversations import Conversation, Layout, alike, layout_of
from recallog_service.formats.cutting import cut_to_fit
from recallog_service.formats.guess import wrong_format
from recallog_service.formats.item import DEFAULT_START, Item, derived_id, made, refused

_EXPECTED = 'conversations: a JSON list of objects with "{}", one of them, or one a line'
_FIRST_OF_USER = ("first message of the user",)


@dataclass(frozen=True, slots=True)
class ChatFile:
    """The conversations of a file and the spaces that were chosen for them. Iterating gives the items."""

    layout: Layout
    conversations: tuple[Conversation | InvalidEvent, ...]
    start: datetime

    def __iter__(self) -> Iterator[Item]:
        """The events of all conversations; `Item.number` is the conversation's ordinal in the file, from 1."""
        whole = [each for each in self.conversations if isinstance(each, Conversation)]
        not_unique = alike(whole)
        for number, conversation in self._in_order():
            error = conversation if isinstance(conversation, InvalidEvent) else not_unique.get(number)
            if error is not None:
                yield refused(number, f"conversation {number}", error)
            elif isinstance(conversation, Conversation):
                yield from _items(conversation, self.layout, self.start)

    def _in_order(self) -> list[tuple[int, Conversation | InvalidEvent]]:
        numbered = list(enumerate(self.conversations, 1))
        times = {
            number: time
            for number, each in numbered
            if isinstance(each, Conversation) and (time := each.first_time) is not None
        }
        if self.layout.space is None or len(times) < len(numbered):
            return numbered
        return sorted(numbered, key=lambda pair: times[pair[0]])


def read(
    text: bytes,
    *,
    space: str | None = None,
    start: datetime = DEFAULT_START,
    messages_key: str = "messages",
) -> ChatFile:
    """The conversations of a file. `space`: all of them become sessions of this space.

    Raises `InvalidEvent` for a file without conversations, and `InvalidArgument` for a `space` that is not a name.
    """
    if space is not None:
        codec.check_name(space)
    conversations = tuple(_conversations(text, messages_key))
    whole = [each for each in conversations if isinstance(each, Conversation)]
    return ChatFile(layout_of(whole, space), conversations, start)


def _items(conversation: Conversation, layout: Layout, start: datetime) -> Iterator[Item]:
    space, session = layout.space_of(conversation), layout.session_of(conversation)
    start = conversation.begins or start
    at: datetime | None = None
    used: Counter[tuple[str, ...]] = Counter()
    drafts = _drafts(conversation)
    first_of_user, last_of_opening = (-1, -1) if conversation.is_certain else _opening(drafts)
    for index, draft in enumerate(drafts):
        if isinstance(draft, Omission):
            yield Item(conversation.number, left_out=draft.type)
            continue
        own = draft.at if isinstance(draft, Draft) else None
        at = own or (start if at is None else at + timedelta(seconds=1))
        location = f"conversation {conversation.number}: {draft.location}"
        if isinstance(draft, Refusal):
            yield refused(conversation.number, location, draft.error)
            continue
        key = _FIRST_OF_USER if index == first_of_user else draft.key
        used[key] += 1
        fields = {
            "id": derived_id(space, session, [*key, used[key]]),
            "space": space,
            "session": session,
            "agent": draft.agent,
            "kind": draft.kind,
            "turn": draft.turn,
            "at": at,
            "payload": draft.payload,
        }
        item = _item(conversation.number, location, fields, draft.arguments_as_written)
        yield replace(item, opens=index <= last_of_opening, in_sequence=not conversation.is_certain)


def _item(number: int, location: str, fields: dict[str, object], arguments: str | None) -> Item:
    """The event with these fields, cut if it is too large.

    `arguments` of a tool call are tried as they were written if the ledger refuses them as JSON: a model may write
    1e999 or a number of 30 digits.
    """
    item = made(number, location, fields)
    payload = fields["payload"]
    if item.error is not None and arguments is not None and isinstance(payload, dict):
        fields = fields | {"payload": payload | {"arguments": arguments}}
        second = made(number, location, fields)
        if second.event is not None:
            return second
        item = second if isinstance(second.error, EventTooLarge) else item
    if isinstance(item.error, EventTooLarge):
        shorter, missing = cut_to_fit(fields)
        item = made(number, location, shorter)
        return replace(item, cut=f"{location}: cut, {missing} are missing") if item.event is not None else item
    return item


def _drafts(conversation: Conversation) -> list[Draft | Refusal | Omission]:
    """The drafts of the messages, between those of the conversation's own `system` and `reward`."""
    fields = conversation.fields
    system = fields.get("system")
    before: list[Draft | Refusal | Omission] = []
    if isinstance(system, str | list):
        before = [
            draft if isinstance(draft, Omission) else replace(draft, location="system")
            for draft in drafts_of([(1, {"role": "system", "content": system})])[0]
        ]
    drafts, turn = drafts_of(swe_agent.numbered(conversation.messages), by_position=not conversation.is_certain)
    reward, outcome = fields.get("reward"), fields.get("outcome")
    if not isinstance(reward, int | float) or isinstance(reward, bool):
        return [*before, *drafts]
    payload = {"reward": reward} | ({"outcome": outcome} if isinstance(outcome, str) else {})
    key = ("session.ended", str(turn), json.dumps(payload, sort_keys=True))
    return [*before, *drafts, Draft("reward", turn, ASSISTANT, "session.ended", payload, key)]


def _opening(drafts: list[Draft | Refusal | Omission]) -> tuple[int, int]:
    """The index of the user's first message, and that of the next event, if there are any; else -1."""
    events = [(index, draft) for index, draft in enumerate(drafts) if isinstance(draft, Draft)]
    first = next((index for index, draft in events if draft.kind == "user.injected"), -1)
    return first, next((index for index, _ in events if index > first >= 0), first)


def _conversations(text: bytes, messages_key: str) -> list[Conversation | InvalidEvent]:
    """All conversations of a file; an element that is not a conversation is an error. Raises if all of them are."""
    found = _documents(text, messages_key)
    if not found:
        return []
    first = next((document for document in found if not isinstance(document, InvalidEvent)), None)
    if isinstance(first, dict) and "role" in first and messages_key not in first:
        return [Conversation(1, {}, found)]
    conversations = [_conversation(number, document, messages_key) for number, document in enumerate(found, 1)]
    if all(isinstance(conversation, InvalidEvent) for conversation in conversations):
        raise wrong_format(_EXPECTED.format(messages_key), found)
    return conversations


def _conversation(number: int, document: object, messages_key: str) -> Conversation | InvalidEvent:
    if isinstance(document, InvalidEvent):
        return document
    if isinstance(document, list):
        return Conversation(number, {}, document)
    if isinstance(document, dict):
        given = document.get(messages_key)
        messages = given if isinstance(given, list) else exports.messages_of(document)
        if messages is not None:
            return Conversation(number, document, messages)
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
