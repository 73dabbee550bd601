"""The loop that runs reactors: several answers, interruptions, failures, and the cascade of erasures."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.composition import assemble
from recallog.reacting import LoopMemory
from recallog.reactors.answering import Answers, answer_of
from recallog.reactors.loop import ReactorLoop
from recallog.reactors.reactor import DueTrigger, Reactor
from recallog_projections.models.long_term import tables as entries
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import triggers
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.models.beliefs.triggers import REFLECTION, reflection_of
from recallog_schemas.models.long_term.triggers import RETRACTION
from recallog_schemas.views import Reaction
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, recorded, run

pytestmark = pytest.mark.models("beliefs", "long_term")

SPACE = "village"


def retained(id_: str, *sources: str, agent: str = "baker") -> Event:
    payload: dict[str, Any] = {"text": f"About {id_}.", "sources": list(sources)}
    return event("memory.retained", id=id_, agent=agent, payload=payload)


def erased(*ids: str, agent: str = "baker") -> Event:
    return event("memory.erased", agent=agent, turn=7, session="x1", payload={"entries": list(ids)})


async def statuses(memory: Memory, *ids: str) -> list[str | None]:
    found = [await memory.row(entries.IDS, SPACE, "", id_) for id_ in ids]
    return [None if ref is None else ref.status for ref in found]


class Scripted(Reactor):
    """Answers retractions with thoughts instead."""

    kinds: ClassVar[frozenset[str]] = frozenset({RETRACTION})

    def __init__(self, *texts: str, agent: str = "baker", error: Exception | None = None) -> None:
        self.texts, self.agent, self.error = texts, agent, error
        self.asked: list[DueTrigger] = []
        self.closed = False

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        self.asked.append(trigger)
        if self.error is not None:
            raise self.error
        return [event("agent.thought", agent=self.agent, payload={"text": text}) for text in self.texts]

    async def close(self) -> None:
        self.closed = True


class Leaving(Scripted):
    async def answer(self, trigger: DueTrigger) -> None:
        self.asked.append(trigger)


class Pure(Scripted):
    pure: ClassVar[bool] = True


async def with_a_due_trigger(memory: Memory) -> str:
    await memory.publish_many([retained("e-1"), retained("e-2", "e-1"), retained("e-3", "e-2"), erased("e-1")])
    (pending,) = await memory.pending(SPACE)
    assert (pending.kind, pending.agent, pending.events, pending.threshold) == ("retraction.due", "baker", 1, None)
    return pending.trigger


async def reacted(memory: Memory, *reactors: Reactor) -> list[Reaction]:
    ledger = memory._components.ledger
    loop_memory = LoopMemory(memory, memory._access)
    return await ReactorLoop(loop_memory, ledger, Answers(loop_memory, ledger, reactors), nullcontext).react()


def test_the_answers_have_the_ids_of_the_trigger_and_the_last_one_closes_it() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            trigger = await with_a_due_trigger(memory)
            (reaction,) = await reacted(memory, reactor := Scripted("One.", "Two."))
            first, second, done = (await recorded(memory))[-3:]
            digest = done.payload["answer"]
            assert [first.id, second.id, done.id] == [
                f"{trigger}/answer/{digest}/1", f"{trigger}/answer/{digest}/2", f"{trigger}/answer",
            ]  # fmt: skip
            assert {each.causation_id for each in (first, second, done)} == {trigger}
            assert (done.kind, done.payload) == ("reaction.done", {"trigger": trigger, "events": 2, "answer": digest})
            assert (reaction.trigger, reaction.kind, reaction.text) == (trigger, "reaction.done", "2 events")
            assert [trigger.entries for trigger in reactor.asked] == [("e-3",)]
            assert not await memory.pending()
            assert await reacted(memory, reactor) == []

    run(work())


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize("taken", [1, 3])
def test_a_trigger_is_closed_under_another_id_if_a_foreign_event_has_that_of_its_answer(
    taken: int, unique_ids: bool
) -> None:
    async def work() -> None:
        async with Memory(assemble(MemoryLedger(unique_ids=unique_ids), lambda namespace: MemoryStore())) as memory:
            wants = event("agent.configured", payload={"reflection_threshold": 2})
            closing = reflection_of(SPACE, "baker", 0)
            ids = [closing.closing_id(number) for number in range(taken)]
            await memory.publish_many([event("agent.spoke", agent="miller", id=id_) for id_ in ids])
            await memory.publish_many([wants, *(event("world.observed", agent="miller") for _ in range(2))])
            assert [each.trigger for each in await memory.pending()] == [closing.id]
            (reaction,) = await memory.react()
            assert reaction.trigger == closing.id
            assert not await memory.pending()
            assert len((await memory.beliefs(SPACE, "baker")).beliefs) == 1
            assert len(await memory.react()) == 0

    run(work())


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize("written", [1, 2, 70])
def test_an_interrupted_answer_is_closed_with_what_was_written_and_nobody_is_asked_again(
    written: int, unique_ids: bool
) -> None:
    async def work() -> None:
        ledger = MemoryLedger(unique_ids=unique_ids)
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            trigger = await with_a_due_trigger(memory)
            thoughts = [event("agent.thought", id=f"{trigger}/answer/0123456789/{n + 1}") for n in range(written)]
            await memory.publish_many([each.model_copy(update={"causation_id": trigger}) for each in thoughts])
            assert len(await reacted(memory, reactor := Scripted("Another.", "Answer."))) == 1
            assert reactor.asked == []
            events = await recorded(memory)
            assert events[-1].payload == {"trigger": trigger, "events": written, "answer": "0123456789"}
            assert len([each for each in events if each.kind == "agent.thought"]) == written

    run(work())


def test_an_interrupted_pure_answer_is_repeated_in_full() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            reactor = Pure("One.", "Two.")
            (due,) = await memory._own_reactor().due()
            parsed = triggers.parse(due.id)
            assert parsed is not None
            await memory.publish(answer_of(due, parsed, reactor, await reactor.answer(due) or ())[0])
            reactor.asked.clear()
            await reacted(memory, reactor)
            assert len(reactor.asked) == 1
            thoughts = [each for each in await recorded(memory) if each.kind == "agent.thought"]
            assert [each.text for each in thoughts] == ["One.", "Two."]

    run(work())


def test_events_of_a_pure_reactor_have_the_time_the_turn_and_the_session_of_the_cause() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            cause = (await recorded(memory))[-1]
            await reacted(memory, Pure("One."))
            for each in (await recorded(memory))[-2:]:
                assert (each.at, each.turn, each.session) == (cause.at, 7, "x1")

    run(work())


@pytest.mark.parametrize(
    ("reactor", "reason"),
    [
        (Scripted(error=KeyError("price")), "KeyError: 'price'"),
        (Scripted("One.", agent="miller"), "an answer for 'baker' in 'village' cannot be an event of 'miller'"),
        (Scripted("x" * 300_000), "bytes"),
    ],
)
def test_what_a_reactor_cannot_answer_is_recorded_and_closed(reactor: Scripted, reason: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            (reaction,) = await reacted(memory, reactor)
            assert reaction.kind == "reaction.failed"
            assert reason in reaction.text
            assert not await memory.pending()

    run(work())


def test_after_an_error_of_a_store_the_trigger_stays_due() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            with pytest.raises(StorageUnavailable):
                await reacted(memory, Scripted(error=StorageUnavailable("it is away")))
            assert len(await memory.pending()) == 1

    run(work())


@pytest.mark.parametrize("reactors", [[], [Leaving()]])
def test_a_trigger_that_nobody_answers_stays_due(reactors: list[Reactor]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            assert await reacted(memory, *reactors) == []
            assert len(await memory.pending()) == 1

    run(work())


def test_an_answer_whose_ids_are_taken_by_foreign_events_counts_under_others() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            trigger = await with_a_due_trigger(memory)
            await memory.publish(event(id=f"{trigger}/answer"))
            (reaction,) = await reacted(memory, Scripted("One."))
            assert reaction.kind == "reaction.done"
            assert not await memory.pending()

    run(work())


def test_a_long_backlog_is_answered_in_one_call_and_what_it_makes_due_in_the_next() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            made = [retained("root")]
            for number in range(150):
                a, b, c = f"a-{number}", f"b-{number}", f"c-{number}"
                made += [retained(a, "root"), retained(b, a), retained(c, b)]
            await memory.publish_many([*made, erased("root")])
            assert len(await memory.pending()) == 150
            seen: list[tuple[int, int]] = []
            assert len(await memory.react(progress=lambda *counts: seen.append(counts))) == 150
            assert [done for done, _ in seen] == list(range(1, 151))
            assert seen[-1] == (150, 150)
            assert len(await memory.pending()) == 150
            assert set(await statuses(memory, *(f"c-{number}" for number in range(150)))) == {"live"}
            assert len(await memory.react()) == 150
            assert not await memory.pending()

    run(work())


def test_a_look_at_one_space_answers_nothing_of_another() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            await memory.publish_many([each.model_copy(update={"space": "town"}) for each in await recorded(memory)])
            assert [due.space for due in await memory.pending()] == ["town", "village"]
            assert [reaction.space for reaction in await memory.react("town")] == ["town"]
            assert [due.space for due in await memory.pending()] == ["village"]

    run(work())


# The cascade of erasures.


def test_an_erasure_reaches_what_was_made_from_dependents_of_whatever_owner() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            chain = [
                retained("e-1"), retained("e-2", "e-1"), retained("e-3", "e-2", agent="miller"),
                retained("e-4", "e-3", agent="smith"), retained("other"),
            ]  # fmt: skip
            await memory.publish_many([*chain, erased("e-1")])
            ids = [each.id for each in chain]
            assert await statuses(memory, *ids) == ["erased", "retracted", "live", "live", "live"]
            assert len(await memory.react()) == 1
            assert await statuses(memory, *ids) == ["erased", "retracted", "retracted", "live", "live"]
            assert len(await memory.react()) == 1
            assert await statuses(memory, *ids) == ["erased", "retracted", "retracted", "retracted", "live"]
            assert len(await memory.react()) == 0
            assert not await memory.pending()
            ref = await memory.row(entries.IDS, SPACE, "", "e-4")
            assert (ref.owner, ref.reason, ref.of) == ("smith", "source_erased", "e-3")
            before = await recorded(memory)
            await memory.admin.rebuild()
            assert await statuses(memory, *ids) == ["erased", "retracted", "retracted", "retracted", "live"]
            assert await recorded(memory) == before
            assert (await memory.admin.verify()).ok

    run(work())


def test_several_retracted_entries_have_a_trigger_each() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            made = [retained("e-1"), retained("e-2", "e-1"), retained("e-3", "e-1"), retained("e-4", "e-2", "e-3")]
            await memory.publish_many([*made, erased("e-1")])
            assert len(await memory.pending()) == 2
            assert len(await memory.react()) == 2
            assert await statuses(memory, "e-2", "e-3", "e-4") == ["retracted"] * 3

    run(work())


def test_an_entry_whose_source_was_only_retracted_by_its_owner_is_not_others_to_retract() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([retained("e-1"), retained("e-2", "e-1", agent="miller")])
            retraction = {"entry": "e-1", "reason": "wrong"}
            await memory.publish(event("memory.retracted", payload=retraction))
            assert not await memory.pending()
            await memory.publish(event("memory.retracted", payload={"entry": "e-2"}))
            assert await statuses(memory, "e-1", "e-2") == ["retracted", "live"]

    run(work())


@pytest.mark.parametrize("kind", ["memory.erased", "memory.retracted"])
@pytest.mark.parametrize("error", [None, ValueError("no answer")])
def test_an_entry_that_is_lost_twice_makes_its_dependents_due_once(kind: str, error: Exception | None) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await with_a_due_trigger(memory)
            assert len(await reacted(memory, Scripted("Done.", error=error))) == 1
            again = {"memory.erased": {"entries": ["e-1"]}, "memory.retracted": {"entry": "e-2"}}
            await memory.publish(event(kind, payload=again[kind]))
            assert not await memory.pending()

    run(work())


agents = st.sampled_from(["baker", "miller"])
steps = st.one_of(
    st.builds(lambda sources, agent: ("retain", sources, agent), st.sets(st.integers(1, 6), max_size=2), agents),
    st.builds(lambda sources, agent: ("retain", sources, agent), st.sets(st.integers(1, 6), max_size=2), agents),
    st.builds(lambda back, _: ("erase", {back}, ""), st.integers(1, 8), st.none()),
    st.just(("react", set[int](), "")),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=25), st.booleans())
def test_once_nothing_is_due_an_entry_lives_exactly_if_nothing_that_it_was_made_from_is_erased(
    steps: list[tuple[str, set[int], str]], unique_ids: bool
) -> None:
    """Sources are entries so many steps back; each erasure is by the entry's owner."""

    async def work() -> None:
        ledger = MemoryLedger(unique_ids=unique_ids)
        sources: list[list[int]] = []
        owners: list[str] = []
        erasures = set[int]()
        async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
            for what, back, agent in steps:
                named = sorted(len(owners) - each for each in back if each <= len(owners))
                if what == "retain":
                    made_from = [f"e-{each}" for each in named]
                    await memory.publish(retained(f"e-{len(owners)}", *made_from, agent=agent))
                    sources.append(named)
                    owners.append(agent)
                elif what == "erase" and named:
                    await memory.publish(erased(f"e-{named[0]}", agent=owners[named[0]]))
                    erasures.update(named)
                elif what == "react":
                    await memory.react()
            while await memory.react():
                pass
            assert not await memory.pending()
            found = await statuses(memory, *(f"e-{number}" for number in range(len(owners))))
        lost: list[bool] = []
        for number, status in enumerate(found):
            of_sources = any(lost[each] for each in sources[number])
            if status == "refused":  # a source was lost already; nothing was made from it
                assert of_sources
                lost.append(False)
            else:
                lost.append(of_sources or number in erasures)
                assert (status == "live") == (not lost[-1])

    run(work())


class Believing(Reactor):
    """Answers reflections with events of its own."""

    kinds: ClassVar[frozenset[str]] = frozenset({REFLECTION})

    def __init__(self, *kinds: str) -> None:
        self.answers = [event(kind) for kind in kinds]

    async def answer(self, trigger: DueTrigger) -> Sequence[Event] | None:
        return self.answers


@pytest.mark.parametrize("unique_ids", [True, False])
@pytest.mark.parametrize(
    ("kinds", "closing"),
    [
        (["agent.reflected"], "agent.reflected"),
        (["agent.thought", "agent.thought", "agent.reflected"], "agent.reflected"),
        (["agent.thought"], "reflection.failed"),
        ([], "reflection.failed"),
    ],
)
def test_a_reactor_of_a_users_own_closes_a_reflection_with_its_last_event(
    kinds: list[str], closing: str, unique_ids: bool
) -> None:
    async def work() -> None:
        async with Memory(assemble(MemoryLedger(unique_ids=unique_ids), lambda namespace: MemoryStore())) as memory:
            wants = event("agent.configured", payload={"reflection_threshold": 2})
            await memory.publish_many([wants, *(event("world.observed", agent="miller") for _ in range(2))])
            (reaction,) = await reacted(memory, Believing(*kinds))
            assert reaction.kind == closing
            assert not [each for each in await memory.pending() if each.trigger == reaction.trigger]
            answered = [each for each in await recorded(memory) if each.causation_id == reaction.trigger]
            assert len(answered) == (len(kinds) if closing == "agent.reflected" else 1)

    run(work())
