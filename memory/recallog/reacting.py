"""The reactor loop of one memory: its access to the views and the ledger, and the reactors of its models."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from recallog.commands.answers import AnsweredMemory
from recallog.queries import due
from recallog.reactors.answering import Answers
from recallog.reactors.loop import DueWork, ReactorLoop
from recallog.reactors.pace import Pace
from recallog.reading.read_session import ReadSession
from recallog_projections.views.due import Scheduled
from recallog_schemas import limits
from recallog_schemas.views import PendingTrigger

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.model import Model
    from recallog.reactors.reactor import Reactor


def loop_of(
    memory: Any, access: "MemoryAccess", models: "Sequence[Model]", own: "Sequence[Reactor]" = ()
) -> ReactorLoop:
    """The loop that answers the triggers of `memory`. `own` reactors answer the triggers of their kinds, and those of
    `models` all others."""
    loop_memory, components, settings = LoopMemory(memory, access), access.components, access.settings
    reactors = [*own, *(reactor for model in models for reactor in model.reactors(access))]
    for reactor in own:
        reactor.attach(memory)
    answers = Answers(
        loop_memory,
        components.ledger,
        reactors,
        Pace(None if settings is None else settings.reactor_models_per_second),
        limits.REACTION_SECONDS if settings is None else settings.reactor_deadline_seconds,
    )
    at_once = limits.REACTIONS_AT_ONCE if settings is None else settings.reactor_at_once
    return ReactorLoop(loop_memory, components.ledger, answers, components.reactors_lock, at_once)


class LoopMemory(AnsweredMemory):
    """The parts of a memory that the loop uses."""

    def __init__(self, memory: Any, access: "MemoryAccess") -> None:
        super().__init__(access)
        self._memory = memory

    @property
    def due_groups(self) -> int:
        return len(self._groups)

    async def catch_up(self, partition: int) -> None:
        await self._memory.catch_up(own=False, partition=partition)

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        return await self._access.router.of_partition(partition, partial(due.due_by_count, spaces=spaces))

    async def find_scheduled(self, partition: int, spaces: Sequence[str] | None) -> Sequence[Scheduled]:
        return await self._access.router.of_partition(partition, partial(due.find_scheduled, spaces=spaces))

    async def work(self, partition: int, group: int, after: str | None) -> DueWork:
        views = self._groups[group]
        if group and after is None:
            await self._access.catch_up(views, partition)
        page = await self._access.router.of_partition(partition, partial(due.work, after=after), views)
        return DueWork(page.items, page.last)

    async def read_processed(self, partition: int) -> int:
        async def query(reading: ReadSession) -> int:
            return (await reading.snapshot()).processed

        return min([await self._access.router.of_partition(partition, query, views) for views in self._groups])

    async def silent(self, partition: int, since: int, until: int) -> Sequence[Scheduled]:
        return await self._access.router.of_partition(partition, partial(due.silent, since=since, until=until))
