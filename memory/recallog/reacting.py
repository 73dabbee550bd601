"""The reactor loop of one memory: its access to the views and the ledger, and the reactors that are built in."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from recallog.queries import due, event_lookup
from recallog.reactors.loop import DueWork, ReactorLoop
from recallog.reactors.migration import Migration
from recallog.reactors.reflection import ReflectionMemory, ReflectionReactor
from recallog.reactors.retraction import Retraction
from recallog_schemas import Event, Position
from recallog_schemas.views import PendingTrigger

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.reactors.reactor import Reactor
    from recallog.reactors.reflector import Reflector


class ReactingMemory(ReflectionMemory, Protocol):
    """What the loop asks the memory itself. `recallog.Memory` has it."""

    async def catch_up(self, *, own: bool = True, partition: int | None = None) -> None:
        """Wait until the views of one partition, or of all, have processed what the ledger holds now; without `own`,
        only the built-in views."""


def loop_of(memory: ReactingMemory, access: "MemoryAccess", reflector: "Reflector") -> ReactorLoop:
    """The loop that answers the triggers of `memory`; `reflector` writes beliefs."""
    reactors: list[Reactor] = [Migration(), Retraction(), ReflectionReactor(memory, reflector)]
    components = access.components
    return ReactorLoop(LoopMemory(memory, access), components.ledger, reactors, components.reactors_lock)


class LoopMemory:
    """What the loop needs of a memory."""

    def __init__(self, memory: ReactingMemory, access: "MemoryAccess") -> None:
        self._memory = memory
        self._access = access

    async def catch_up(self, partition: int) -> None:
        await self._memory.catch_up(own=False, partition=partition)

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        return await self._access.router.of_partition(partition, partial(due.due_reflections, spaces=spaces))

    async def work(self, partition: int, after: str | None) -> DueWork:
        page = await self._access.router.of_partition(partition, partial(due.work, after=after))
        return DueWork([row for _, row in page.items], None if page.last else page.items[-1][0])

    async def known(self, space: str, ids: Sequence[str]) -> Collection[str]:
        ledger = self._access.components.ledger
        return await self._access.of_space(
            space, lambda reading: event_lookup.offsets_of(reading, ledger, space, ids), {}
        )

    async def publish(self, events: Sequence[Event]) -> Sequence[Position]:
        return await self._access.append(events)
