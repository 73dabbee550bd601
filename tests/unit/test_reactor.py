"""Reactors: each trigger is answered once despite crashes, and errors do not stop the memory."""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recallog import Event, Memory, Position, Settings
from recallog.models.beliefs.reflector import ReflectionAnswer, ReflectionRequest, Reflector
from recallog_schemas import triggers
from recallog_schemas.errors import IdConflict, LockTimeout, ModelFailed, ModelMisconfigured, NothingDue
from recallog_streams.ledgers.ledger import LedgerGuard
from support.chat_server import ChatServer, belief, status
from support.events import recorded, run
from support.waiting import until

pytestmark = pytest.mark.models("beliefs")

SPACE = "village"


def event_by(agent: str, kind: str, turn: int = 0, **payload: object) -> Event:
    return Event(space=SPACE, agent=agent, kind=kind, turn=turn, payload=dict(payload))


def seen(turn: int) -> Event:
    return event_by("narrator", "world.observed", turn, text=f"Morning {turn}.")


def wants(agent: str, threshold: int | None) -> Event:
    return event_by(agent, "agent.configured", reflection_threshold=threshold)


async def prepared(memory: Memory, *agents: str, threshold: int = 3, events: int = 3) -> None:
    await memory.publish_many([wants(agent, threshold) for agent in agents])
    await memory.publish_many([seen(turn) for turn in range(events)])


class Scripted(Reflector):
    """Answers from a script, and records its requests."""

    def __init__(self, answer: Callable[[ReflectionRequest], ReflectionAnswer] | None = None) -> None:
        self.requests: list[ReflectionRequest] = []
        self.closed = False
        self._answer = answer or (lambda question: ReflectionAnswer("All is well.", [question.evidence[-1].id]))

    async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
        self.requests.append(question)
        return self._answer(question)

    async def close(self) -> None:
        self.closed = True


class Broken(Reflector):
    async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
        raise ModelFailed("no words today", retryable=False)

    async def close(self) -> None:
        return None


def test_a_due_reflection_is_answered_with_a_belief_that_names_its_trigger(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, reflector=Scripted()) as memory:
            await prepared(memory, "baker")
            due = await memory.reflection(SPACE, "baker")
            (reaction,) = await memory.react()
            (held,) = (await memory.beliefs(SPACE, "baker")).beliefs
            trigger = triggers.parse(due.trigger)
            assert trigger is not None
            assert (held.event.causation_id, held.event.id) == (due.trigger, trigger.answer_id)
            assert (reaction.text, reaction.based_on, reaction.position) == (held.text, held.based_on, held.position)
            assert held.based_on == (due.on[-1].event.id,)
            assert not (await memory.reflection(SPACE, "baker")).due

    run(work())


def test_the_reflector_receives_the_agent_its_beliefs_and_the_evidence(tmp_path: Path) -> None:
    reflector = Scripted()

    async def work() -> None:
        async with Memory.open(tmp_path, reflector=reflector) as memory:
            await memory.publish(
                event_by("baker", "agent.configured", persona="Stern.", goal="Bread.", reflection_threshold=2)
            )
            await memory.publish(event_by("baker", "agent.reflected", belief="The miller lies."))
            await memory.publish_many([seen(turn) for turn in range(25)])
            await memory.react()

    run(work())
    (question,) = reflector.requests
    assert (question.persona, question.goal, question.beliefs) == ("Stern.", "Bread.", ["The miller lies."])
    assert [evidence.text for evidence in question.evidence] == [f"Morning {turn}." for turn in range(5, 25)]


@pytest.mark.parametrize(
    ("days", "dates", "expected"),
    [
        (0, None, [None, None, None]),
        (2, None, ["2023-05-08", "2023-05-10", None]),
        (2, "never", [None, None, None]),
        (0, "always", ["2023-05-08", "2023-05-08", None]),
    ],
)
def test_evidence_has_dates_where_the_lines_of_the_agent_have_them(
    tmp_path: Path, days: int, dates: str | None, expected: list[str | None]
) -> None:
    """The last event has a time that ingest invented."""
    reflector, first = Scripted(), datetime(2023, 5, 8, tzinfo=UTC)
    times = [first, first + timedelta(days=days), datetime(2000, 1, 1, tzinfo=UTC)]

    async def work() -> None:
        async with Memory.open(tmp_path, reflector=reflector) as memory:
            await memory.publish(event_by("baker", "agent.configured", reflection_threshold=3, dates=dates))
            await memory.publish_many([seen(turn).model_copy(update={"at": at}) for turn, at in enumerate(times)])
            await memory.react()

    run(work())
    (question,) = reflector.requests
    assert [evidence.date for evidence in question.evidence] == expected


def test_react_publishes_nothing_if_no_reflection_is_due(tmp_path: Path) -> None:
    async def work() -> int:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker", events=2)
            assert len(await memory.react()) == 0
            return len(await recorded(memory))

    assert run(work()) == 3


def test_a_failed_reflection_is_recorded_and_the_memory_continues(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, reflector=Broken()) as memory:
            await prepared(memory, "baker")
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reflection.failed", "no words today")
            after = await memory.reflection(SPACE, "baker")
            assert (after.due, after.events) == (False, 0)
            assert (await memory.beliefs(SPACE, "baker")).beliefs == ()
            await memory.publish_many([seen(turn) for turn in range(3, 6)])
            assert (await memory.reflection(SPACE, "baker")).due

    run(work())


def test_a_wrong_configuration_consumes_no_trigger(tmp_path: Path) -> None:
    async def work() -> None:
        with ChatServer(status(401)) as server:
            settings = Settings(home=tmp_path, model=f"{server.url}#small")
            async with Memory.open(settings) as memory:
                await prepared(memory, "baker")
                with pytest.raises(ModelMisconfigured):
                    await memory.react()
                assert len(await memory.pending()) == 1

    run(work())


def test_an_error_about_a_url_without_a_model_says_where_its_name_goes(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, model="http://127.0.0.1:1")) as memory:
            with pytest.raises(ModelMisconfigured, match=r"no model is named for .*#name"):
                await memory.react()

    run(work())


def test_an_endpoint_s_belief_becomes_the_agent_s(tmp_path: Path) -> None:
    async def work() -> None:
        first = seen(0)
        with ChatServer(belief("The mill is cursed.", first.id)) as server:
            settings = Settings(home=tmp_path, model=f"{server.url}#small")
            async with Memory.open(settings) as memory:
                await memory.publish_many([wants("baker", 1), first])
                (reaction,) = await memory.react()
            assert (reaction.text, reaction.based_on) == ("The mill is cursed.", (first.id,))
            assert server.requests[0].evidence == [first.id]

    run(work())


def _dies_before_the_append(home: Path) -> None:
    def answer(question: ReflectionRequest) -> ReflectionAnswer:
        os._exit(9)

    async def work() -> None:
        async with Memory.open(home, reflector=Scripted(answer)) as memory:
            await memory.react()

    asyncio.run(work())


def _dies_after_the_append(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(home, reflector=Scripted()) as memory:
            ledger = memory._components.ledger
            append = ledger.append_guarded

            async def append_and_die(
                events: Sequence[Event], guard: LedgerGuard, appended: Sequence[int] | None = None
            ) -> list[Position]:
                await append(events, guard)
                os._exit(9)

            ledger.append_guarded = append_and_die  # type: ignore[method-assign]
            await memory.react()

    asyncio.run(work())


@pytest.mark.parametrize("die", [_dies_before_the_append, _dies_after_the_append])
def test_a_crash_around_the_append_is_retried_and_still_counts_once(
    tmp_path: Path, die: Callable[[Path], None]
) -> None:
    async def prepare() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker")

    async def check() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.react()
            await memory.react()
            assert len([each for each in await recorded(memory) if each.kind == "agent.reflected"]) == 1
            assert len((await memory.beliefs(SPACE, "baker")).beliefs) == 1
            assert len(await memory.pending()) == 0

    run(prepare())
    process = multiprocessing.get_context("spawn").Process(target=die, args=(tmp_path,))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    run(check())


def test_the_first_of_two_answers_to_one_trigger_counts_and_the_second_is_no_conflict(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker")
            due = await memory.reflection(SPACE, "baker")
            first = await memory.publish(due.answer("The first."))
            assert await memory.publish(due.answer("The second.")) == first
            assert [held.text for held in (await memory.beliefs(SPACE, "baker")).beliefs] == ["The first."]

    run(work())


def test_an_answer_s_id_with_another_cause_is_a_conflict(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker")
            answer = (await memory.reflection(SPACE, "baker")).answer("The first.")
            await memory.publish(answer)
            with pytest.raises(IdConflict):
                await memory.publish(answer.model_copy(update={"causation_id": None, "turn": 7}))

    run(work())


def test_an_event_with_the_id_of_an_answer_does_not_stop_the_reactor(tmp_path: Path) -> None:
    """Every answer was a conflict, and the triggers of other agents were never answered."""

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker", "miller")
            answer = (await memory.reflection(SPACE, "baker")).answer("Mine.")
            await memory.publish(answer.model_copy(update={"kind": "agent.spoke", "payload": {"text": "Taken."}}))
            assert [reaction.agent for reaction in await memory.react()] == ["baker", "miller"]
            # The miller's belief is the one event that the baker has seen since.
            assert (await memory.reflection(SPACE, "baker")).events == 1
            assert [reaction.agent for reaction in await memory.react()] == []

    run(work())


def test_the_slower_of_two_reactors_reports_the_answer_that_counts(tmp_path: Path) -> None:
    """The reactor reported an answer as its own that another process had written."""

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker")
            due = await memory.reflection(SPACE, "baker")

            class Slow(Scripted):
                async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
                    await memory.publish(due.answer("I was faster."))
                    return await super().reflect(question)

            async with Memory.open(tmp_path, reflector=Slow()) as slow:
                (reaction,) = await slow.react()
            assert reaction.text == "I was faster."

    run(work())


def test_a_trigger_that_was_answered_meanwhile_is_not_answered_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as other:
            await prepared(other, "baker", "miller")

            class Helpful(Scripted):
                """While the baker's answer is computed, another process answers for the miller."""

                immediate = True

                async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
                    miller = await other.reflection(SPACE, "miller")
                    if miller.due:
                        await other.publish(miller.answer("I speak for myself."))
                    return await super().reflect(question)

            async with Memory.open(tmp_path, reflector=Helpful()) as memory:
                (reaction,) = await memory.react()
                assert reaction.agent == "baker"

    run(work())


def test_an_answer_needs_a_trigger(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker", events=2)
            with pytest.raises(NothingDue, match="2 of 3"):
                (await memory.reflection(SPACE, "baker")).answer("Too early.")

    run(work())


def test_one_process_reacts_at_a_time(tmp_path: Path) -> None:
    async def work() -> None:
        settings = Settings(home=tmp_path, lock_wait_seconds=0.2)
        async with Memory.open(settings) as memory:
            await prepared(memory, "baker")

            class Blocking(Scripted):
                async def reflect(self, question: ReflectionRequest) -> ReflectionAnswer:
                    with pytest.raises(LockTimeout, match="reactors"):
                        await memory.react()
                    return await super().reflect(question)

            async with Memory.open(settings, reflector=Blocking()) as other:
                assert len(await other.react()) == 1

    run(work())


def test_one_call_answers_pending_triggers_and_leaves_those_that_it_causes(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await prepared(memory, "baker", "miller", threshold=1, events=1)
            assert [reaction.agent for reaction in await memory.react()] == ["baker", "miller"]
            # The miller's reflection is a new event for the baker.
            assert [trigger.agent for trigger in await memory.pending()] == ["baker"]

    run(work())


def test_the_background_reactor_answers_due_reflections(tmp_path: Path) -> None:
    reflector = Scripted()

    async def work() -> None:
        async with Memory.open(tmp_path, reactors=True, reflector=reflector) as memory:
            await prepared(memory, "baker")

            async def answered() -> bool:
                return bool((await memory.beliefs(SPACE, "baker")).beliefs)

            await until(answered, "the trigger is answered")

    run(work())
    assert reflector.closed


def test_the_background_reactor_sees_events_of_other_processes(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path, reactors=True) as memory, Memory.open(tmp_path) as other:
            await prepared(other, "baker")

            async def answered() -> bool:
                return bool((await memory.beliefs(SPACE, "baker")).beliefs)

            await until(answered, "the trigger is answered")

    run(work())


def test_agents_that_see_only_each_other_s_reflections_come_to_rest(tmp_path: Path) -> None:
    """Each reflection was an event for the others, which made theirs due, and so on without end."""
    reflector = Scripted()
    agents = ["baker", "miller", "smith", "widow"]

    async def work() -> Sequence[str]:
        async with Memory.open(tmp_path, reactors=True, reflector=reflector) as memory:
            await prepared(memory, *agents, threshold=1, events=1)

            async def at_rest() -> bool:
                pending = [await memory.reflection(SPACE, trigger.agent) for trigger in await memory.pending()]
                heard = [shown.event.kind for due in pending for shown in due.on]
                return bool(reflector.requests) and set(heard) == {"agent.reflected"}

            await until(at_rest, "the agents are at rest")
            before = len(reflector.requests)
            for _ in range(3):
                # Each round in the background begins by reading the ledger's end.
                await memory.publish(event_by("narrator", "clock.ticked"))
                await asyncio.sleep(0.05)
            assert len(reflector.requests) == before
            return [question.agent for question in reflector.requests]

    assert sorted(run(work())) == agents


def test_a_failed_background_reactor_is_reported_and_the_memory_still_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        with ChatServer(status(401)) as server:
            settings = Settings(home=tmp_path, model=f"{server.url}#small")
            async with Memory.open(settings, reactors=True) as memory:
                await prepared(memory, "baker")

                async def warned() -> bool:
                    return "ModelMisconfigured" in caplog.text

                await until(warned, "the failure is reported")
                assert len((await memory.episodic(SPACE, "baker")).memories) == 3

    run(work())


def test_a_rebuild_answers_no_trigger_again(tmp_path: Path) -> None:
    async def work() -> None:
        reflector = Scripted()
        async with Memory.open(tmp_path, reflector=reflector) as memory:
            await prepared(memory, "baker", "miller")
            await memory.react()
            pending, ends = await memory.pending(), await memory.admin.ledger_ends()
            await memory.admin.rebuild()
            assert (await memory.pending(), await memory.admin.ledger_ends()) == (pending, ends)
            await memory.react()
            assert len(reflector.requests) == 2

    run(work())
