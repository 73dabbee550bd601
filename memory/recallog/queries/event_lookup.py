"""Event lookup: positions of events by id, and events that the views have dropped."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

from recallog.components import Components
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog_projections.tables import RowKey, Tail
from recallog_projections.views import activity, episodic, settings, visibility
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


async def have_processed(reading: ReadSession, ledger: Ledger, space: str, ids: Collection[str]) -> bool:
    """Whether the views have processed an event with each of these ids."""
    offsets = await offsets_of(reading, ledger, space, ids)
    newest = max(offsets.values(), default=-1)
    return offsets.keys() >= {*ids} and newest <= (await reading.snapshot()).processed


async def read_visible(reading: AgentReading, ids: Collection[str]) -> list[Event]:
    """The events with these ids that the agent may see, as they are in the ledger.

    An event has the visibility that it got when it was folded, as in the logs of the views.
    """
    offsets = await offsets_of(reading, reading.ledger, reading.space, ids)
    found = dict[int, Event]()
    for offset in sorted(offsets.values()):
        data = await record_at(reading.ledger, reading.partition, offset)
        with suppress(InvalidEvent):  # of another program, or sealed without its key
            if data is not None:
                found[offset] = codec.decode(data)
    own = {offset for offset, event in found.items() if reading.agent in visibility.readers(event)}
    others = {offset: event for offset, event in found.items() if offset not in own and event.audience is None}
    seen = own | (await _find_shared(reading, others) if others else set())
    return [event for offset, event in found.items() if offset in seen]


async def _find_shared(reading: AgentReading, events: Mapping[int, Event]) -> set[int]:
    """The offsets of those events of other agents that were shared when they were folded.

    Events that the logs have dropped are looked up in the past. The present settings decide if the space has none, or
    is too large to be folded.
    """
    rows = [RowKey(table.name, reading.space) for table in (settings.SPACES, activity.SPACES)]
    snapshot = await reading.snapshot(rows, episodic.logs(reading.space, reading.agent, reading.log_events))
    space, counted = snapshot.row(settings.SPACES, reading.space), snapshot.row(activity.SPACES, reading.space)
    tails = snapshot.tail(episodic.OWN, reading.space, reading.agent), snapshot.tail(episodic.SHARED, reading.space)
    seen = {memory.offset for memory in episodic.merge(*tails)}
    dropped = [each for each in sorted(events.keys() - seen) if each < (episodic.kept_from(*tails) or 0)]
    if space is None or counted is None or counted.events > limits.AS_OF_RECORDS_MAX:
        return seen | {each for each in dropped if visibility.is_shared(events[each], space)}
    past = PastMemory(reading)
    return seen | {each for each in dropped if (await past.look_up_seen(each))[0]}


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
