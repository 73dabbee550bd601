"""`memory.tiers.retrieve` where an index measures how similar entries are, with chosen cosines."""

import math
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.index.indexer import IndexSnapshot
from recallog.settings import Settings
from recallog_schemas.models.tiers.views import TierHits
from support.events import event, run
from support.index_process import DEADLINE_SECONDS
from support.toy_embedder import ChosenVectors

pytestmark = pytest.mark.models("tiers")

SPACE, AGENT = "s", "a"
QUERY = "What does the miller want?"
COSINES = {"a": 0.60, "b": 0.90, "c": 0.70, "d": 1.0, "e": 0.29, "f": 0.30}
TIERS = {"a": "fast", "b": "slow", "c": "medium", "d": "glacial", "e": "fast", "f": "fast"}
TEXTS = {id_: f"What {id_} says of the mill." for id_ in COSINES}
VECTORS = {QUERY: [1.0]} | {
    TEXTS[id_]: [cosine, *([0.0] * number), math.sqrt(1 - cosine**2)]
    for number, (id_, cosine) in enumerate(COSINES.items())
}
VECTORS |= {"Nothing to do with it.": [0.0] * 8 + [1.0], "Without a tier.": [1.0]}


def kept(id_: str, agent: str = AGENT, **payload: Any) -> Event:
    given = {"text": TEXTS.get(id_, id_), "tier": TIERS.get(id_), **payload}
    return event("memory.retained", space=SPACE, agent=agent, id=id_, payload=given)


def found(hits: TierHits) -> list[tuple[str, float]]:
    return [(hit.entry.id, hit.score) for hit in hits.hits]


def a_memory(folder: Path) -> Memory:
    return Memory.open(
        Settings.valid(home=folder, index="embedded", deadline_seconds=DEADLINE_SECONDS),
        embedder=ChosenVectors(VECTORS),
    )


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "behind"])
def test_the_strategies(tmp_path: Path, indexed: bool) -> None:
    async def check(memory: Memory) -> None:
        retrieve = memory.tiers.retrieve
        weighted = await retrieve(SPACE, AGENT, QUERY)
        assert weighted.relevance_by == "semantic"
        assert found(weighted) == [("a", 0.6), ("none", 0.6), ("c", 0.56), ("b", 0.54), ("d", 0.4)]
        assert [hit.entry.tier for hit in weighted.hits] == ["fast", None, "medium", "slow", "glacial"]
        for limit, expected in ((2, ["a", "f"]), (4, ["a", "f", "c", "none"]), (6, ["a", "f", "c", "none", "b", "d"])):
            hits = await retrieve(SPACE, AGENT, QUERY, strategy="fast_first", limit=limit)
            assert [id_ for id_, _ in found(hits)] == expected
        comprehensive = await retrieve(SPACE, AGENT, QUERY, strategy="comprehensive", limit=10)
        assert found(comprehensive) == [("d", 1.0), ("none", 1.0), ("b", 0.9), ("c", 0.7), ("a", 0.6), ("f", 0.3)]
        slower = await retrieve(SPACE, AGENT, QUERY, tiers=["slow", "glacial"])
        assert found(slower) == [("b", 0.54), ("d", 0.4)]
        similar = await retrieve(SPACE, AGENT, QUERY, min_similarity=0.7)
        assert [id_ for id_, _ in found(similar)] == ["none", "c", "b", "d"]
        assert found(await retrieve(SPACE, AGENT, "Nothing to do with it.")) == []

    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            await memory.publish(kept("none", text="Without a tier.", tier=None))
            await memory.catch_up_index()
            await memory.publish_many([kept(id_) for id_ in COSINES])
            if indexed:
                await memory.catch_up_index()
            await check(memory)
            assert (await memory.admin.rebuild("views")).ok
            await memory.admin.rebuild(what="index")
            await check(memory)
            assert (await memory.admin.verify()).clean

    run(work())


def test_an_entry_is_found_in_the_tier_that_it_has_moved_to(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            await memory.publish_many([kept(id_) for id_ in COSINES])
            await memory.publish(kept("none", text="Without a tier.", tier=None))
            await memory.catch_up_index()
            for id_, to in (("d", "fast"), ("a", "glacial"), ("none", "slow")):
                moved = event("memory.tier_changed", space=SPACE, agent=AGENT, payload={"entry": id_, "to": to})
                await memory.publish(moved)
            await memory.publish(event("memory.archived", space=SPACE, agent=AGENT, payload={"entry": "b"}))
            for _ in range(2):
                hits = await memory.tiers.retrieve(SPACE, AGENT, QUERY)
                assert dict(found(hits)) == {"d": 1.0, "none": 0.6, "c": 0.56, "f": 0.3, "a": 0.24}
                await memory.catch_up_index()
            assert dict(found(await memory.tiers.retrieve(SPACE, AGENT, QUERY, tiers=["fast"]))) == {"d": 1.0, "f": 0.3}
            assert (await memory.admin.verify()).clean

    run(work())


@pytest.mark.parametrize("rebuilt", [False, True])
def test_an_entry_that_has_moved_is_found_in_its_tier_while_the_index_is_behind(tmp_path: Path, rebuilt: bool) -> None:
    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            await memory.publish_many([kept(id_) for id_ in COSINES])
            await memory.publish(kept("none", text="Without a tier.", tier=None))
            await memory.publish_many([kept(f"n{number}", text="Nothing to do with it.") for number in range(40)])
            await memory.catch_up_index()
            index = memory._components.index  # the index must stay behind
            assert index is not None
            opened = await index.open(0)

            async def before(partition: int) -> IndexSnapshot:
                return opened

            index.open = before  # type: ignore[method-assign]
            for id_, to in (("d", "medium"), ("none", "medium"), ("c", "slow")):
                moved = event("memory.tier_changed", space=SPACE, agent=AGENT, payload={"entry": id_, "to": to})
                await memory.publish(moved)
            if rebuilt:
                assert (await memory.admin.rebuild("views")).ok
            hits = await memory.tiers.retrieve(SPACE, AGENT, QUERY, tiers=["medium"])
            assert hits.relevance_by == "semantic"
            assert dict(found(hits)) == {"d": 0.8, "none": 0.8}

    run(work())


def test_a_plan_moves_and_removes_what_the_index_finds(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            limits = {"max": {"glacial": 0, "slow": 0}}
            await memory.publish(event("agent.configured", space=SPACE, agent=AGENT, payload={"tiers": limits}))
            await memory.publish_many([kept(id_, importance=1) for id_ in COSINES])
            at = (await memory.tiers.stats(SPACE, AGENT)).now
            await memory.catch_up_index()
            made = await memory.tiers.consolidate(SPACE, AGENT, now=at)
            assert sorted(each.id for each in made.archived) == ["b", "d"]
            await memory.catch_up_index()
            assert [id_ for id_, _ in found(await memory.tiers.retrieve(SPACE, AGENT, QUERY))] == ["a", "c", "f"]
            assert (await memory.admin.verify()).clean

    run(work())


def test_importances_of_many_digits_do_not_damage_the_index(tmp_path: Path) -> None:
    """The embedded engine returned .9303185945445527 as .9303185945445528: the index was built again and again."""

    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            await memory.publish_many([kept(id_, importance=0.9303185945445527) for id_ in COSINES])
            await memory.catch_up_index()
            hits = await memory.recall(SPACE, AGENT, QUERY, types=["fact"])
            assert (hits.degraded, len(hits.hits)) == (None, 5)
            assert (await memory.admin.verify()).clean

    run(work())


@pytest.mark.parametrize("index", ["embedded", "off"])
def test_recall_and_search_of_tiers_and_of_a_least_importance(tmp_path: Path, index: str) -> None:
    importances = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6, "e": 0.5, "f": 0.4}
    question = "What of the mill?"

    async def check(memory: Memory) -> None:
        for preset in (None, "hybrid", "four_channel"):

            async def ids(**options: Any) -> list[str]:
                hits = await memory.recall(SPACE, AGENT, question, preset=preset, top_k=20, **options)  # noqa: B023
                return sorted(hit.event.id for hit in hits.hits)

            assert await ids(tiers=["fast"]) == ["d", "e", "f"]
            assert await ids(tiers=["glacial", "slow"]) == ["a", "b"]
            assert await ids(tiers=[]) == []
            assert await ids(tiers=["fast"], min_importance=0.5) == ["d", "e"]
            assert await ids(tiers=["fast"], as_of="0:6") == ["a", "e", "f"]
            said = ["said"] if preset is None else []
            assert await ids(min_importance=0.45) == ["a", "b", "c", "d", "e", *said]
            assert await ids(min_importance=0.7) == ["a", "b", "c"]
        page = await memory.search(SPACE, AGENT, question, tiers=["fast"], min_importance=0.6)
        assert [hit.id for hit in page.hits] == ["d"]

    async def work() -> None:
        embedder = ChosenVectors(VECTORS | {question: [1.0, *([0.4] * 6)]}) if index == "embedded" else None
        memory = Memory.open(Settings.valid(home=tmp_path, index=index), embedder=embedder)
        async with memory:
            await memory.publish(event(space=SPACE, agent=AGENT, id="said", payload={"text": "The mill turns."}))
            await memory.publish_many([kept(id_, importance=importances[id_]) for id_ in COSINES])
            await memory.catch_up_index()
            for id_, to in (("d", "fast"), ("a", "glacial")):
                moved = event("memory.tier_changed", space=SPACE, agent=AGENT, payload={"entry": id_, "to": to})
                await memory.publish(moved)
            await check(memory)
            await memory.catch_up_index()
            await check(memory)
            assert (await memory.admin.rebuild("views")).ok
            await check(memory)

    run(work())


def test_agents_find_what_they_may_read(tmp_path: Path) -> None:
    async def work() -> None:
        async with a_memory(tmp_path) as memory:
            shared = event(
                "memory.retained", space=SPACE, agent="b", id="c", payload={"text": TEXTS["c"], "tier": "fast"}
            )
            await memory.publish_many([kept("a", agent="b"), shared.model_copy(update={"audience": [AGENT]})])
            await memory.catch_up_index()
            assert found(await memory.tiers.retrieve(SPACE, AGENT, QUERY)) == [("c", 0.7)]
            assert found(await memory.tiers.retrieve(SPACE, "b", QUERY)) == [("c", 0.7), ("a", 0.6)]

    run(work())
