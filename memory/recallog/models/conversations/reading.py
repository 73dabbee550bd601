"""The messages of a conversation: their rows from the views, and their content from the ledger."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from recallog.reading.read_session import ReadSession
from recallog.reading.readings import SpaceReading
from recallog_projections.models.conversations import rendering, tables
from recallog_projections.models.conversations.projection import SHARED
from recallog_projections.models.conversations.rendering import Message
from recallog_projections.models.conversations.tables import ConversationKey, MessageRow
from recallog_projections.tables import RowKey
from recallog_schemas import Event, codec, limits
from recallog_schemas.errors import StorageCorrupt
from recallog_schemas.models.conversations import limits as conversations_limits
from recallog_schemas.roles import ASSISTANT
from recallog_streams.ledgers.ledger import spans_of


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One message as its reader sees it."""

    id: str
    """The id of its event."""
    offset: int
    message: Message
    added: bool
    """Whether it was added as a message."""
    subject: str | None
    """The person whose data it contains."""


async def rows_of(
    reading: ReadSession,
    conversation: ConversationKey,
    *,
    newest_first: bool = False,
    page: int = limits.SCAN_ITEMS,
) -> AsyncIterator[MessageRow]:
    """The messages of a conversation that were not removed, in their order, or the newest first.

    About `page` of them are read at a time.
    """
    owners = [conversation._replace(agent=agent) for agent in (conversation.agent, SHARED)]
    snapshot = await reading.snapshot([RowKey(tables.NEWEST.name, *owner) for owner in owners])
    streams = []
    for owner in owners:
        newest = snapshot.row(tables.NEWEST, *owner) or tables.NewestRow()
        parts = _parts(reading, owner, newest, newest_first=newest_first, page=page)
        streams.append(_present(reading, conversation, parts))
    heads = [await anext(stream, None) for stream in streams]
    while rows := [head for head in heads if head is not None]:
        row = (max if newest_first else min)(rows, key=_offset)
        yield row
        for number, head in enumerate(heads):
            if head is not None and head.offset == row.offset:  # in both lists: a message of an agent to everybody
                heads[number] = await anext(streams[number], None)


_offset = attrgetter("offset")


async def _parts(
    reading: ReadSession, owner: ConversationKey, newest: tables.NewestRow, *, newest_first: bool, page: int
) -> AsyncIterator[list[MessageRow]]:
    """The messages of one owner. `newest` was read earlier; its messages may have been moved to a chunk since."""
    rows, behind, more = list(newest.messages), None, newest.chunks > 0
    if rows and newest_first:
        yield rows[::-1]
        behind = tables.chunk_key(owner.session, rows[0].offset)
    while more:
        found = await reading.page(
            tables.MESSAGES,
            owner.space,
            owner.agent,
            prefix=tables.session_prefix(owner.session),
            newest_first=newest_first,
            after=behind,
            limit=page // conversations_limits.MESSAGES_OF_CHUNK + 1,
        )
        in_chunks = [row for _, chunk in found.items for row in chunk.messages]
        yield sorted(in_chunks, key=_offset, reverse=newest_first)
        behind, more = found.next, found.next is not None
        rows = [row for row in rows if not in_chunks or row.offset > in_chunks[-1].offset]
    if rows and not newest_first:
        yield rows


async def _present(
    reading: ReadSession, conversation: ConversationKey, parts: AsyncIterator[Sequence[MessageRow]]
) -> AsyncIterator[MessageRow]:
    """The messages that were not removed."""
    async for rows in parts:
        keys = [RowKey(tables.REMOVED.name, conversation.space, conversation.agent, row.id) for row in rows]
        snapshot = await reading.snapshot(keys)
        for row in rows:
            if snapshot.row(tables.REMOVED, conversation.space, conversation.agent, row.id) is None:
                yield row


async def events_of(reading: SpaceReading, conversation: ConversationKey, rows: Sequence[MessageRow]) -> list[Event]:
    """The events of `rows`, in their order."""
    events = await _events(reading, conversation, [row.offset for row in rows])
    return [events[row.offset] for row in rows]


async def read_messages(
    reading: SpaceReading, conversation: ConversationKey, rows: Sequence[MessageRow]
) -> list[ShownMessage]:
    """The messages in the events of `rows`, in their order. A tool call and its result are two messages."""
    found: list[ShownMessage] = []
    for row, event in zip(rows, await events_of(reading, conversation, rows), strict=True):
        whole = await _whole(reading, conversation, row) if row.parts else None
        messages = rendering.messages_of(event, conversation.agent) if whole is None else [whole]
        added = bool(row.digest)
        found += [ShownMessage(row.id, row.offset, message, added, event.subject) for message in messages]
    return found


async def _whole(reading: SpaceReading, conversation: ConversationKey, row: MessageRow) -> Message | None:
    """A large message in the conversation of the agent that wrote its parts; None if the parts are not those of this
    message. Other agents that see the message see its beginning."""
    if row.role == ASSISTANT and row.author != conversation.agent:
        return None
    numbers = range(1, row.parts + 1)
    keys = [
        RowKey(tables.PARTS.name, conversation.space, conversation.agent, tables.part_key(row.id, number))
        for number in numbers
    ]
    snapshot = await reading.snapshot(keys)
    places = [snapshot.row(tables.PARTS, *key[1:]) for key in keys]
    offsets = [place.offset for place in places if place is not None]
    if len(offsets) < row.parts:
        return None
    events = await _events(reading, conversation, offsets)
    return rendering.whole_of("".join(events[offset].payload["data"] for offset in offsets), row.digest)


async def _events(reading: SpaceReading, conversation: ConversationKey, offsets: Sequence[int]) -> dict[int, Event]:
    """The events at `offsets`, read in as few ranges as possible."""
    found: dict[int, Event] = {}
    wanted = {*offsets}
    for first, end in spans_of(wanted):
        async for batch in reading.ledger.read(reading.partition, first, end, space=conversation.space):
            found |= {offset: codec.decode(data) for offset, data in batch.records if offset in wanted}
    if missing := wanted - found.keys():
        place = f"{reading.partition}:{min(missing)}"
        raise StorageCorrupt(
            f"the ledger has no record at {place}, which the views have. Find out more: recallog verify"
        )
    return found
