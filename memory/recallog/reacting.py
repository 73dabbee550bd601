"""The reactor loop of one memory: its access to the views and the ledger, and the reactors that are built in."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from recallog.commands.answers import AnsweredMemory
from recallog.models.beliefs.reflection import ReflectionMemory, ReflectionReactor
from recallog.models.conversations import queries as conversation
from recallog.models.conversations.reactor import Compaction
from recallog.models.facts.extraction import Extraction
from recallog.models.long_term import commands as long_term
from recallog.models.long_term.migration import Migration
from recallog.models.long_term.retraction import Retraction
from recallog.models.tiers import commands as tiers
from recallog.models.tiers.reactor import Consolidation, Summaries
from recallog.models.workspace import daily_queries as daily
from recallog.models.workspace.daily import Daily
from recallog.queries import due, turns
from recallog.reactors.answering import Answers
from recallog.reactors.loop import DueWork, ReactorLoop
from recallog.reactors.misconfigured import Misconfigured
from recallog.reactors.pace import Pace
from recallog.reading.read_session import ReadSession
from recallog_projections.models.conversations.tables import ConversationKey
from recallog_projections.views.due import Scheduled
from recallog_schemas import Event, limits
from recallog_schemas.errors import ModelMisconfigured
from recallog_schemas.views import PendingTrigger, Remembered

if TYPE_CHECKING:
    from recallog.access import MemoryAccess
    from recallog.models.beliefs.reflector import Reflector
    from recallog.models.conversations.queries import Planned
    from recallog.models.conversations.summarizer import Summarizer
    from recallog.models.facts.extractor import FactExtractor
    from recallog.models.long_term.operations import LongTerm
    from recallog.reactors.reactor import DueTrigger, Reactor


class ReactingMemory(ReflectionMemory, Protocol):
    """What the loop asks the memory itself. `recallog.Memory` has it."""

    @property
    def long_term(self) -> "LongTerm":
        """Its part with entries."""

    async def catch_up(self, *, own: bool = True, partition: int | None = None) -> None:
        """Wait until the views of one partition, or of all, have processed what the ledger holds now; without `own`,
        only the built-in views."""


def loop_of(
    memory: ReactingMemory,
    access: "MemoryAccess",
    reflector: "Callable[[], Reflector]",
    extractor: "Callable[[], FactExtractor]",
    summarizer: "Callable[[], Summarizer | None]",
    own: "Sequence[Reactor]" = (),
) -> ReactorLoop:
    """The loop that answers the triggers of `memory`: `own` reactors answer theirs, and the built-in ones all others.

    `reflector` makes what writes beliefs, `extractor` what draws facts, and `summarizer` what summarises conversations,
    None: without a model. If they raise `ModelMisconfigured`, their
    triggers stay due, and others are answered.
    """
    loop_memory, components, settings = LoopMemory(memory, access), access.components, access.settings
    reactors: list[Reactor] = [
        *own,
        Migration(),
        Retraction(),
        Summaries(tiers.Tiers(access)),
        _unless_misconfigured(Extraction.kinds, lambda: Extraction(loop_memory, extractor())),
        Consolidation(tiers.Tiers(access)),
        _unless_misconfigured(Compaction.kinds, lambda: Compaction(loop_memory, summarizer())),
        _unless_misconfigured(ReflectionReactor.kinds, lambda: ReflectionReactor(memory, reflector())),
        Daily(loop_memory),
    ]
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


def _unless_misconfigured(kinds: frozenset[str], make: "Callable[[], Reactor]") -> "Reactor":
    try:
        return make()
    except ModelMisconfigured as error:
        return Misconfigured(kinds, error)


class LoopMemory(AnsweredMemory):
    """What the loop and the reactors that are built in need of a memory."""

    def __init__(self, memory: ReactingMemory, access: "MemoryAccess") -> None:
        super().__init__(access)
        self._memory = memory

    @property
    def due_groups(self) -> int:
        return len(self._groups)

    async def catch_up(self, partition: int) -> None:
        await self._memory.catch_up(own=False, partition=partition)

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        return await self._access.router.of_partition(partition, partial(due.due_reflections, spaces=spaces))

    async def scheduled(self, partition: int, spaces: Sequence[str] | None) -> Sequence[Scheduled]:
        return await self._access.router.of_partition(partition, partial(due.scheduled, spaces=spaces))

    async def work(self, partition: int, group: int, after: str | None) -> DueWork:
        views = self._groups[group]
        if group and after is None:
            await self._catch_up(views, partition)
        page = await self._access.router.of_partition(partition, partial(due.work, after=after), views)
        return DueWork(page.items, page.last)

    async def processed(self, partition: int) -> int:
        async def query(reading: ReadSession) -> int:
            return (await reading.snapshot()).processed

        return min([await self._access.router.of_partition(partition, query, views) for views in self._groups])

    async def silent(self, partition: int, since: int, until: int) -> Sequence[Scheduled]:
        return await self._access.router.of_partition(partition, partial(due.silent, since=since, until=until))

    async def turn(self, trigger: "DueTrigger") -> Sequence[Remembered]:
        access, ledger = self._access, self._access.components.ledger
        turn = turns.Turn(trigger.space, trigger.agent, trigger.session, trigger.since, trigger.offset)
        return await access.of_space(
            trigger.space,
            lambda reading: turns.events_of(reading, ledger, turn, access.log_events, access.progress),
            {},
        )

    async def session(self, trigger: "DueTrigger", session: str) -> daily.Session:
        of, ledger = ConversationKey(trigger.space, trigger.agent, session), self._access.components.ledger
        return await self._access.of_space(
            trigger.space,
            lambda reading: daily.session_of(reading, ledger, of, trigger.since, trigger.offset),
            {},
        )

    async def compaction(self, space: str, agent: str, session: str) -> "Planned":
        ledger = self._access.components.ledger
        of = ConversationKey(space, agent, session)
        return await self._access.of_space(space, lambda reading: conversation.planned(reading, ledger, of), {})

    async def would_store(self, event: Event) -> bool:
        return await long_term.would_store(self._access, event)
