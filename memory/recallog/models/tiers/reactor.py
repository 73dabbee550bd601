"""The reactors of tiers: plans that move and archive entries, and summaries of what was archived."""

from collections.abc import Sequence
from typing import ClassVar

from recallog.access import MemoryAccess
from recallog.models.tiers import queries, summary
from recallog.models.tiers.queries import PlannedConsolidation
from recallog.operations.parameters import At
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event
from recallog_schemas.models.tiers.triggers import CONSOLIDATION, SUMMARY, consolidation_of

PLAN = "memory.consolidated"


def events_of(space: str, agent: str, planned: PlannedConsolidation) -> list[Event]:
    """The events that record a plan. Their cause is its trigger. They do not set the time of the space."""
    trigger = consolidation_of(space, agent, planned.ordinal)
    return [
        Event(space=space, agent=agent, kind=PLAN, at=planned.now, payload=dict(payload), causation_id=trigger.id)
        for payload in planned.payloads
    ]


class ConsolidationReactor(Reactor):
    """Answers `consolidation.due` with the parts of a plan. A plan without changes has one part."""

    kinds: ClassVar[frozenset[str]] = frozenset({CONSOLIDATION})
    immediate = True

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        await self._access.publish_reads()
        planned = await self._access.of_agent(trigger.space, trigger.agent, At(), queries.plan_consolidation, None)
        if planned is None:
            return None
        events = events_of(trigger.space, trigger.agent, planned)
        # Another plan was made by hand meanwhile, and the trigger is no longer due.
        return events if events[0].causation_id == trigger.id else None


class SummaryReactor(Reactor):
    """Answers `summary.due` with one entry without a tier, which names what it summarises as its sources.

    Its importance is the highest of its sources, and it costs no units, since nobody requested it. It is visible only
    to the agent, unless the space shared all of the sources. If fewer than two sources are left, because others were
    erased meanwhile, no summary is made.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({SUMMARY})
    pure: ClassVar[bool] = True

    def __init__(self, access: MemoryAccess) -> None:
        self._access = access

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        rows = await self._access.of_agent(trigger.space, trigger.agent, At(), queries.find_archived, trigger.entries)
        trigger.read.update(offset for row in rows for offset in (row.offset, row.since))
        if len(rows) < 2:
            return []
        left = {row.id for row in rows}
        payload = {
            "text": summary.summarize_texts([(row.text, row.importance) for row in rows]),
            "type": "summary",
            "importance": max(row.importance for row in rows),
            "sources": [id_ for id_ in trigger.entries if id_ in left],
            "cost": 0,
        }
        audience = None if all(row.shared for row in rows) else (trigger.agent,)
        return [
            Event(space=trigger.space, agent=trigger.agent, kind="memory.retained", payload=payload, audience=audience)
        ]
