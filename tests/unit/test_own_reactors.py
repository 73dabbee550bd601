"""Reactors of users' own: in place of built-in ones, for triggers of their projections, and beside slow and failing
ones."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from recallog import Event, Memory, Settings
from recallog.composition import assemble
from recallog.extending import DueTrigger, ReflectionAnswer, ReflectionRequest, Reflector
from recallog.reactors import loop
from recallog.reactors.failures import Failures
from recallog.reactors.lanes import Lanes
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import limits
from recallog_schemas.errors import (
    InvalidArgument,
    LockTimeout,
    ModelFailed,
    ModelMisconfigured,
    ProjectionError,
    StorageUnavailable,
)
from recallog_schemas.models.beliefs.triggers import REFLECTION
from recallog_schemas.models.long_term.triggers import MIGRATION
from recallog_streams.ledgers.memory import MemoryLedger
from support import own_promises
from support.cli import Result, recallog
from support.events import event, recorded, run
from support.own_promises import Promises
from support.virtual_time import run_in_virtual_time
from support.waiting import until

pytestmark = pytest.mark.models("beliefs", "long_term")

SPACE = "village"
T0 = datetime(2026, 3, 1, tzinfo=UTC)


class Keeping(own_promises.Keeping):
    """Records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[DueTrigger] = []
        self.memory: Memory | None = None
        self.closed = 0

    def attach(self, memory: Memory) -> None:
        self.memory = memory

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        self.asked.append(trigger)
        return await super().answer(trigger)

    async def close(self) -> None:
        self.closed += 1


def said(text: str, **fields: Any) -> Event:
    return event(payload={"text": text}, **fields)


@asynccontextmanager
async def opened(memory: Memory) -> AsyncIterator[Memory]:
    """A memory that answers nothing in the background."""
    try:
        yield memory
    finally:
        await memory.close()


# Triggers of a projection.


@pytest.mark.parametrize("unique_ids", [True, False])
def test_what_a_projection_makes_due_is_answered_once_and_closed(unique_ids: bool) -> None:
    async def work() -> None:
        components = assemble(MemoryLedger(unique_ids=unique_ids), lambda namespace: MemoryStore(), own=[Promises()])
        async with opened(Memory(components, reactors=[reactor := Keeping()])) as memory:
            promise = said("I promise bread. Hm. I promise cake", session="x1", turn=3, at=T0)
            await memory.publish_many([promise, promise, said("Bread!")])
            pending = await memory.pending()
            assert [(due.kind, due.agent, due.events, due.since, due.why) for due in pending] == [
                ("promise.due", "baker", 1, T0, None)
            ] * 2
            assert [reaction.text for reaction in await memory.react()] == ["1 event", "1 event"]
            assert [trigger.texts for trigger in reactor.asked] == [
                (("said", "I promise bread"),), (("said", "I promise cake"),),
            ]  # fmt: skip
            (asked, _) = reactor.asked
            assert (asked.cause, asked.at, asked.turn, asked.session) == (promise.id, T0, 3, "x1")
            assert reactor.memory is memory
            assert not await memory.pending()
            before = await recorded(memory)
            assert [each.text for each in before if each.kind == "agent.thought"] == [
                "I promise bread", "I promise cake",
            ]  # fmt: skip
            await memory.admin.rebuild()
            assert not await memory.pending()
            assert not await memory.react()
            assert await recorded(memory) == before
            assert (await memory.admin.verify()).ok

    run(work())


def test_a_trigger_without_a_reactor_stays_due_and_pending_says_why() -> None:
    async def work() -> None:
        async with Memory.in_memory(projections=[Promises()]) as memory:
            await memory.publish(said("I promise bread", at=T0))
            assert not await memory.react()
            (due,) = await memory.pending(SPACE)
            assert due.why == "no reactor answers it"
            assert due.format() == (
                "village  baker  promise.due  1 item  since 2026-03-01 00:00:00  (no reactor answers it)"
            )
            assert not await memory.pending("town")

    run(work())


@pytest.mark.models("tiers")
@pytest.mark.parametrize("kind", ["summary.due", "reflection.due", "promise", "Promise.due"])
def test_a_projection_cannot_make_something_due_that_is_not_its_own(kind: str) -> None:
    class Wrong(Promises):
        pass

    Wrong.kind = kind  # type: ignore[misc]

    async def work() -> None:
        async with Memory.in_memory(projections=[Wrong()]) as memory:
            await memory.publish(said("I promise bread"))
            assert not await memory.pending()
            (letter,) = await memory.admin.dead_letters()
            assert "cannot name a trigger of your own" in letter.detail

    run(work())


def test_a_projection_that_is_added_later_makes_due_what_happened_before(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(said("I promise bread"))
        for answers in (1, 0):
            async with opened(Memory.open(tmp_path, projections=[Promises()], reactors=[Keeping()])) as memory:
                assert len(await memory.react()) == answers

    run(work())


def test_views_of_a_projection_that_cannot_be_read_do_not_stop_the_built_in_triggers() -> None:
    class Away(MemoryStore):
        async def pointer(self, partition: int) -> Any:
            raise StorageUnavailable("it is away")

        read = scan = read_current = pointer  # type: ignore[assignment]

    async def work() -> None:
        ledger = MemoryLedger()
        components = assemble(
            ledger, lambda namespace: Away() if namespace == "promises" else MemoryStore(), own=[Promises()]
        )
        async with opened(Memory(components, reactors=[Keeping()])) as memory:
            await memory.publish_many([*turn_with_a_note(), said("I promise bread")])
            with suppress(StorageUnavailable):
                await memory.react()
            assert [each.kind for each in await recorded(memory)].count("reaction.done") >= 1

    run(work())


# Reactors in place of built-in ones.


def turn_with_a_note(agent: str = "baker", session: str = "x1") -> list[Event]:
    note = {"namespace": ["session", session], "key": "k", "value": "NOTE: flour is low"}
    return [
        event("item.put", agent=agent, payload=note),
        event("session.ended", agent=agent, session=session, payload={}),
    ]


class Dropping(Keeping):
    """Keeps no notes."""

    kinds: ClassVar[frozenset[str]] = frozenset({MIGRATION})

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        self.asked.append(trigger)
        return []


def test_a_reactor_of_ones_own_stands_in_place_of_the_built_in_one() -> None:
    async def work() -> None:
        async with opened(Memory.in_memory(reactors=[reactor := Dropping()])) as memory:
            await memory.publish_many(turn_with_a_note())
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reaction.done", "0 events")
            assert [trigger.kind for trigger in reactor.asked] == ["migration.due"]
            assert not (await memory.long_term.list(SPACE, "baker")).entries
        assert reactor.closed == 1

    run(work())


def test_what_is_wrong_with_a_built_in_reactor_that_is_replaced_does_not_matter(tmp_path: Path) -> None:
    class Reflecting(Keeping):
        kinds: ClassVar[frozenset[str]] = frozenset({REFLECTION})

        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            raise ModelFailed("no words", retryable=False)

    async def work() -> None:
        settings = Settings(home=tmp_path, model_reflect="http://127.0.0.1:1")
        async with opened(Memory.open(settings, reactors=[Reflecting()])) as memory:
            await memory.publish_many(reflecting("baker"))
            (reaction,) = await memory.react()
            assert (reaction.kind, reaction.text) == ("reflection.failed", "no words")

    run(work())


def test_a_reactor_that_cannot_be_closed_does_not_keep_others_open() -> None:
    class Unclosed(Dropping):
        async def close(self) -> None:
            raise ZeroDivisionError

    async def work() -> None:
        memory = Memory.in_memory(reactors=[Unclosed(), other := Keeping()])
        await memory.react()
        with pytest.raises(ZeroDivisionError):
            await memory.close()
        assert other.closed == 1

    run(work())


def test_reactors_answer_in_the_background_of_an_open_memory() -> None:
    async def work() -> None:
        async with Memory.in_memory(projections=[Promises()], reactors=[Keeping()]) as memory:
            await memory.publish(said("I promise bread"))

            async def answered() -> bool:
                return "agent.thought" in [each.kind for each in await recorded(memory)]

            await until(answered, "the trigger is answered")

    run_in_virtual_time(work())


class Other(Keeping):
    """Answers the same kind."""


@pytest.mark.parametrize(
    ("reactors", "path"),
    [
        ("Keeping", "reactors"),
        (7, "reactors"),
        ([Keeping], "reactors.0"),
        ([Keeping(), "x"], "reactors.1"),
        ([Keeping(), Other()], "reactors.1"),
    ],
)
def test_what_is_no_reactor_is_refused(reactors: Any, path: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Memory.in_memory(reactors=reactors)
    assert refused.value.path == path


# Slow and failing ones.


class Waiting(Reflector):
    """Never answers for the slow agents."""

    def __init__(self, *slow: str) -> None:
        self.slow = slow
        self.asked: list[str] = []

    async def reflect(self, request: ReflectionRequest) -> ReflectionAnswer:
        self.asked.append(request.agent)
        if request.agent in self.slow:
            await asyncio.Event().wait()
        return ReflectionAnswer("So it is.", [each.id for each in request.evidence])

    async def close(self) -> None:
        """Nothing to close."""


def reflecting(*agents: str) -> list[Event]:
    return [
        each
        for agent in agents
        for each in (
            event("agent.configured", agent=agent, payload={"reflection_threshold": 1}),
            event("world.observed", agent="narrator", audience=(agent,)),
        )
    ]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.01)


def test_a_slow_model_delays_neither_rules_nor_the_reflections_of_other_agents() -> None:
    async def work() -> None:
        reflector = Waiting("baker")
        async with Memory.in_memory(reactors=True, reflector=reflector) as memory:
            await memory.publish_many(reflecting("baker", "miller"))

            async def believes() -> bool:
                return bool((await memory.beliefs(SPACE, "miller")).beliefs)

            await until(believes, "the miller has a belief")
            await memory.publish_many(turn_with_a_note("smith"))

            async def keeps() -> bool:
                return bool((await memory.long_term.list(SPACE, "smith")).entries)

            await until(keeps, "the note is kept")
            await memory.publish_many(reflecting("smith"))

            async def reflects() -> bool:
                return bool((await memory.beliefs(SPACE, "smith")).beliefs)

            await until(reflects, "the smith has a belief")
            assert reflector.asked.count("baker") == 1
            assert "baker" in [due.agent for due in await memory.pending()]

    run_in_virtual_time(work())


@pytest.mark.parametrize("in_background", [True, False])
def test_a_backlog_that_does_not_fit_in_memory_is_answered_all_the_same(
    in_background: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_WAITING_MAX", 4)

    class Slow(Keeping):
        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            await asyncio.sleep(0)
            return await super().answer(trigger)

    async def work() -> None:
        memory = Memory.in_memory(projections=[Promises()], reactors=[reactor := Slow()])
        await memory.publish_many([said("I promise", agent=f"agent-{number}") for number in range(150)])

        async def done() -> bool:
            return not await memory.pending()

        async with memory if in_background else opened(memory):
            if not in_background:
                assert len(await memory.react()) == 150
            await until(done, "nothing is pending")
            assert sorted(trigger.agent for trigger in reactor.asked) == sorted(f"agent-{n}" for n in range(150))

    run_in_virtual_time(work())


def test_a_call_of_react_beside_the_background_asks_nobody_twice() -> None:
    class Slow(Keeping):
        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            events = await super().answer(trigger)
            await asyncio.sleep(0.02)
            return events

    async def work() -> None:
        async with Memory.in_memory(projections=[Promises()], reactors=[reactor := Slow()]) as memory:
            for number in range(5):
                await memory.publish_many([said("I promise", agent=f"agent-{number}-{each}") for each in range(3)])
                await asyncio.sleep(0.01)
                await memory.react()
            assert not await memory.pending()
            assert len(reactor.asked) == len({trigger.id for trigger in reactor.asked}) == 15

    run_in_virtual_time(work())


def test_a_process_that_is_reacting_already_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.05)

    class Nested(Keeping):
        async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
            assert self.memory is not None
            with pytest.raises(LockTimeout, match="this process is answering triggers already"):
                await self.memory.react()
            return await super().answer(trigger)

    async def work() -> None:
        async with opened(Memory.in_memory(projections=[Promises()], reactors=[Nested()])) as memory:
            await memory.publish(said("I promise"))
            assert [reaction.kind for reaction in await memory.react()] == ["reaction.done"]

    run(work())


def within_a_minute() -> Settings:
    """Settings of a memory whose reactors may take 60 s; it needs no threads, so that it can run in virtual time."""
    return Settings(ledger="memory://", views="memory://", reactor_deadline_seconds=60)


def test_an_answer_that_takes_longer_than_the_deadline_has_failed() -> None:
    async def work() -> None:
        async with Memory.open(within_a_minute(), reflector=Waiting("baker")) as memory:
            await memory.publish_many(reflecting("baker", "miller"))
            reactions = await memory.react()
            assert [(each.agent, each.kind) for each in reactions] == [
                ("baker", "reflection.failed"), ("miller", "agent.reflected"),
            ]  # fmt: skip
            assert reactions[0].text == "no answer within 60 s"

    run_in_virtual_time(work())


class Failing(Keeping):
    """Fails for some agents, so many times."""

    def __init__(self, error: BaseException, *agents: str, times: int = 1_000) -> None:
        super().__init__()
        self.error, self.agents, self.times = error, agents, times

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        if trigger.agent in self.agents and self.times > 0:
            self.times -= 1
            raise self.error
        return await super().answer(trigger)


def test_one_failure_stops_no_others_and_pending_counts_the_tries() -> None:
    async def work() -> None:
        reactor = Failing(StorageUnavailable("it is away"), "baker")
        async with opened(Memory.in_memory(projections=[Promises()], reactors=[reactor])) as memory:
            await memory.publish_many([said("I promise", agent=agent) for agent in ("baker", "miller", "smith")])
            for tries in ("1 time", "2 times"):
                with pytest.raises(StorageUnavailable):
                    await memory.react()
                (due,) = await memory.pending()
                assert (due.agent, due.why) == ("baker", f"failed {tries}: it is away")
            assert sorted(trigger.agent for trigger in reactor.asked) == ["miller", "smith"]
            reactor.times = 0
            assert len(await memory.react()) == 1
            assert not await memory.pending()

    run(work())


@pytest.mark.usefixtures("often")
def test_in_the_background_a_trigger_that_failed_is_tried_again_and_others_are_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.05)

    async def work() -> None:
        reactor = Failing(StorageUnavailable("it is away"), "baker", times=2)
        async with Memory.in_memory(projections=[Promises()], reactors=[reactor]) as memory:
            await memory.publish_many([said("I promise", agent=agent) for agent in ("baker", "miller")])

            async def done() -> bool:
                return not await memory.pending()

            await until(done, "nothing is pending")
            assert [trigger.agent for trigger in reactor.asked] == ["miller", "baker"]
            assert caplog.text.count("it is away") == 2

    run(work())


def test_in_the_background_a_misconfigured_model_is_asked_no_more_for_a_while() -> None:
    async def work() -> None:
        asked: list[str] = []

        class Refused(Keeping):
            async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
                asked.append(trigger.agent)
                await asyncio.sleep(0)
                raise ModelMisconfigured("no key")

        async with Memory.in_memory(projections=[Promises()], reactors=[Refused()]) as memory:
            await memory.publish_many([said("I promise", agent=f"agent-{number}") for number in range(40)])

            async def refused() -> bool:
                return "misconfigured: no key" in {due.why for due in await memory.pending()}

            await until(refused, "the model is misconfigured")
            await memory.publish_many(turn_with_a_note("smith"))

            async def keeps() -> bool:
                return bool((await memory.long_term.list(SPACE, "smith")).entries)

            await until(keeps, "the note is kept")
            assert len(asked) <= 8
            assert len(await memory.pending()) == 40

    run_in_virtual_time(work())


@pytest.mark.usefixtures("often")
def test_in_the_background_views_that_could_not_be_read_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "RETRY_SECONDS", 0.05)

    async def work() -> None:
        async with Memory.in_memory(projections=[Promises()], reactors=[reactor := Keeping()]) as memory:
            (own,) = memory._components.own
            reading, failures = own.access.reading, 3

            async def failing(*arguments: Any) -> Any:
                nonlocal failures
                if failures:
                    failures -= 1
                    raise ProjectionError("a defect")
                return await reading(*arguments)

            monkeypatch.setattr(own.access, "reading", failing)
            await memory.publish(said("I promise"))

            async def asked() -> bool:
                return bool(reactor.asked)

            await until(asked, "the reactor is asked")
            assert not failures

    run(work())


def test_a_misconfigured_model_stops_its_own_kind_only() -> None:
    async def work() -> None:
        reactor = Failing(ModelMisconfigured("no key"), "baker", "miller")
        async with opened(Memory.in_memory(projections=[Promises()], reactors=[reactor])) as memory:
            promises = [said("I promise", agent=agent) for agent in ("baker", "miller")]
            await memory.publish_many([*promises, *turn_with_a_note("smith")])
            with pytest.raises(ModelMisconfigured):
                await memory.react()
            assert {(due.kind, due.why) for due in await memory.pending()} == {("promise.due", "misconfigured: no key")}
            assert (await memory.long_term.list(SPACE, "smith")).entries

    run(work())


def test_a_model_that_cannot_be_made_stops_its_own_kind_only(tmp_path: Path) -> None:
    """The loop was not built at all, and erasures waited for the name of a model."""

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, model_reflect="http://127.0.0.1:1")) as memory:
            await memory.publish_many([*reflecting("baker"), *turn_with_a_note("smith")])
            with pytest.raises(ModelMisconfigured, match="no model is named"):
                await memory.react()
            assert (await memory.long_term.list(SPACE, "smith")).entries
            (due,) = await memory.pending()
            assert due.why is not None
            assert due.why.startswith("misconfigured: no model is named for http://127.0.0.1:1")

    run(work())


def test_what_an_own_reactor_cannot_answer_is_closed_with_the_reason() -> None:
    async def work() -> None:
        errors: list[tuple[BaseException, str]] = [
            (ModelFailed("no words", retryable=False), "no words"),
            (KeyError("x"), "KeyError: 'x'"),
            (asyncio.CancelledError(), "a task of the reactor was cancelled"),
        ]
        for error, reason in errors:
            reactor = Failing(error, "baker")
            async with opened(Memory.in_memory(projections=[Promises()], reactors=[reactor])) as memory:
                await memory.publish(said("I promise"))
                (reaction,) = await memory.react()
                assert (reaction.kind, reaction.text) == ("reaction.failed", reason)
                assert not await memory.pending()

    run(work())


def test_since_when_a_reflection_is_due() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish(event("agent.configured", payload={"reflection_threshold": 2}, at=T0))
            for minute in range(1, 50):
                await memory.publish(event("world.observed", agent="narrator", at=T0.replace(minute=minute)))
            (due,) = await memory.pending()
            assert due.since == T0.replace(minute=2)

    run(work())


# Lanes and failures.


def trigger_of(agent: str, number: int = 0) -> DueTrigger:
    return DueTrigger(f"{agent}-{number}", "promise.due", SPACE, agent)


def test_of_a_reactor_so_many_run_at_a_time_and_of_an_agent_one() -> None:
    async def work() -> None:
        running: list[str] = []
        most, order = 0, []

        async def answer(trigger: DueTrigger) -> None:
            nonlocal most
            assert trigger.agent not in running
            running.append(trigger.agent)
            most = max(most, len(running))
            await asyncio.sleep(0)
            running.remove(trigger.agent)
            order.append(trigger.id)

        lanes, reactor = Lanes(answer, 3), Keeping()
        for agent in range(5):
            for number in range(4):
                lanes.add(reactor, trigger_of(str(agent), number))
        lanes.add(reactor, trigger_of("0"))
        assert (len(lanes), lanes.of_reactor(reactor), "0-0" in lanes) == (20, 20, True)
        await lanes.below(1)
        assert most == 3
        assert len(order) == 20
        for agent in range(5):
            assert [each for each in order if each.startswith(f"{agent}-")] == [f"{agent}-{n}" for n in range(4)]
        assert (len(lanes), lanes.of_reactor(reactor)) == (0, 0)

    run(work())


def test_a_reactor_whose_triggers_all_hang_leaves_the_others_their_places() -> None:
    async def work() -> None:
        answered: list[str] = []

        async def answer(trigger: DueTrigger) -> None:
            if trigger.agent.startswith("slow"):
                await asyncio.Event().wait()
            answered.append(trigger.agent)

        lanes = Lanes(answer, 2)
        hanging, quick = Keeping(), Keeping()
        for number in range(5):
            lanes.add(hanging, trigger_of(f"slow-{number}"))
        lanes.add(quick, trigger_of("quick"))
        await lanes.below(6)
        assert answered == ["quick"]
        await lanes.cancel()

    run(work())


def test_an_unexpected_error_ends_the_lanes() -> None:
    async def work() -> None:
        async def answer(trigger: DueTrigger) -> None:
            raise ZeroDivisionError

        lanes = Lanes(answer, 1)
        for number in range(3):
            lanes.add(Keeping(), trigger_of("baker", number))
        with pytest.raises(ZeroDivisionError):
            await lanes.below(1)
        await lanes.cancel()

    run(work())


def test_each_further_failure_doubles_the_wait() -> None:
    now = 100.0
    failures, trigger = Failures(lambda: now), trigger_of("baker")
    for wait in (10, 20, 40, 80, 160, 320, 600, 600):
        failures.note_failure(trigger, StorageUnavailable("away"), 10.0)
        now += wait - 1
        assert (failures.waits(trigger), failures.take_passed()) == (True, False)
        now += 1
        assert (failures.waits(trigger), failures.take_passed(), failures.take_passed()) == (False, True, False)
    assert not failures.waits(trigger_of("miller"))
    failures.note_answer(trigger)
    assert failures.of(trigger.id, trigger.kind) is None
    for agent in ("baker", "miller", "smith"):  # at the same time
        failures.note_failure(trigger_of(agent), ModelMisconfigured("no key"), 10.0)
    assert failures.waits(trigger_of("widow"))
    now += 10
    assert not failures.waits(trigger_of("widow"))


# The command.


def clean(result: Result) -> Result:
    assert result.code == 0, result
    return result


@pytest.mark.parametrize("name", ["Keeping", "several"])
def test_react_with_reactors_and_projections_of_ones_own(tmp_path: Path, name: str) -> None:
    clean(recallog("publish", "village", "baker", "agent.spoke", "I promise bread", "--home", tmp_path))
    react = ["react", "--home", tmp_path, "--projections", "support.own_promises:Promises"]
    without = clean(recallog(*react)).out
    assert without.startswith("no trigger was answered; due:\nvillage  baker  promise.due  1 item  since ")
    assert "(no reactor answers it)" in without
    assert "reaction.done  1 event" in clean(recallog(*react, "--reactors", f"support.own_promises:{name}")).out
    assert clean(recallog(*react, "--reactors", f"support.own_promises:{name}")).out == "no trigger is due\n"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("support.own_promises", "should be module:name"),
        ("support.own_promises:missing", "AttributeError"),
        ("no_such_module:x", "ModuleNotFoundError"),
        ("support.own_promises:nothing", "7 is not a reactor"),
        ("support.own_promises:twice", "2 of them answer promise.due"),
    ],
)
def test_what_names_no_reactor_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    clean(recallog("publish", "village", "baker", "agent.spoke", "I promise bread", "--home", tmp_path))
    cluster = {"RECALLOG_LEDGER": "kafka://127.0.0.1:1/events", "RECALLOG_VIEWS": "redis://127.0.0.1:1/0"}
    for command, environment in ((("react", "--home", tmp_path), {}), (("worker",), cluster)):
        result = recallog(*command, "--reactors", name, **environment)
        assert result.code != 0
        assert problem in result.err.replace("\n", " ")


class Stubborn(Keeping):
    """Its answers never end, and catch their cancellation; it does not close either."""

    def __init__(self, *, ends: bool = False) -> None:
        super().__init__()
        self.ends, self.running = ends, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Its answers end, or a test that has failed would wait for them forever."""
        self.running = -100

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        self.asked.append(trigger)
        self.running += 1
        while self.running > 0:
            if self.ends:
                await asyncio.sleep(3600)
            else:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.1)
        return []

    async def close(self) -> None:
        if not self.ends:
            await asyncio.Event().wait()


@pytest.mark.parametrize("immediate", [True, False])
@pytest.mark.parametrize("ends", [True, False])
def test_a_memory_closes_within_a_bound_while_a_reactor_hangs_and_says_what_it_has_left(
    ends: bool, immediate: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "REACTORS_CLOSE_SECONDS", 0.3)
    threads = set(threading.enumerate())

    async def work() -> None:
        with Stubborn(ends=ends) as reactor:
            reactor.immediate = immediate
            before = asyncio.all_tasks()
            async with Memory.in_memory(projections=[Promises()], reactors=[reactor]) as memory:
                await memory.publish(said("I promise bread"))

                async def asked() -> bool:
                    return bool(reactor.asked)

                await until(asked, "the reactor is asked")
                began = asyncio.get_running_loop().time()
            assert asyncio.get_running_loop().time() - began < 3.0
            left = asyncio.all_tasks() - before
            named = [record.getMessage() for record in caplog.records]
            if ends:
                assert not left
                assert not named
            else:
                assert [task.get_name() for task in left] == ["recallog-reactor-promise.due"]
                trigger = reactor.asked[0].id
                assert any("Stubborn is left" in each and trigger in each for each in named)
                reactor.running = 0
                await asyncio.wait(left)

    run_in_virtual_time(work())
    assert set(threading.enumerate()) <= threads


def test_a_reactor_that_catches_its_cancellation_meets_its_deadline_and_is_then_asked_no_more() -> None:
    async def work() -> None:
        with Stubborn() as reactor:
            async with opened(Memory.open(within_a_minute(), projections=[Promises()], reactors=[reactor])) as memory:
                agents = [f"agent-{number}" for number in range(limits.REACTIONS_LEFT_MAX + 2)]
                await memory.publish_many([said("I promise", agent=agent) for agent in agents])
                await memory.publish_many(reflecting("miller"))
                with pytest.raises(ModelMisconfigured, match=r"8 calls of .*Stubborn continue after their deadline"):
                    await memory.react()
                assert len(reactor.asked) == limits.REACTIONS_LEFT_MAX
                assert sorted(each.kind for each in await memory.pending()) == ["promise.due"] * 2
                assert len((await memory.beliefs(SPACE, "miller")).beliefs) == 1
                reactor.running = 0
                await asyncio.sleep(0.2)
                reactor.running = -100
                assert [each.kind for each in (await memory.react()).items] == ["reaction.done"] * 2

    run_in_virtual_time(work())
