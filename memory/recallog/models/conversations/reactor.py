"""The reactor of compactions: replaces the beginning of a long conversation by a summary."""

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from recallog.access import MemoryAccess
from recallog.models.conversations import queries
from recallog.models.conversations import summarizer as summarizers
from recallog.models.conversations.compaction import EXTRACTIVE, CompactionPlan, Summary
from recallog.models.conversations.queries import PlannedCompaction
from recallog.models.conversations.summarizer import Summarizer
from recallog.operations.parameters import At
from recallog.reactors.asking import Sleep
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.models.conversations import rendering
from recallog_projections.models.conversations.tables import ConversationKey
from recallog_schemas import Event, limits, triggers
from recallog_schemas.errors import ModelFailed
from recallog_schemas.models.conversations.triggers import COMPACTION
from recallog_schemas.shortening import cut


class Compaction(Reactor):
    """Answers `compaction.due` with a `conversation.compacted`, or with nothing if the conversation was compacted
    meanwhile.

    Without a summarizer, the summary quotes the messages. If the summarizer fails after its retries, the summary quotes
    them too, and the trigger is closed with `reaction.failed`. After three failures in a row, the conversation is left
    for ten minutes.
    """

    kinds: ClassVar[frozenset[str]] = frozenset({COMPACTION})

    def __init__(
        self, access: MemoryAccess, summarizer: Summarizer | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._access = access
        self._summarizer = summarizer
        self._sleep = sleep
        self.immediate = summarizer is None

    async def answer(self, trigger: DueTrigger) -> Sequence[Event]:
        if trigger.session is None:
            return []
        planned = await self._plan_compaction(ConversationKey(trigger.space, trigger.agent, trigger.session))
        if planned.upto is None:
            return []
        trigger.read.update(planned.offsets)
        summary, by, failed = await summarize_plan(planned.plan, self._summarizer, self._sleep)
        common: dict[str, Any] = {
            "space": trigger.space,
            "agent": trigger.agent,
            "session": trigger.session,
            "turn": trigger.turn,
        }
        payload = payload_of(trigger.session, planned, summary, by)
        compacted = Event(**common, kind=rendering.COMPACTION, subject=planned.subject, payload=payload)
        parsed = triggers.parse(trigger.id)
        if failed is None or parsed is None:
            return [compacted]
        closing = Event(
            **common,
            id=parsed.answer_id,
            kind=triggers.FAILED,
            causation_id=trigger.id,
            payload={"trigger": trigger.id, "reason": cut(failed, limits.REASON_CHARS_MAX)},
        )
        return [compacted, closing]

    async def _plan_compaction(self, conversation: ConversationKey) -> PlannedCompaction:
        """What a compaction of a conversation would replace now."""
        return await self._access.of_agent(
            conversation.space, conversation.agent, At(), queries.plan_compaction, conversation
        )


async def summarize_plan(
    plan: CompactionPlan, summarizer: Summarizer | None, sleep: Sleep = asyncio.sleep
) -> tuple[Summary, str, str | None]:
    """The summary of a compaction, the name of its author, and why the summarizer failed."""
    failed = None
    if summarizer is not None:
        try:
            text = await summarizers.ask(summarizer, plan.summarised, sleep=sleep)
            return plan.summary(text), summarizer.name, None
        except ModelFailed as error:
            failed = str(error)
    return plan.summary(None), EXTRACTIVE, failed


def payload_of(session: str, planned: PlannedCompaction, summary: Summary, by: str) -> dict[str, object]:
    """The payload of the event that records a compaction."""
    return {
        "session": session,
        "upto": planned.upto,
        "count": len(planned.plan.head),
        "summary": str(summary),
        "by": by,
        "removals": planned.removals,
    }
