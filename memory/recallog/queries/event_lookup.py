"""Event lookup: positions of events by id, and events that the views have dropped."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial

from recallog.components import Components
from recallog.reading.query_router import QueryRouter
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation
from recallog_projections.tables import RowKey, Tail
from recallog_projections.views import episodic
from recallog_projections.views.episodic import Episodic, RememberedEvent
from recallog_projections.views.settings import SettingsProjection
from recallog_schemas import Event, Position, limits
from recallog_schemas.validation import is_text
from recallog_streams import identity
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector


async def offsets_of(reading: ReadSession, ledger: Ledger, space: str, ids: Collection[str]) -> dict[str, int]:
    """The offsets of the events with these ids; unknown ids are left out.

    A ledger without unique ids is not searched: the views store the offset of each id that they have processed.
    """
    possible = [each for each in dict.fromkeys(ids) if is_text(each)]
    if ledger.unique_ids:
        found = {each: await ledger.find(space, each) for each in possible}
        return {each: position.offset for each, position in found.items() if position is not None}
    return await counted(reading, space, possible)


async def counted(reading: ReadSession, space: str, ids: Collection[str]) -> dict[str, int]:
    """The offsets by id from the views, for a ledger that may store an event twice."""
    size = (await reading.snapshot([RowKey(identity.SIZES.name, space)])).row(identity.SIZES, space)
    if size is None:
        return {}
    needs = {each: identity.bucket_of(space, each, size) for each in ids}
    snapshot = await reading.snapshot(needs.values())
    found = {each: identity.offset_in(snapshot.row(identity.BUCKETS, *need[1:]), each) for each, need in needs.items()}
    return {each: offset for each, offset in found.items() if offset is not None}


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
        offsets = await router.of_partition(partition, partial(counted, space=space, ids=of_space))
        found |= {(space, id_): Position(partition, offset) for id_, offset in offsets.items()}
    return found


class PastMemory:
    """The memory of one agent at increasing offsets: a fold of its space that continues from call to call.

    It finds events that the views have dropped, under the visibility rules of their time.
    """

    def __init__(self, reading: AgentReading) -> None:
        self._space, self._agent, self._progress = reading.space, reading.agent, reading.progress
        self._projector = Projector(
            reading.ledger,
            MemoryStore(),
            [Episodic(), SettingsProjection()],
            space=reading.space,
            remember_until=reading.as_of if isinstance(reading.as_of, datetime) else None,
        )
        self._partition = reading.partition
        self._generation: Generation | None = None

    async def until(self, offset: int, newest: int = limits.LOG_EVENTS_KEPT) -> list[RememberedEvent]:
        """The events that the agent could see after `offset` was processed, in ledger order.

        These are the newest `newest` of its own and of the shared events, from the offset at which both are complete.
        Offsets must not decrease between calls.
        """
        return episodic.complete(*await self._tails(offset, newest))

    async def seen(self, offset: int) -> tuple[bool, int]:
        """Whether the agent could see the event at `offset`, and how many events it could see up to there.

        Offsets must not decrease between calls.
        """
        tails = await self._tails(offset, newest=1)
        visible = any(memory.offset == offset for memory in episodic.merge(*tails))
        return visible, sum(tail.total for tail in tails)

    async def _tails(self, offset: int, newest: int) -> tuple[Tail, Tail]:
        """The agent's own log and the shared one after `offset` was processed."""
        if self._generation is None:
            self._generation = await self._projector.first_generation(self._partition, 0)
        await self._projector.catch_up(self._generation, offset + 1, self._progress)
        reading = ReadSession(self._projector.store, self._partition, self._generation)
        snapshot = await reading.snapshot(logs=episodic.logs(self._space, self._agent, newest))
        return snapshot.tail(episodic.OWN, self._space, self._agent), snapshot.tail(episodic.SHARED, self._space)
