"""What agents of a cluster ask of a memory: one trigger by its id, ticks for silent spaces, pace and deadline."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from recallog import Event, Memory
from recallog.models.long_term.retraction import Retraction
from recallog.reacting import LoopMemory
from recallog.reactors.answering import Answers
from recallog.reactors.loop import ReactorLoop
from recallog.reactors.pace import Pace
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.views.due import Work
from recallog_schemas import triggers
from recallog_schemas.models.beliefs.triggers import REFLECTION
from recallog_schemas.models.long_term.triggers import RETRACTION
from recallog_streams.answers import Answer
from support.events import event, run
from support.virtual_time import run_in_virtual_time

pytestmark = pytest.mark.models("beliefs", "long_term")

T0 = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def erasing() -> list[Event]:
    return [
        event("memory.retained", id="e-1", payload={"text": "One."}),
        event("memory.retained", id="e-2", payload={"text": "Two.", "sources": ["e-1"]}),
        event("memory.retained", id="e-3", payload={"text": "Three.", "sources": ["e-2"]}),
        event("memory.erased", payload={"entries": ["e-1"]}),
    ]


def test_a_trigger_is_answered_by_its_id_and_only_while_it_is_due() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            wants = event("agent.configured", payload={"reflection_threshold": 2})
            await memory.publish_many([*erasing(), wants, *(event("world.observed", agent="miller") for _ in range(2))])
            due = await memory.pending()
            assert [each.kind for each in due] == [REFLECTION, RETRACTION]
            for each in due:
                reaction = await memory.answer_due(each.space, each.agent, each.trigger)
                assert reaction is not None
                assert reaction.trigger == each.trigger
                assert await memory.answer_due(each.space, each.agent, each.trigger) is None
            assert not await memory.pending()
            for other in ("nonsense", triggers.caused_by("shop.due", "village", "baker", "e-1").id):
                assert await memory.answer_due("village", "baker", other) is None
            assert [
                None if (reactor := memory.reactor_of(kind)) is None else reactor.pure
                for kind in (RETRACTION, REFLECTION, "shop.due")
            ] == [True, False, None]

    run(work())


class Behind(LoopMemory):
    """The views of a memory, as a cluster shows them before its workers have processed the newest records."""

    behind = True

    async def read_processed(self, partition: int) -> int:
        return -1 if self.behind else await super().read_processed(partition)

    async def standing(self, space: str, trigger: str) -> Work | None:
        return self.row if self.behind else await super().standing(space, trigger)

    async def begun(self, space: str, trigger: str) -> Answer | None:
        return None if self.behind else await super().begun(space, trigger)

    row: Work | None = None


def test_a_trigger_is_not_answered_again_while_the_views_have_not_processed_its_answer() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(erasing())
            (due,) = await memory.pending()
            views, ledger = Behind(memory, memory._access), memory._components.ledger
            views.row = await LoopMemory(memory, memory._access).standing(due.space, due.trigger)
            loop = ReactorLoop(views, ledger, Answers(views, ledger, [Retraction()]), nullcontext)
            assert await loop.answer_due(due.space, due.agent, due.trigger) is not None
            ends = await ledger.ends()
            for _ in range(3):
                assert await loop.answer_due(due.space, due.agent, due.trigger) is None
            views.behind = False
            assert await loop.answer_due(due.space, due.agent, due.trigger) is None
            assert await ledger.ends() == ends
            assert not await memory.pending()

    run(work())


@pytest.mark.models("tiers")
def test_time_passes_in_silent_spaces_whose_plan_is_due_and_not_in_those_of_the_past() -> None:
    def kept(space: str, at: datetime) -> Event:
        return event("memory.retained", space=space, at=at, payload={"text": "Bread burns.", "tier": "slow"})

    async def work() -> None:
        async with Memory.in_memory() as memory:
            now = T0 + 24 * 40 * HOUR
            silent, fresh, past = now - 2 * HOUR, now - HOUR / 2, T0
            await memory.publish_many([kept("silent", silent), kept("fresh", fresh), kept("past", past), event()])
            assert await memory.tick(now) == 1
            assert await memory.tick(now) == 0
            assert [each.space for each in await memory.pending()] == ["silent"]
            await memory.react()
            assert await memory.tick(now + HOUR / 4) == 0
            assert await memory.tick(now + HOUR) == 2

    run(work())


class Slow(Reactor):
    kinds: ClassVar[frozenset[str]] = frozenset({RETRACTION})

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        await asyncio.sleep(3600)
        return []


def test_a_reactor_that_takes_longer_than_the_deadline_closes_the_trigger_as_failed() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(erasing())
            loop_memory, ledger = LoopMemory(memory, memory._access), memory._components.ledger
            answers = Answers(loop_memory, ledger, [Slow()], deadline_seconds=0.05)
            (reaction,) = await ReactorLoop(loop_memory, ledger, answers, nullcontext).react()
            assert (reaction.kind, reaction.text) == (triggers.FAILED, "no answer within 0.05 s")
            assert not await memory.pending()

    run(work())


@pytest.mark.parametrize(("per_second", "seconds"), [(None, 0.0), (2.0, 2.0), (0.5, 8.0)])
def test_the_pace_limits_how_often_models_are_asked(per_second: float | None, seconds: float) -> None:
    async def work() -> None:
        pace, now = Pace(per_second), asyncio.get_running_loop().time
        began = now()
        await asyncio.gather(*(pace.turn() for _ in range(5)))
        assert now() - began == pytest.approx(seconds)

    run_in_virtual_time(work())
