"""Recall and search over events and entries: in their present form, for who may read them, and never once erased."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from contract.test_index_entries import changed, retained
from recallog import Event, Memory, Position
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import IndexUnavailable
from support.events import MOMENT, event, run
from support.faulty_engine import FaultyEngine
from support.indexing import indexed, indexing_of, memory_with

QUESTION = "Who waters the rye?"

WAYS = ("index", "behind", "failing", "off")
"""The index is at the ledger's end, has only the first event, fails, or is off."""


@dataclass
class World:
    memory: Memory
    way: str
    engine: FaultyEngine

    async def publish(self, *events: Event) -> list[Position]:
        positions = await self.memory.publish_many(list(events))
        if self.way == "index":
            await indexed(self.memory)
        return positions

    async def hits(self, agent: str = "baker", **how: object) -> dict[str, str]:
        """The texts of the hits by their ids, best first; the same by `search`."""
        found = await self.memory.recall("village", agent, QUESTION, top_k=20, **how)  # type: ignore[arg-type]
        for hit in found.hits:
            assert hit.text == hit.event.text
        pages = await self.memory.search("village", agent, QUESTION, limit=20, **how)  # type: ignore[arg-type]
        assert [hit.id for hit in pages.hits] == [hit.event.id for hit in found.hits]
        return {hit.event.id: hit.text for hit in found.hits}


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    """Runs a test in a village whose index is as the parameter says."""
    way = request.param

    @asynccontextmanager
    async def world() -> AsyncIterator[World]:
        engine = FaultyEngine(EdgeEngine(tmp_path / "engine"))
        memory = (
            Memory.in_memory() if way == "off" else memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine))
        )
        async with memory:
            await memory.publish(event(id="first", payload={"text": "Good morning."}))
            await indexed(memory)
            if way == "failing":
                engine.down(IndexUnavailable("pulled"))
            yield World(memory, way, engine)

    def tell(work: Callable[[World], Awaitable[None]]) -> None:
        async def whole() -> None:
            async with world() as found:
                await work(found)

        run(whole())

    return tell


Ask = Callable[[Callable[[World], Awaitable[None]]], None]


def test_entries_are_recalled_beside_events(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(
            event(id="said", payload={"text": "The smith waters the rye."}), retained("The rye needs water.", id="rye")
        )
        assert (await found.hits()).items() >= {
            ("said", "The smith waters the rye."),
            ("rye", "The rye needs water."),
        }
        assert "rye" not in await found.hits("miller")

    ask(work)


@pytest.mark.models("working")
def test_the_blocks_of_an_agent_that_includes_them_are_recalled_beside_both(ask: Ask) -> None:
    async def work(found: World) -> None:
        block = {"namespace": ["working"], "key": "Plan", "value": "Ask who waters the rye."}
        await found.publish(
            event("agent.configured", payload={"working": {"include_in_rag": True}}),
            event("item.put", payload=block),
            event(id="said", payload={"text": "The smith waters the rye."}),
            retained("The rye needs water.", id="rye"),
        )
        hits = await found.hits()
        assert {"said", "rye"} <= hits.keys()
        assert "Plan: Ask who waters the rye." in hits.values()
        assert "Plan: Ask who waters the rye." not in (await found.hits("miller")).values()

    ask(work)


@pytest.mark.models("all")
def test_an_updated_entry_is_recalled_with_its_present_text(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(retained("The oats grow.", id="rye"))
        await found.publish(changed("updated", entry="rye", text="The rye needs water.", importance=0.9))
        assert (await found.hits())["rye"] == "The rye needs water."

    ask(work)


@pytest.mark.models("all")
def test_a_transferred_entry_is_recalled_by_its_new_owner_alone(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(retained("The rye needs water.", id="rye"))
        await found.publish(changed("transferred", entries=["rye"], to="miller"))
        assert "rye" not in await found.hits()
        answer = await found.memory.recall("village", "miller", QUESTION)
        assert [(hit.event.id, hit.event.agent) for hit in answer.hits if hit.event.id == "rye"] == [("rye", "miller")]

    ask(work)


@pytest.mark.models("all")
@pytest.mark.parametrize("kind", ["retracted", "archived", "erased"])
def test_an_entry_that_has_ended_is_not_recalled(ask: Ask, kind: str) -> None:
    async def work(found: World) -> None:
        await found.publish(retained("The rye needs water.", id="rye"), retained("The rye is sown.", id="sown"))
        assert {"rye", "sown"} <= (await found.hits()).keys()
        await found.publish(changed(kind, **({"entries": ["rye"]} if kind == "erased" else {"entry": "rye"})))
        assert "rye" not in await found.hits()
        assert "sown" in await found.hits()

    ask(work)


def test_entries_are_recalled_by_their_audience_or_by_all_where_their_kind_is_shared(ask: Ask) -> None:
    async def work(found: World) -> None:
        shares = event(agent="narrator", kind="space.configured", payload={"shared_kinds": ["memory.retained"]})
        await found.publish(
            retained("The rye is mine.", id="own"),
            retained("The rye is yours.", id="to", audience=["miller"]),
            shares,
            retained("The rye is ours.", id="all"),
        )
        for agent, expected in (
            ("baker", {"own", "to", "all"}),
            ("miller", {"to", "all"}),
            ("smith", {"all"}),
        ):
            assert (await found.hits(agent)).keys() & {"own", "to", "all"} == expected

    ask(work)


@pytest.mark.models("all")
def test_time_travel_recalls_entries_as_they_were(ask: Ask) -> None:
    async def work(found: World) -> None:
        (then,) = await found.publish(retained("The rye needs water.", id="rye"))
        (later,) = await found.publish(changed("updated", entry="rye", text="The rye is dry."))
        await found.publish(changed("transferred", entries=["rye"], to="miller"))
        assert (await found.hits(as_of=then))["rye"] == "The rye needs water."
        assert (await found.hits(as_of=later))["rye"] == "The rye is dry."
        assert "rye" not in await found.hits("miller", as_of=later)
        assert "rye" not in await found.hits()

    ask(work)


@pytest.mark.models("all")
def test_an_erased_entry_is_absent_also_as_of_before(ask: Ask) -> None:
    async def work(found: World) -> None:
        (then,) = await found.publish(retained("The rye needs water.", id="rye"))
        await found.publish(retained("The rye is sown.", id="sown"))
        (later,) = await found.publish(changed("transferred", entries=["rye"], to="miller"))
        (last,) = await found.publish(changed("erased", "miller", entries=["rye"], reason="asked to"))
        for agent in ("baker", "miller"):
            for as_of in (then, later, last, MOMENT):
                assert "rye" not in await found.hits(agent, as_of=as_of)
        assert "sown" in await found.hits(as_of=later)

    ask(work)


def test_filters_apply_to_entries(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(
            event(id="said", payload={"text": "The smith waters the rye."}),
            retained("The rye needs water.", id="rye", session="dusk"),
        )
        assert (await found.hits(kinds=["memory.retained"])).keys() == {"rye"}
        assert (await found.hits(session="dusk")).keys() == {"rye"}
        assert (await found.hits(kinds=["agent.spoke"])).keys() & {"rye", "said"} == {"said"}
        assert "rye" not in await found.hits(author="miller")

    ask(work)


def test_entries_do_not_change_the_answer_about_events(ask: Ask) -> None:
    async def work(found: World) -> None:
        turns = [
            event(id=f"turn-{n}", session="dusk", payload={"text": text})
            for n, text in enumerate(("Who waters the rye?", "The smith does.", "Since when?", "Since Monday."))
        ]
        await found.publish(*turns)
        before = await found.memory.recall("village", "baker", QUESTION, kinds=["agent.spoke"], top_k=20)
        await found.publish(retained("Oats.", id="oats", session="dusk"), retained("Wheat.", session="dusk"))
        after = await found.memory.recall("village", "baker", QUESTION, kinds=["agent.spoke"], top_k=20)
        assert [hit.event.id for hit in after.hits] == [hit.event.id for hit in before.hits]
        of_structure = {"neighbours", "around", "answer"}
        for old, new in zip(before.hits, after.hits, strict=True):
            assert {name: new.parts[name] for name in of_structure & new.parts.keys()} == pytest.approx(
                {name: old.parts[name] for name in of_structure & old.parts.keys()}, rel=0.2
            )

    ask(work)


@pytest.mark.models("all")
def test_an_entry_that_is_erased_while_it_is_recalled_does_not_count_as_damage(tmp_path: Path) -> None:
    """Its point may be gone when its payload is read, after the search has found it."""

    class Racing(FaultyEngine):
        async def retrieve(self, collection: str, ids: object, **how: object) -> object:  # type: ignore[override]
            await self.engine.delete(collection, ids)  # type: ignore[arg-type]
            return await super().retrieve(collection, ids, **how)  # type: ignore[arg-type]

    async def work() -> None:
        engine = Racing(EdgeEngine(tmp_path / "engine"))
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish(retained("The rye needs water.", id="rye"))
            await indexed(memory)
            answer = await memory.recall("village", "baker", QUESTION)
            assert [hit.event.id for hit in answer.hits] == ["rye"]
            assert answer.degraded is None

    run(work())


@pytest.mark.models("all")
def test_the_salience_of_events_does_not_depend_on_entries(tmp_path: Path) -> None:
    async def work() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many([event(id=f"e-{n}", payload={"text": f"Rye {n}."}) for n in range(5)])
            await indexed(memory)
            before = await memory.salient("village", "baker", QUESTION)
            await memory.publish_many([retained(f"The rye needs water {n}.") for n in range(60)])
            await indexed(memory)
            after = await memory.salient("village", "baker", QUESTION)
            assert after.relevance_by == before.relevance_by == "meaning"
            assert [(one.event.id, one.relevance) for one in after.memories] == [
                (one.event.id, one.relevance) for one in before.memories
            ]

    run(work())


@pytest.mark.models("long_term")
def test_types_choose_between_events_and_entries(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(
            event(id="said", payload={"text": "The smith waters the rye."}),
            retained("The rye needs water.", id="rye"),
            retained("Water the rye at dusk.", id="lesson", type="lesson"),
        )
        ids = {"said", "rye", "lesson"}
        for types, expected in (
            (None, ids),
            (["event"], {"said"}),
            (["fact"], {"rye"}),
            (["lesson", "event"], {"said", "lesson"}),
            (["note"], set()),
        ):
            assert (await found.hits(types=types)).keys() & ids == expected
        assert (await found.hits(types=["fact", "event"], kinds=["agent.spoke"])).keys() & ids == {"said"}
        assert (await found.hits(types=["fact", "event"], kinds=["memory.retained"])).keys() & ids == {"rye"}

    ask(work)


@pytest.mark.models("all")
def test_an_entry_and_the_event_that_it_was_made_from_are_said_once(ask: Ask) -> None:
    async def work(found: World) -> None:
        await found.publish(
            event(id="said", payload={"text": "Well, I think that the smith waters the rye by the river at dusk."}),
            retained("The smith waters the rye.", id="fact", sources=["said"]),
            *(event(id=f"e-{n}", payload={"text": f"The rye is high, {n}."}) for n in range(3)),
        )
        answer = await found.memory.recall("village", "baker", QUESTION, top_k=3)
        also = {hit.event.id: hit.also for hit in answer.hits}
        (better,) = also.keys() & {"said", "fact"}
        assert also[better] == (("fact",) if better == "said" else ("said",))
        assert [others for id_, others in also.items() if id_ != better] == [(), ()]
        assert len(await found.hits()) == 5
        events = await found.memory.recall("village", "baker", QUESTION, types=["event"])
        assert "said" in [hit.event.id for hit in events.hits]

    ask(work)


CAPTURING = {"capture": {"enabled": True}}


@pytest.mark.models("long_term")
def test_a_captured_call_of_a_tool_answers_once_as_its_event(ask: Ask) -> None:
    async def work(found: World) -> None:
        call = event("tool.used", id="call", payload={"tool": "water", "result": "The rye is watered."})
        await found.publish(event("agent.configured", payload=CAPTURING), call, retained("Rye needs water.", id="rye"))
        for change in ((), (changed("erased", entries=["call"]),)):
            await found.publish(*change)
            hits = (await found.memory.recall("village", "baker", QUESTION, top_k=20)).hits
            assert sorted((hit.event.id, hit.event.kind) for hit in hits) == [
                ("call", "tool.used"),
                ("first", "agent.spoke"),
                ("rye", "memory.retained"),
            ]
            for how in ({"types": ["tool_usage", "event"]}, {"types": ["tool_usage"]}, {"preset": "four_channel"}):
                again = await found.memory.recall("village", "baker", QUESTION, top_k=20, **how)  # type: ignore[arg-type]
                calls = [hit.event.kind for hit in again.hits if hit.event.id == "call"]
                assert calls == (["tool.used"] if "event" in how.get("types", ()) else []), how

    ask(work)


@pytest.mark.models("long_term")
def test_another_agent_that_was_given_a_captured_call_finds_the_entry(ask: Ask) -> None:
    async def work(found: World) -> None:
        call = event("tool.used", id="call", payload={"tool": "water", "result": "The rye is watered."})
        await found.publish(event("agent.configured", payload=CAPTURING), call)
        assert await found.hits("miller") == {}
        await found.publish(changed("transferred", entries=["call"], to="miller"))
        for agent, kind in (("miller", "memory.retained"), ("baker", "tool.used")):
            hits = (await found.memory.recall("village", agent, QUESTION, top_k=20)).hits
            assert [hit.event.kind for hit in hits if hit.event.id == "call"] == [kind]

    ask(work)
