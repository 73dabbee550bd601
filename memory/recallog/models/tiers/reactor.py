"""The reactors of tiers: plans that move and archive entries, and summaries of what was archived."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Protocol

from recallog.models.tiers import summary
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.models.long_term.tables import EntryRow
from recallog_schemas import Event, triggers

PLAN = "memory.consolidated"


class PlannedParts(Protocol):
    """A plan for the entries of one agent. `recallog.models.tiers.queries.Planned` is one."""

    @property
    def payloads(self) -> Sequence[Mapping[str, Any]]:
        """The payloads of its events."""

    @property
    def ordinal(self) -> int:
        """The number of the agent's plans before it."""

    @property
    def now(self) -> datetime:
        """The time of the plan."""


class TierMemory(Protocol):
    """What these reactors ask the memory."""

    async def plan(self, space: str, agent: str) -> PlannedParts | None:
        """The plan for the entries of `agent` at the time of the space; None: it has none that carry a tier."""

    async def archived(self, space: str, agent: str, ids: Sequence[str]) -> Sequence[EntryRow]:
        """Those of the entries that are archived and not erased, in the order in which they were retained."""


def events_of(space: str, agent: str, planned: PlannedParts) -> list[Event]:
    """The events that record a plan. Their cause is its trigger: they do not set the time of the space."""
    trigger = triggers.consolidation_of(space, agent, planned.ordinal)
    return [
        Event(space=space, agent=agent, kind=PLAN, at=planned.now, payload=dict(payload), causation_id=trigger.id)
        for payload in planned.payloads
    ]


class Consolidation(Reactor):
    """Answers `consolidation.due` with the parts of a plan, at least one: a plan that changes nothing is one too."""

    kinds: ClassVar[frozenset[str]] = frozenset({triggers.CONSOLIDATION})
    immediate = True

    def __init__(self, memory: TierMemory) -> None:
        self._memory = memory

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        planned = await self._memory.plan(trigger.space, trigger.agent)
        if planned is None:
            return None
        events = events_of(trigger.space, trigger.agent, planned)
        # Another plan has been made meanwhile, by hand: the trigger is not due any more.
        return events if events[0].causation_id == trigger.id else None


class Summaries(Reactor):
    """Answers `summary.due` with one entry without a tier, which names what it summarises as its sources.

    Its importance is the highest of theirs, and it costs nothing: nobody asked for it. Unless the space shared all of
    them, it is for the agent alone. If fewer than two of them are left, because the others were erased meanwhile, there
    is no summary.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({triggers.SUMMARY})
    pure: ClassVar[bool] = True

    def __init__(self, memory: TierMemory) -> None:
        self._memory = memory

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        rows = await self._memory.archived(trigger.space, trigger.agent, trigger.entries)
        if len(rows) < 2:
            return []
        left = {row.id for row in rows}
        payload = {
            "text": summary.summarized([(row.text, row.importance) for row in rows]),
            "type": "summary",
            "importance": max(row.importance for row in rows),
            "sources": [id_ for id_ in trigger.entries if id_ in left],
            "cost": 0,
        }
        audience = None if all(row.shared for row in rows) else (trigger.agent,)
        return [
            Event(space=trigger.space, agent=trigger.agent, kind="memory.retained", payload=payload, audience=audience)
        ]
