"""`Memory.open(index=…)`: an index of the user's own changes the relevance term of salience, and nothing else."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.extending import MemoryIndex
from recallog.retrieval import memory_index
from recallog.settings import Settings
from recallog_schemas import limits
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.views import SalientView
from support.events import event, run

BY_INDEX, BY_WORDS = "the index of this memory", "words"
QUERY = "what burned?"


class Recorded:
    """An index that finds the texts with the most letters of the query, and records how it is used."""

    def __init__(self) -> None:
        self.events: dict[tuple[str, str], Event] = {}
        self.calls: list[list[str]] = []
        self.searched: list[tuple[str, int]] = []
        self.failure: Exception | None = None
        self.fails_after: int | None = None
        """Which call of `index` fails, from 0; None: none."""

    def index(self, events: Sequence[Event]) -> None:
        if self.fails_after is not None and len(self.calls) >= self.fails_after:
            raise OSError("no connection")
        self.calls.append([each.id for each in events])
        self.events |= {(each.space, each.id): each for each in events}

    def search(self, query: str, k: int) -> Sequence[Event]:
        self.searched.append((query, k))
        if self.failure is not None:
            raise self.failure
        return sorted(self.events.values(), key=lambda each: -len(set(query) & set(each.text)))[:k]


class Chosen(Recorded):
    """An index that finds events by their ids, in a chosen order."""

    def __init__(self, *ids: str) -> None:
        super().__init__()
        self.order = ids

    def search(self, query: str, k: int) -> Sequence[Event]:
        super().search(query, k)
        by_id = {each.id: each for each in self.events.values()}
        return [by_id[id_] for id_ in self.order if id_ in by_id][:k]


class ChosenAsync:
    """The same with coroutines."""

    def __init__(self, *ids: str) -> None:
        self.chosen = Chosen(*ids)

    async def index(self, events: Sequence[Event]) -> None:
        await asyncio.sleep(0)
        self.chosen.index(events)

    async def search(self, query: str, k: int) -> Sequence[Event]:
        await asyncio.sleep(0)
        return self.chosen.search(query, k)


def said(id_: str, text: str = "", agent: str = "baker", **more: Any) -> Event:
    return event(id=id_, agent=agent, payload={"text": text or id_}, **more)


def observed(id_: str, **more: Any) -> Event:
    return event("world.observed", id=id_, payload={"text": id_}, **more)


def in_memory(index: MemoryIndex, work: Callable[[Memory], Awaitable[None]], *events: Event) -> None:
    async def whole() -> None:
        async with Memory.in_memory(index=index) as memory:
            await memory.publish_many(list(events))
            await work(memory)

    run(whole())


def relevance(view: SalientView) -> dict[str, float]:
    return {each.event.id: each.relevance for each in view.memories}


@pytest.mark.parametrize("make", [Chosen, ChosenAsync])
def test_relevance_is_the_rank_among_the_hits(make: Callable[..., MemoryIndex]) -> None:
    """(n - i) / n for the i-th of n hits, and 0 for others: the ledger-view memory document."""

    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY)
        assert relevance(view) == {"a": 0.5, "b": 1.0, "c": 0.0}
        assert view.relevance_by == BY_INDEX
        assert [each.recency for each in view.memories] == [1.0] * 3

    in_memory(make("b", "a"), work, said("a"), said("b"), said("c"))


def test_equal_texts_have_one_rank() -> None:
    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY)
        assert relevance(view) == {"a": 1.0, "b": 0.5, "c": 1.0}

    in_memory(Chosen("a", "b", "c"), work, said("a", "Bread!"), said("b"), said("c", "Bread!"))


def test_the_index_is_fed_with_what_the_agent_may_see_in_the_order_of_the_ledger() -> None:
    index = Recorded()

    async def work(memory: Memory) -> None:
        await memory.salient("village", "baker", QUERY)
        assert index.calls == [["b-1", "w", "b-2"]]
        await memory.salient("village", "baker", QUERY)
        assert index.calls == [["b-1", "w", "b-2"]]
        await memory.publish(said("b-3"))
        await memory.salient("village", "baker", QUERY)
        await memory.salient("village", "miller", QUERY)
        assert index.calls == [["b-1", "w", "b-2"], ["b-3"], ["m"]]

    in_memory(index, work, said("b-1"), said("m", agent="miller"), observed("w"), said("b-2"))


def test_what_another_agent_or_space_owns_is_never_shown() -> None:
    """One index has the events of all agents and spaces, and finds those of others first."""
    index = Chosen("secret", "elsewhere", "b", "a")

    async def work(memory: Memory) -> None:
        assert relevance(await memory.salient("village", "miller", QUERY)) == {"secret": 1.0}
        assert relevance(await memory.salient("city", "baker", QUERY)) == {"elsewhere": 1.0}
        assert relevance(await memory.salient("village", "baker", QUERY)) == {"a": 0.5, "b": 1.0}

    events = said("a"), said("secret", agent="miller"), said("b"), said("elsewhere", space="city")
    in_memory(index, work, *events)


def test_hits_of_others_leave_room_for_those_of_the_agent() -> None:
    """A search for as many hits as the agent has events finds events of others only: it is repeated with more."""
    others = [said(f"m-{n}", agent="miller") for n in range(100)]
    index = Chosen(*(each.id for each in others), "b", "a")

    async def work(memory: Memory) -> None:
        await memory.salient("village", "miller", QUERY)
        index.searched.clear()
        assert relevance(await memory.salient("village", "baker", QUERY)) == {"a": 0.5, "b": 1.0}
        assert [k for _, k in index.searched] == [2, 8, 32, 128]

    in_memory(index, work, *others, said("a"), said("b"))


def test_more_hits_than_channels_consider_are_left_out() -> None:
    ids = [f"b-{n:03}" for n in range(limits.RECALL_CANDIDATES + 5)]

    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY, top_k=len(ids))
        found = relevance(view)
        assert found["b-000"] == 1.0
        assert found[ids[limits.RECALL_CANDIDATES]] == 0.0

    in_memory(Chosen(*ids), work, *map(said, ids))


def test_hits_that_are_not_in_the_ledger_are_left_out() -> None:
    class Strange(Chosen):
        def search(self, query: str, k: int) -> Sequence[Event]:
            return [said("unknown"), *super().search(query, k)]

    async def work(memory: Memory) -> None:
        assert relevance(await memory.salient("village", "baker", QUERY)) == {"a": 1.0}

    in_memory(Strange("a"), work, said("a"))


AGENTS = ["baker", "miller", "smith"]
WRITTEN = st.tuples(
    st.sampled_from(AGENTS),
    st.sampled_from(["agent.spoke", "agent.thought", "world.observed"]),
    st.none() | st.lists(st.sampled_from(AGENTS), max_size=2, unique=True),
    st.sampled_from(["village", "city"]),
)


@hypothesis.settings(max_examples=25, deadline=None)
@given(written=st.lists(WRITTEN, min_size=1, max_size=12), chance=st.randoms(use_true_random=False))
def test_each_agent_is_shown_what_the_views_show_it_ranked_among_its_own(
    written: list[tuple[str, str, list[str] | None, str]], chance: Random
) -> None:
    """Random audiences, and an index that finds everything in a random order, also that of others."""
    events = [
        event(kind, id=f"e-{n}", agent=agent, audience=audience, space=space, payload={"text": f"text {n}"})
        for n, (agent, kind, audience, space) in enumerate(written)
    ]
    order = [each.id for each in events]
    chance.shuffle(order)
    asked = [(space, agent) for space in ("village", "city") for agent in AGENTS]
    chance.shuffle(asked)

    async def work(memory: Memory) -> None:
        for space, agent in asked:
            seen = {each.event.id for each in (await memory.timeline(space, agent, limit=100)).items}
            view = await memory.salient(space, agent, QUERY, top_k=100)
            ranked = [id_ for id_ in order if id_ in seen]
            assert relevance(view) == {id_: (len(ranked) - n) / len(ranked) for n, id_ in enumerate(ranked)}

    in_memory(Chosen(*order), work, *events)


@pytest.mark.parametrize("query", [None, "", "  "])
def test_without_a_query_nothing_is_searched(query: str | None) -> None:
    index = Recorded()

    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", query)
        assert relevance(view) == {"a": 0.0}
        assert (index.calls, index.searched) == ([], [])

    in_memory(index, work, said("a"))


def test_recall_does_not_use_it() -> None:
    index = Recorded()

    async def work(memory: Memory) -> None:
        assert (await memory.recall("village", "baker", "burned mill")).hits[0].event.id == "a"
        await memory.timeline("village", "baker")
        assert (index.calls, index.searched) == ([], [])

    in_memory(index, work, said("a", "The mill burned."), said("b", "Bread!"))


# The prompt.

SALIENT = event("agent.configured", id="settings", payload={"use_salience": True, "salience_top_k": 1})


@pytest.mark.models("prompt")
def test_a_prompt_remembers_what_the_index_finds() -> None:
    async def work(memory: Memory) -> None:
        prompt = await memory.context("village", "baker", query=QUERY)
        assert "YOUR MEMORY\n[turn 000][agent.spoke][sal=0.85] The smith did it." in prompt.text
        assert prompt.degraded is None
        explained = await memory.explain("village", "baker", "a", query=QUERY)
        assert explained.memory is not None
        assert (explained.rank, explained.memory.relevance) == (1, 1.0)

    events = said("a", "The smith did it."), said("b", "what burned?"), said("c", "Bread!")
    in_memory(Chosen("a"), work, SALIENT, *events)


@pytest.mark.models("prompt")
def test_a_prompt_whose_memory_is_the_window_asks_no_index() -> None:
    index = Recorded()

    async def work(memory: Memory) -> None:
        await memory.context("village", "baker", query=QUERY)
        assert (index.calls, index.searched) == ([], [])

    in_memory(index, work, said("a"))


# Failures.


@pytest.mark.models("prompt")
def test_an_index_that_raises_leaves_relevance_to_words_and_the_answer_says_so() -> None:
    index = Recorded()
    index.failure = ValueError("no model")

    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY)
        assert relevance(view) == {"a": 1.0}
        why = f"words: {BY_INDEX} failed: ValueError: no model"
        assert view.relevance_by == why
        prompt = await memory.context("village", "baker", query=QUERY)
        assert prompt.degraded == f"relevance by {why}"
        assert "what burned?" in prompt.text
        index.failure = None
        assert (await memory.salient("village", "baker", QUERY)).relevance_by == BY_INDEX
        assert (await memory.context("village", "baker", query=QUERY)).degraded is None

    in_memory(index, work, SALIENT, said("a", QUERY), said("b", "Bread!"))


def test_events_of_a_call_that_raised_are_fed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "FED_EVENTS", 2)
    index = Recorded()
    index.fails_after = 1

    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY)
        assert view.relevance_by == f"words: {BY_INDEX} failed: OSError: no connection"
        assert index.calls == [["0", "1"]]
        index.fails_after = None
        assert (await memory.salient("village", "baker", QUERY)).relevance_by == BY_INDEX
        assert index.calls == [["0", "1"], ["2", "3"], ["4"]]

    in_memory(index, work, *(said(str(n)) for n in range(5)))


@pytest.mark.parametrize("found", [None, ["a"], [{"id": "a"}]], ids=repr)
def test_hits_that_are_no_events_are_a_failure(found: Any) -> None:
    class Wrong(Recorded):
        def search(self, query: str, k: int) -> Sequence[Event]:
            answer: Sequence[Event] = found
            return answer

    async def work(memory: Memory) -> None:
        by = (await memory.salient("village", "baker", QUERY)).relevance_by
        assert by is not None
        assert by.startswith(f"words: {BY_INDEX} failed: TypeError: ")

    in_memory(Wrong(), work, said("a"))


def test_a_new_memory_feeds_the_index_again(tmp_path: Path) -> None:
    """An index may have lost all, or have everything already: it is fed at least once by each memory."""
    index = Recorded()

    async def ask() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off"), index=index) as memory:
            await memory.publish_many([said("a"), said("b")])
            await memory.salient("village", "baker", QUERY)

    run(ask())
    run(ask())
    assert index.calls == [["a", "b"], ["a", "b"]]


def test_what_was_fed_long_ago_is_fed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "FED_EVENTS_KEPT", 2)
    index = Recorded()

    async def work(memory: Memory) -> None:
        for agent in ("baker", "miller", "baker"):
            assert len(relevance(await memory.salient("village", agent, QUERY))) == 2
        assert index.calls == [["a", "b"], ["c", "d"], ["a", "b"]]

    events = said("a"), said("b"), said("c", agent="miller"), said("d", agent="miller")
    in_memory(index, work, *events)


def test_calls_of_one_memory_do_not_overlap() -> None:
    class Busy(Recorded):
        inside = 0

        def index(self, events: Sequence[Event]) -> None:
            self._alone()
            super().index(events)

        def search(self, query: str, k: int) -> Sequence[Event]:
            self._alone()
            return super().search(query, k)

        def _alone(self) -> None:
            assert not self.inside
            self.inside += 1
            time.sleep(0.01)
            self.inside -= 1

    async def work(memory: Memory) -> None:
        asked = await asyncio.gather(*(memory.salient("village", "baker", f"{QUERY} {n}") for n in range(5)))
        assert {each.relevance_by for each in asked} == {BY_INDEX}

    in_memory(Busy(), work, said("a"), said("b"))


def test_a_call_of_a_cancelled_query_ends_before_the_next_one_begins() -> None:
    entered, gate = threading.Event(), threading.Event()

    class Gated(Recorded):
        order: ClassVar[list[str]] = []

        def search(self, query: str, k: int) -> Sequence[Event]:
            self.order.append(f"{query} begins")
            entered.set()
            assert gate.wait(60)
            self.order.append(f"{query} ends")
            return super().search(query, k)

    async def work(memory: Memory) -> None:
        first = asyncio.create_task(memory.salient("village", "baker", "first"))
        await asyncio.to_thread(entered.wait, 60)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.create_task(memory.salient("village", "baker", "second"))
        await asyncio.sleep(0.05)
        gate.set()
        assert (await second).relevance_by == BY_INDEX
        assert Gated.order == ["first begins", "first ends", "second begins", "second ends"]

    in_memory(Gated(), work, said("a"))


def test_a_past_moment_is_scored_among_the_events_of_then() -> None:
    async def work(memory: Memory) -> None:
        view = await memory.salient("village", "baker", QUERY, as_of="0:1")
        assert relevance(view) == {"a": 0.5, "b": 1.0}

    in_memory(Chosen("c", "b", "a"), work, said("a"), said("b"), said("c"))


@pytest.mark.parametrize("given", [object(), Recorded, "index"], ids=["object", "class", "text"])
def test_what_has_not_both_methods_is_refused(given: Any, tmp_path: Path) -> None:
    for make in (lambda: Memory.in_memory(index=given), lambda: Memory.open(tmp_path, index=given)):
        with pytest.raises(InvalidArgument, match="index: should be an object with the methods"):
            make()
