"""The reactor of reflections: asks a reflector for a belief, from what an agent has seen since its last reflection."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from recallog.access import MemoryAccess
from recallog.models.beliefs.reflector import Evidence, ReflectionRequest, Reflector, ask
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_schemas import Event, triggers
from recallog_schemas.errors import InvariantViolation, ModelFailed
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.models.beliefs.triggers import REFLECTION
from recallog_schemas.models.beliefs.views import BeliefsView, Counted, ReflectionView
from recallog_schemas.own_words import own_words
from recallog_schemas.views import AgentSettingsView, are_dated, shown_date

NO_EVIDENCE = "no event is of a source that the space makes beliefs from"


class ReflectionReactor(Reactor):
    """Answers `reflection.due` with `agent.reflected`, or with `reflection.failed` after the reflector's retries."""

    kinds: ClassVar[frozenset[str]] = frozenset({REFLECTION})

    def __init__(
        self,
        access: MemoryAccess,
        reflector: Reflector,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._access = access
        self._reflector = reflector
        self._sleep = sleep
        self.immediate = reflector.immediate

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        due: ReflectionView = await self._access.memory.reflection(trigger.space, trigger.agent)
        if due.trigger != trigger.id:
            return None
        if trigger.skip_loops and due.on and all(shown.event.kind == "agent.reflected" for shown in due.on):
            return None
        request = await self._request(due, trigger.read)
        if not request.evidence:
            return [_make_failure(due, NO_EVIDENCE)]
        try:
            answer = await ask(self._reflector, request, sleep=self._sleep)
        except ModelFailed as failed:
            return [_make_failure(due, failed.reason)]
        session = due.on[-1].event.session if due.on else None
        return [due.answer(answer.belief, answer.based_on, session=session, about=answer.about, stance=answer.stance)]

    async def _request(self, due: ReflectionView, read: set[int]) -> ReflectionRequest:
        """The request to the reflector. The offsets of its events are added to `read`."""
        settings: AgentSettingsView = await self._access.memory.agent_settings(due.space, due.agent)
        held: BeliefsView = await self._access.memory.beliefs(due.space, due.agent)
        beliefs = held.beliefs[-beliefs_limits.PROMPT_BELIEFS :]
        evidence = [shown for shown in due.on if not shown.event.is_erased and _is_own(shown)]
        read.update(shown.position.offset for shown in (*beliefs, *evidence))
        dated = are_dated((shown.at for shown in due.on), due.dates)
        return ReflectionRequest(
            trigger=due.trigger or "",
            space=due.space,
            agent=due.agent,
            persona=settings.persona,
            goal=settings.goal,
            beliefs=[belief.text for belief in beliefs],
            evidence=[
                Evidence(
                    id=shown.event.id,
                    turn=shown.event.turn,
                    agent=shown.event.agent,
                    kind=shown.event.kind,
                    text=own_words(shown.text),
                    importance=shown.importance,
                    date=shown_date(shown.at, dated=dated),
                )
                for shown in evidence
            ],
        )


def _is_own(shown: Counted) -> bool:
    """Whether an event contains its author's own words, or has no text at all."""
    return not shown.text or bool(own_words(shown.text))


def _make_failure(due: ReflectionView, reason: str) -> Event:
    trigger = triggers.parse(due.trigger)
    if trigger is None:
        raise InvariantViolation(f"{due.trigger!r} is not the id of a trigger")
    return Event(
        id=trigger.answer_id,
        space=due.space,
        agent=due.agent,
        kind="reflection.failed",
        turn=due.turn,
        payload={"trigger": trigger.id, "reason": reason},
        causation_id=trigger.id,
    )
