"""The messages of a conversation: their rows from the views, and their content from the ledger."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from recallog.reading.read_session import ReadSession
from recallog.reading.readings import SpaceReading
from recallog_projections.models.conversations import projection, rendering, tables
from recallog_projections.models.conversations.rendering import Message
from recallog_projections.models.conversations.tables import MESSAGES, PARTS, REMOVED, ConversationKey, MessageRow
from recallog_projections.tables import RowKey
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import StorageCorrupt
from recallog_schemas.roles import ASSISTANT

_GAP = 64
"""Records of a space between two messages that one read skips; beyond that the ledger is read twice."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One message as its reader sees it."""

    id: str
    """The id of its event."""
    offset: int
    message: Message
    added: bool
    """Whether it was added as a message."""
    subject: str | None
    """The person whose data it is."""


async def rows_of(
    reading: ReadSession,
    conversation: ConversationKey,
    *,
    after: int | None = None,
    newest_first: bool = False,
    page: int = limits.SCAN_ITEMS,
) -> AsyncIterator[MessageRow]:
    """The messages of a conversation that were not removed, in their order, or the newest first.

    With `after` they begin behind this offset, which is before it if the newest come first. `page` rows are read at a
    time.
    """
    streams = [
        _pages(reading, conversation, of, after=after, newest_first=newest_first, page=page)
        for of in (conversation.agent, projection.SHARED)
    ]
    waiting = [await anext(stream, []) for stream in streams]
    while any(waiting):
        # A page is complete up to the first of the last offsets of both, or to its end if there is no other one.
        bounds = [rows[-1].offset for rows in waiting if rows]
        bound = max(bounds) if newest_first else min(bounds)
        ready: list[MessageRow] = []
        for number, rows in enumerate(waiting):
            taken = [row for row in rows if (row.offset >= bound if newest_first else row.offset <= bound)]
            ready += taken
            waiting[number] = rows[len(taken) :] or (await anext(streams[number], []) if taken else rows)
        once = {row.offset: row for row in ready}  # what an agent has said to all is its own and shared
        in_order = sorted(once, reverse=newest_first)
        for row in await _present(reading, conversation, [once[offset] for offset in in_order]):
            yield row


async def _pages(
    reading: ReadSession, conversation: ConversationKey, of: str, *, after: int | None, newest_first: bool, page: int
) -> AsyncIterator[list[MessageRow]]:
    """The rows of one owner in pages; none of them is empty."""
    behind = None if after is None else tables.message_key(conversation.session, after)
    prefix = tables.session_prefix(conversation.session)
    while True:
        found = await reading.page(
            MESSAGES, conversation.space, of, prefix=prefix, newest_first=newest_first, after=behind, limit=page
        )
        if found.items:
            yield [row for _, row in found.items]
        if found.next is None:
            return
        behind = found.next


async def _present(reading: ReadSession, conversation: ConversationKey, rows: Sequence[MessageRow]) -> list[MessageRow]:
    """Those of the messages that were not removed."""
    keys = [RowKey(REMOVED.name, conversation.space, conversation.agent, row.id) for row in rows]
    snapshot = await reading.snapshot(keys)
    return [row for row in rows if snapshot.row(REMOVED, conversation.space, conversation.agent, row.id) is None]


async def events_of(reading: SpaceReading, conversation: ConversationKey, rows: Sequence[MessageRow]) -> list[Event]:
    """The events of `rows`, in their order."""
    events = await _events(reading, conversation, [row.offset for row in rows])
    return [events[row.offset] for row in rows]


async def shown(reading: SpaceReading, conversation: ConversationKey, rows: Sequence[MessageRow]) -> list[Shown]:
    """The messages in the events of `rows`, in their order; a call of a tool and its result are two."""
    found: list[Shown] = []
    for row, event in zip(rows, await events_of(reading, conversation, rows), strict=True):
        whole = await _whole(reading, conversation, row) if row.parts else None
        messages = rendering.messages_of(event, conversation.agent) if whole is None else [whole]
        added = bool(row.digest)
        found += [Shown(row.id, row.offset, message, added, event.subject) for message in messages]
    return found


async def _whole(reading: SpaceReading, conversation: ConversationKey, row: MessageRow) -> Message | None:
    """A large message in the conversation of the agent that has written its parts; None if they are not those of this
    message. The other agents that see it see its beginning."""
    if row.role == ASSISTANT and row.author != conversation.agent:
        return None
    numbers = range(1, row.parts + 1)
    keys = [
        RowKey(PARTS.name, conversation.space, conversation.agent, tables.part_key(row.id, number))
        for number in numbers
    ]
    snapshot = await reading.snapshot(keys)
    places = [snapshot.row(PARTS, *key[1:]) for key in keys]
    offsets = [place.offset for place in places if place is not None]
    if len(offsets) < row.parts:
        return None
    events = await _events(reading, conversation, offsets)
    return rendering.whole_of("".join(events[offset].payload["data"] for offset in offsets), row.digest)


async def _events(reading: SpaceReading, conversation: ConversationKey, offsets: Sequence[int]) -> dict[int, Event]:
    """The events at `offsets`, read in as few ranges as possible."""
    found: dict[int, Event] = {}
    wanted = sorted(set(offsets))
    breaks = [index + 1 for index, (one, other) in enumerate(pairwise(wanted)) if other - one > _GAP]
    for first, end in pairwise([0, *breaks, len(wanted)]):
        if first == end:
            continue
        needed = set(wanted[first:end])
        partition = reading.partition
        async for batch in reading.ledger.read(partition, wanted[first], wanted[end - 1] + 1, space=conversation.space):
            found |= {offset: codec.decode(data) for offset, data in batch.records if offset in needed}
    if missing := set(wanted) - found.keys():
        place = f"{reading.partition}:{min(missing)}"
        raise StorageCorrupt(
            f"the ledger has no record at {place}, which the views have. Find out more: recallog verify"
        )
    return found
