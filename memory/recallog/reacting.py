"""The reactor loop of one memory: its access to the views and the ledger, and the reactors that are built in."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from recallog.queries import due, event_lookup, turns
from recallog.reactors.extraction import Extraction
from recallog.reactors.loop import DueWork, ReactorLoop
from recallog.reactors.migration import Migration
from recallog.reactors.reflection import ReflectionMemory, ReflectionReactor
from recallog.reactors.retraction import Retraction
from recallog_schemas import Event, Position
from recallog_schemas.views import PendingTrigger, Remembered

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.long_term import LongTerm
    from recallog.reactors.extractor import FactExtractor
    from recallog.reactors.reactor import DueTrigger, Reactor
    from recallog.reactors.reflector import Reflector


_WRITTEN = frozenset({"stored", "updated"})
"""What becomes of texts that are worth an event."""


class ReactingMemory(ReflectionMemory, Protocol):
    """What the loop asks the memory itself. `recallog.Memory` has it."""

    @property
    def long_term(self) -> "LongTerm":
        """Its part with entries."""

    async def catch_up(self, *, own: bool = True, partition: int | None = None) -> None:
        """Wait until the views of one partition, or of all, have processed what the ledger holds now; without `own`,
        only the built-in views."""


def loop_of(
    memory: ReactingMemory, access: "MemoryAccess", reflector: "Reflector", extractor: "FactExtractor"
) -> ReactorLoop:
    """The loop that answers the triggers of `memory`; `reflector` writes beliefs, and `extractor` draws facts."""
    loop_memory, components = LoopMemory(memory, access), access.components
    reactors: list[Reactor] = [
        Migration(),
        Retraction(),
        Extraction(loop_memory, extractor),
        ReflectionReactor(memory, reflector),
    ]
    return ReactorLoop(loop_memory, components.ledger, reactors, components.reactors_lock)


class LoopMemory:
    """What the loop and the reactors that are built in need of a memory."""

    def __init__(self, memory: ReactingMemory, access: "MemoryAccess") -> None:
        self._memory = memory
        self._access = access

    async def catch_up(self, partition: int) -> None:
        await self._memory.catch_up(own=False, partition=partition)

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        return await self._access.router.of_partition(partition, partial(due.due_reflections, spaces=spaces))

    async def work(self, partition: int, after: str | None) -> DueWork:
        page = await self._access.router.of_partition(partition, partial(due.work, after=after))
        return DueWork([row for _, row in page.items], page.next)

    async def known(self, space: str, ids: Sequence[str]) -> Collection[str]:
        ledger = self._access.components.ledger
        return await self._access.of_space(
            space, lambda reading: event_lookup.offsets_of(reading, ledger, space, ids), {}
        )

    async def publish(self, events: Sequence[Event]) -> Sequence[Position]:
        return await self._access.append(events)

    async def turn(self, trigger: "DueTrigger") -> Sequence[Remembered]:
        access, ledger = self._access, self._access.components.ledger
        turn = turns.Turn(trigger.space, trigger.agent, trigger.session, trigger.since, trigger.offset)
        return await access.of_space(
            trigger.space,
            lambda reading: turns.events_of(reading, ledger, turn, access.log_events, access.progress),
            {},
        )

    async def prepared(self, event: Event) -> Event | None:
        payload = event.payload
        found = await self._memory.long_term.compare(
            event.space,
            event.agent,
            payload["text"],
            type=payload["type"],
            subject=event.subject,
            audience=event.audience,
            based_on=payload["sources"],
            cost=payload["cost"],
        )
        if found.outcome not in _WRITTEN:
            return None
        if found.nearest is None:
            return event
        return event.model_copy(update={"payload": {**payload, "nearest": found.nearest.model_dump()}})
