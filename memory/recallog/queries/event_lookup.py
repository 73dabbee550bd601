"""Event lookup: positions of events by id, and events that the views have dropped."""

from collections.abc import Collection, Sequence
from functools import partial

from recallog.components import Components
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog_projections.tables import RowKey, Tail
from recallog_projections.views import episodic, settings, visibility
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import InvalidEvent
from recallog_schemas.validation import is_text
from recallog_streams import identity
from recallog_streams.ledgers.ledger import Ledger, record_at
from recallog_streams.progress import Progress


async def offsets_of(reading: ReadSession, ledger: Ledger, space: str, ids: Collection[str]) -> dict[str, int]:
    """The offsets of the events with these ids; unknown ids are left out.

    A ledger without unique ids is not searched: the views store the offset of each id that they have processed.
    """
    possible = [each for each in dict.fromkeys(ids) if is_text(each)]
    if ledger.unique_ids:
        found = {each: await ledger.find(space, each) for each in possible}
        return {each: position.offset for each, position in found.items() if position is not None}
    return await find_offsets(reading, space, possible)


async def find_offsets(reading: ReadSession, space: str, ids: Collection[str]) -> dict[str, int]:
    """The offsets by id from the views, for a ledger that may store an event twice."""
    size = (await reading.snapshot([RowKey(identity.SIZES.name, space)])).row(identity.SIZES, space)
    if size is None:
        return {}
    needs = {each: identity.bucket_of(space, each, size) for each in ids}
    snapshot = await reading.snapshot(needs.values())
    found = {each: identity.offset_in(snapshot.row(identity.BUCKETS, *need[1:]), each) for each, need in needs.items()}
    return {each: offset for each, offset in found.items() if offset is not None}


async def read_visible(reading: AgentReading, ids: Collection[str]) -> list[Event]:
    """The events with these ids that the agent may see by the present settings of the space, read from the ledger."""
    offsets = await offsets_of(reading, reading.ledger, reading.space, ids)
    space = (await reading.snapshot([RowKey(settings.SPACES.name, reading.space)])).row(settings.SPACES, reading.space)
    found = []
    for offset in sorted(offsets.values()):
        data = await record_at(reading.ledger, reading.partition, offset)
        try:
            event = None if data is None else codec.decode(data)
        except InvalidEvent:  # of another program, or sealed without its key
            continue
        if event is not None and (visibility.is_shared(event, space) or reading.agent in visibility.readers(event)):
            found.append(event)
    return found


async def known_positions(
    components: Components, events: Sequence[Event], progress: Progress | None
) -> dict[tuple[str, str], Position]:
    """See `Admin.known_positions`."""
    found: dict[tuple[str, str], Position] = {}
    if components.ledger.unique_ids:
        return found
    ids: dict[str, list[str]] = {}
    for event in events:
        ids.setdefault(event.space, []).append(event.id)
    await components.ledger.open()
    router = QueryRouter(components.ledger, components.views, progress)
    for space, of_space in ids.items():
        partition = components.ledger.partition_of(space)
        offsets = await router.of_partition(partition, partial(find_offsets, space=space, ids=of_space))
        found |= {(space, id_): Position(partition, offset) for id_, offset in offsets.items()}
    return found


class PastMemory:
    """The memory of one agent at earlier offsets. A process keeps some of them.

    It finds events that the views have dropped, under the visibility rules of their time.
    """

    def __init__(self, reading: AgentReading) -> None:
        self._reading = reading

    async def until(self, offset: int, newest: int = limits.LOG_EVENTS_KEPT) -> list[RememberedEvent]:
        """The events that the agent could see after `offset` was processed, in ledger order.

        These are the newest `newest` of its own and of the shared events, from the offset at which both are complete.
        """
        return episodic.complete(*await self._tails(offset, newest))

    async def look_up_seen(self, offset: int) -> tuple[bool, int]:
        """Whether the agent could see the event at `offset`, and how many events it could see up to and including
        it."""
        tails = await self._tails(offset, newest=1)
        visible = any(memory.offset == offset for memory in episodic.merge(*tails))
        return visible, sum(tail.total for tail in tails)

    async def _tails(self, offset: int, newest: int) -> tuple[Tail, Tail]:
        """The agent's own log and the shared log right after `offset` was processed."""
        space, agent = self._reading.space, self._reading.agent
        past = await self._reading.past_at(offset)
        snapshot = await past.snapshot(logs=episodic.logs(space, agent, newest))
        return snapshot.tail(episodic.OWN, space, agent), snapshot.tail(episodic.SHARED, space)
