"""The items of a file of conversations: the events of each, with their ids, times, turns and sessions.

The mapping of messages to events is `recallog.messages.mapping`, after a `system` text of the conversation. A numeric
`reward` of the conversation becomes a last event, session.ended {"reward", "outcome"?} by its agent. The module
`conversations` determines the name of a conversation and its space.

space     the given space, or the space of the person or the project that the file names; else "chat/<name>" for each
          conversation
session   the conversation's name if its space has several, else "1"
turn      0 until the user speaks, then incremented by each message of the user
at        the message's own time, else one second after the previous event; for the first event the time at which the
          conversation began, else `start`
id        uuid5 of (space, session, key), where the key is the message's own id; else the id of its tool call or the
          content of the event; a number tells events with the same key apart

The events of a conversation keep their ids when it grows. Another conversation may have the same name if the name is a
short id or derived from the beginning. In this case the key of the user's first message is fixed, and the keys of other
messages without an id are their positions, so that another conversation of the same name is an `IdConflict`.
Conversations of one space are read in the order of their times if all have times.

If an agent writes the conversation while it works, the ids of messages with their own ids do not depend on the session,
because a copy of the session repeats them; and a call becomes an event when it has its result.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recallog.messages.mapping import Draft, MessageRefusal, Omission, drafts_of, without_open_calls
from recallog_schemas.errors import EventTooLarge, InvalidEvent
from recallog_schemas.kinds.trust import SourceClass
from recallog_service.formats.conversations import FileConversation, Layout, alike, is_unique, layout_of
from recallog_service.formats.cutting import make_cut_item
from recallog_service.formats.format import Options
from recallog_service.formats.guess import wrong_format
from recallog_service.formats.item import Item, derived_id, make_item, refuse_item
from recallog_service.formats.source import HALF, Sample, Source
from recallog_service.formats.structure import Structure

_FIRST_OF_USER = ("first message of the user",)


@dataclass(frozen=True, slots=True)
class ConversationFile:
    """The conversations of a file and the spaces that were chosen for them. Iterating gives the items."""

    layout: Layout
    conversations: tuple[FileConversation | InvalidEvent, ...]
    start: datetime
    left_out: tuple[str, ...] = ()
    """Counts of records outside any conversation, by type."""
    subjects: bool = False
    """See `Options`."""
    trust: SourceClass | None = None
    """See `Item`."""
    unit: str = "conversation"

    @property
    def note(self) -> str | None:
        return self.layout.reason if any(isinstance(each, FileConversation) for each in self.conversations) else None

    def __iter__(self) -> Iterator[Item]:
        """The events of all conversations; `Item.number` is the conversation's ordinal in the file, from 1."""
        whole = [each for each in self.conversations if isinstance(each, FileConversation)]
        not_unique = alike(whole)
        for number, conversation in self._in_order():
            error = conversation if isinstance(conversation, InvalidEvent) else not_unique.get(number)
            if error is not None:
                yield refuse_item(number, f"conversation {number}", error)
            elif isinstance(conversation, FileConversation):
                for item in _items(conversation, self.layout, self.start, subjects=self.subjects):
                    yield item if self.trust is None else replace(item, trust=self.trust)
        for kind in self.left_out:
            yield Item(0, left_out=kind)

    def _in_order(self) -> list[tuple[int, FileConversation | InvalidEvent]]:
        numbered = list(enumerate(self.conversations, 1))
        times = {
            number: time
            for number, each in numbered
            if isinstance(each, FileConversation) and (time := each.first_time) is not None
        }
        if not self.layout.is_shared or len(times) < len(numbered):
            return numbered
        return sorted(numbered, key=lambda pair: times[pair[0]])


@dataclass(frozen=True, slots=True)
class FoundMessages:
    """The conversations that a format found in the documents of a file."""

    conversations: Sequence[FileConversation | InvalidEvent]
    """Numbered from 1 in this order."""
    left_out: Sequence[str] = ()
    """Counts of records outside any conversation, by type."""


def reader(
    expected: str,
    find: Callable[[Sequence[object], Options], FoundMessages],
    structure: Structure | None = None,
    trust: SourceClass | None = None,
) -> Callable[[Source, Options], ConversationFile]:
    """The `Format.read` of a format of JSON documents. `expected` describes them in errors; `find` raises
    `InvalidEvent` if the documents are others, and so does the reader if none of them has the structure. `trust` is
    that of `Item`."""

    def read(source: Source, options: Options) -> ConversationFile:
        try:
            documents = source.documents()
        except InvalidEvent as error:
            raise InvalidEvent(f"{error}; {wrong_format(expected)}", rule="unparsable") from None
        if structure is not None and documents and not structure.fits(Sample(tuple(documents))):
            raise wrong_format(expected, documents)
        found = find(documents, options)
        left_out = [*found.left_out, *source.left_out, *[HALF] * source.halves]
        return file_of(found.conversations, options, left_out, trust)

    return read


def file_of(
    conversations: Sequence[FileConversation | InvalidEvent],
    options: Options,
    left_out: Sequence[str] = (),
    trust: SourceClass | None = None,
) -> ConversationFile:
    """The file with these conversations."""
    settled = tuple(
        each.spoken_by(options.agent) if isinstance(each, FileConversation) else each for each in conversations
    )
    layout = layout_of([each for each in settled if isinstance(each, FileConversation)], options.space)
    return ConversationFile(layout, settled, options.start, tuple(left_out), options.subjects, trust)


def reader_of_each(
    expected: str, conversation: Callable[[int, object], FileConversation | InvalidEvent]
) -> Callable[[Source, Options], ConversationFile]:
    """The `Format.read` of a format whose documents are one conversation each."""

    def find(documents: Sequence[object], _options: Options) -> FoundMessages:
        found = [
            document if isinstance(document, InvalidEvent) else conversation(number, document)
            for number, document in enumerate(documents, 1)
        ]
        if found and all(isinstance(each, InvalidEvent) for each in found):
            raise wrong_format(expected, documents)
        return FoundMessages(found)

    return reader(expected, find)


def _items(conversation: FileConversation, layout: Layout, start: datetime, *, subjects: bool) -> Iterator[Item]:
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
        if isinstance(draft, MessageRefusal):
            yield refuse_item(conversation.number, location, draft.error)
            continue
        key = _FIRST_OF_USER if index == first_of_user else draft.key
        used[key] += 1
        is_copied = conversation.grows and is_unique(key)
        grows = conversation.grows and conversation.is_certain and key[0] == "message"
        fields: dict[str, object] = {
            "id": derived_id(space, None if is_copied else session, [*key, used[key]]),
            "space": space,
            "session": session,
            "agent": draft.agent,
            "kind": draft.kind,
            "turn": draft.turn,
            "at": at,
            "payload": draft.payload,
        }
        if draft.audience:
            fields["audience"] = list(draft.audience)
        if subjects and draft.agent != conversation.cast.agent:
            fields["subject"] = draft.agent
        item = _item(conversation.number, location, fields, draft.arguments_as_written)
        in_sequence = not conversation.is_certain
        yield replace(item, opens=index <= last_of_opening, in_sequence=in_sequence, is_copied=is_copied or grows)


def _item(number: int, location: str, fields: dict[str, object], arguments: str | None) -> Item:
    """The event with these fields, cut if it is too large.

    If the ledger refuses the `arguments` of a tool call as JSON, they are stored as the original text: a model may
    write 1e999 or a number of 30 digits.
    """
    item = make_item(number, location, fields)
    payload = fields["payload"]
    if item.error is not None and arguments is not None and isinstance(payload, dict):
        fields = fields | {"payload": payload | {"arguments": arguments}}
        second = make_item(number, location, fields)
        if second.event is not None:
            return second
        item = second if isinstance(second.error, EventTooLarge) else item
    return make_cut_item(number, location, fields) if isinstance(item.error, EventTooLarge) else item


def _drafts(conversation: FileConversation) -> list[Draft | MessageRefusal | Omission]:
    """The drafts of the messages, after the draft of the conversation's `system` text and before that of its
    `reward`."""
    fields = conversation.fields
    system = fields.get("system")
    before: list[Draft | MessageRefusal | Omission] = []
    if isinstance(system, str | list):
        before = [
            draft if isinstance(draft, Omission) else replace(draft, location="system")
            for draft in drafts_of([(1, {"role": "system", "content": system})], conversation.cast)[0]
        ]
    drafts, turn = drafts_of(
        conversation.numbered, conversation.cast, by_position=not conversation.is_certain, unit=conversation.unit
    )
    if conversation.grows:
        drafts = without_open_calls(drafts)
    reward, outcome = fields.get("reward"), fields.get("outcome")
    if not isinstance(reward, int | float) or isinstance(reward, bool):
        return [*before, *drafts]
    payload = {"reward": reward} | ({"outcome": outcome} if isinstance(outcome, str) else {})
    key = ("session.ended", str(turn), json.dumps(payload, sort_keys=True))
    return [*before, *drafts, Draft("reward", turn, conversation.cast.agent, "session.ended", payload, key)]


def _opening(drafts: list[Draft | MessageRefusal | Omission]) -> tuple[int, int]:
    """The indices of the user's first message and of the event after it; -1 for each that is missing."""
    events = [(index, draft) for index, draft in enumerate(drafts) if isinstance(draft, Draft)]
    first = next((index for index, draft in events if draft.kind == "user.injected"), -1)
    return first, next((index for index, _ in events if index > first >= 0), first)
