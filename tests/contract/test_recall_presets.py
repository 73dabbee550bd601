"""The presets of recall: rankings of entries by the ranks of meaning, words, entities, and time and use."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_entries import changed, retained
from recallog import Memory
from recallog.errors import EmbedderUnavailable, IndexUnavailable, InvalidArgument
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.engine import StoredPoint
from support.events import event, run
from support.faulty_engine import FaultyEngine
from support.indexing import indexed, indexing_of, memory_with
from support.toy_embedder import ChosenVectors

A = ("village", "baker")
QUESTION = "Who sows the rye?"
VECTORS = {
    QUESTION: (1.0, 0.0),
    "The miller grinds.": (0.9, 0.4),
    "The smith sows rye, and the barley behind the mill.": (0.8, 0.6),
    "Rye.": (0.1, 1.0),
}
FIRST, SECOND, THIRD = list(VECTORS)[1:]
"""The best by meaning; the second best by meaning and by words; the best by words, far from the question."""


class World:
    def __init__(self, memory: Memory, engine: FaultyEngine, embedder: ChosenVectors) -> None:
        self.memory, self.engine, self.embedder = memory, engine, embedder

    async def publish(self, *events: Any) -> list[Any]:
        positions = await self.memory.publish_many(list(events))
        await indexed(self.memory)
        return positions

    async def scores(self, question: str = QUESTION, agent: str = "baker", **how: Any) -> list[tuple[str, float]]:
        """The ids and scores of the hits, best first."""
        found = await self.memory.recall("village", agent, question, **{"preset": "hybrid", **how})
        page = await self.memory.search("village", agent, question, **{"preset": "hybrid", **how})
        assert [(hit.id, hit.also) for hit in page.hits][: found.top_k] == [
            (hit.event.id, hit.also) for hit in found.hits
        ]
        for hit in found.hits:
            assert hit.is_entry
            assert sum(hit.parts.values()) == pytest.approx(hit.score)
            assert hit.parts.keys() <= set(found.channels)
        return [(hit.event.id, round(hit.score, 6)) for hit in found.hits]


@asynccontextmanager
async def world(home: Path, vectors: Mapping[str, Sequence[float]] = VECTORS) -> AsyncIterator[World]:
    engine, embedder = FaultyEngine(EdgeEngine(home / "engine")), ChosenVectors(vectors)
    async with memory_with(home, lambda ledger: indexing_of(ledger, engine, {"chosen": embedder})) as memory:
        yield World(memory, engine, embedder)


def told(
    home: Path, work: Callable[[World], Awaitable[None]], vectors: Mapping[str, Sequence[float]] = VECTORS
) -> None:
    async def whole() -> None:
        async with world(home, vectors) as found:
            await work(found)

    run(whole())


def entries() -> list[Any]:
    return [retained(text, id=f"m{number}") for number, text in enumerate((FIRST, SECOND, THIRD), 1)]


@pytest.mark.models("all")
@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [("m2", 0.016235), ("m1", 0.009836), ("m3", 0.006452)]),
        ({"vector_weight": 0.3}, [("m2", 0.016314), ("m3", 0.011290), ("m1", 0.004918)]),
        ({"channels": ["semantic"]}, [("m1", 0.009836), ("m2", 0.009677)]),
        ({"channels": ["keyword"]}, [("m2", 0.006557), ("m3", 0.006452)]),
        ({"vector_weight": 1}, [("m1", 0.016393), ("m2", 0.016129)]),
        ({"vector_weight": 0}, [("m2", 0.016393), ("m3", 0.016129)]),
        ({"top_k": 1}, [("m2", 0.016235)]),
    ],
)
def test_hybrid_adds_the_weighted_reciprocal_ranks_of_meaning_and_words(
    tmp_path: Path, how: Mapping[str, Any], expected: Sequence[tuple[str, float]]
) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        limit = {"limit": how["top_k"]} if "top_k" in how else {}
        assert not limit or len((await found.memory.search(*A, QUESTION, preset="hybrid", **limit)).hits) == 1
        answer = await found.memory.recall(*A, QUESTION, preset="hybrid", **how)
        assert [(hit.event.id, round(hit.score, 6)) for hit in answer.hits] == expected
        assert (answer.preset, answer.fusion, answer.degraded) == ("hybrid", "rrf", None)

    told(tmp_path, work)


@pytest.mark.models("all")
def test_a_channel_that_fails_is_left_out_and_named(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        found.embedder.failure = EmbedderUnavailable("the embedder was pulled")
        answer = await found.memory.recall(*A, QUESTION, preset="hybrid")
        assert [(hit.event.id, round(hit.score, 6)) for hit in answer.hits] == [("m2", 0.006557), ("m3", 0.006452)]
        assert answer.channels == ("keyword",)
        assert answer.degraded == "the channel semantic was left out: the embedder was pulled"
        assert (await found.memory.search(*A, QUESTION, preset="hybrid")).degraded == answer.degraded

    told(tmp_path, work)


@pytest.mark.models("all")
def test_without_the_index_words_are_compared_and_the_answer_says_so(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        found.engine.down(IndexUnavailable("pulled"))
        answer = await found.memory.recall(*A, QUESTION, preset="hybrid")
        assert {hit.event.id for hit in answer.hits} == {"m2", "m3"}
        assert answer.degraded == (
            "the channel semantic was left out and the channel keyword compared only the newest 1,000 entries: pulled"
        )
        assert (answer.index, answer.index_checkpoint) == (None, None)
        alone = await found.memory.recall(*A, QUESTION, preset="four_channel", channels=["temporal"])
        assert (len(alone.hits), alone.degraded) == (3, None)

    told(tmp_path, work)


@pytest.mark.models("all")
def test_an_entry_that_the_index_has_not_processed_is_found_by_its_words(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        before = dict(await found.scores(channels=["keyword"]))
        await found.memory.publish(retained("Rye, rye, rye!", id="new"))
        await found.memory.publish(changed("updated", entry="m3", text="Oats."))
        await found.memory.publish(changed("erased", entries=["m2"]))
        after = await found.scores(channels=["keyword"])
        assert [id_ for id_, _ in after] == ["new"]
        assert before.keys() == {"m2", "m3"}
        assert [id_ for id_, _ in await found.scores()] == ["m1", "new"]

    told(tmp_path, work)


@pytest.mark.models("all")
def test_the_scores_of_words_are_those_of_the_index_also_behind_it(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        before = await found.scores()
        await found.memory.publish(event(payload={"text": "Good morning."}))
        assert await found.scores() == before

    told(tmp_path, work)


@pytest.mark.models("all")
@pytest.mark.parametrize("indexing", [True, False], ids=["index", "words"])
def test_an_old_entry_with_the_words_of_the_query_is_before_fresh_ones(tmp_path: Path, indexing: bool) -> None:
    async def asked(memory: Memory) -> None:
        now = datetime.fromisoformat("2026-03-20T12:00:00Z")
        old = retained("The smith sows the rye.", id="old").model_copy(update={"at": now - timedelta(days=10)})
        fresh = [
            retained(f"Oats number {n}.", id=f"fresh-{n}").model_copy(update={"at": now - timedelta(hours=9 - n)})
            for n in range(9)
        ]
        await memory.publish_many([old, *fresh])
        await indexed(memory)
        how: dict[str, Any] = {"preset": "four_channel", "channels": ["keyword", "temporal"], "top_k": 10}
        found = await memory.recall(*A, QUESTION, **how)
        scores = [(hit.event.id, round(hit.score, 6)) for hit in found.hits]
        assert scores[:2] == [("old", 0.030679), ("fresh-8", 0.016393)]
        assert len(scores) == 10
        assert [hit.weak for hit in found.hits] == [False] + 9 * [True]
        by_time = await memory.recall(*A, QUESTION, **how, recency_weight=0)
        assert [hit.event.id for hit in by_time.hits] == ["old"]
        weighted = await memory.recall(*A, QUESTION, **how, recency_weight=0.4)
        assert [(hit.event.id, round(hit.score, 6)) for hit in weighted.hits][:2] == [
            ("old", round(0.2 / 61 + 0.4 / 70, 6)),
            ("fresh-8", round(0.4 / 61, 6)),
        ]
        later = await memory.recall(*A, QUESTION, **how, now=now + timedelta(days=100))
        assert later.now == now + timedelta(days=100)

    async def with_index(found: World) -> None:
        await asked(found.memory)

    async def without_index() -> None:
        async with Memory.in_memory() as memory:
            await asked(memory)

    if indexing:
        told(tmp_path, with_index)
    else:
        run(without_index())


@pytest.mark.models("all")
@pytest.mark.parametrize("indexing", [True, False], ids=["index", "words"])
def test_entries_are_found_by_the_entities_that_the_query_names_and_two_links_further(
    tmp_path: Path, indexing: bool
) -> None:
    texts = {
        "Alpha": "Alpha works with Beta.",
        "Beta": "Beta supplies Gamma.",
        "Gamma": "Gamma rents from Delta.",
        "Delta": "Delta is closed.",
    }

    async def asked(memory: Memory) -> None:
        await memory.publish_many(
            [retained(text, id=f"r{n}", entity=name) for n, (name, text) in enumerate(texts.items(), 1)]
        )
        await indexed(memory)
        question, how = "Tell me about Alpha", {"preset": "four_channel", "channels": ["entity"]}
        found = await memory.recall(*A, question, **how)  # type: ignore[arg-type]
        assert [(hit.event.id, round(hit.score, 6)) for hit in found.hits] == [
            ("r1", 0.016393),
            ("r2", 0.016129),
            ("r3", 0.015873),
        ]
        assert not any(hit.weak for hit in found.hits)
        assert (await memory.recall("village", "miller", question, **how)).hits == ()  # type: ignore[arg-type]
        lessons = await memory.recall(*A, question, types=["lesson"], **how)  # type: ignore[arg-type]
        assert lessons.hits == ()

    async def with_index(found: World) -> None:
        await asked(found.memory)

    async def without_index() -> None:
        async with Memory.in_memory() as memory:
            await asked(memory)

    if indexing:
        told(tmp_path, with_index)
    else:
        run(without_index())


@pytest.mark.models("all")
def test_filters_leave_what_an_entity_has_beyond_the_first_entries() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            lesson = retained("Beta pays late.", id="lesson", type="lesson")
            await memory.publish_many([*(retained(f"Alpha sold {n} sacks to Beta.") for n in range(50)), lesson])
            found = await memory.recall(
                *A, "Alpha", preset="four_channel", channels=["entity"], types=["lesson"], top_k=1
            )
            assert [hit.event.id for hit in found.hits] == ["lesson"]
            assert found.considered == 1

    run(work())


@pytest.mark.models("long_term")
def test_uses_that_are_counted_lift_an_entry(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        used = event("memory.accessed", payload={"counts": {"m1": 3}, "hits": 1, "misses": 0})
        how = {"preset": "four_channel", "channels": ["temporal"]}
        assert [id_ for id_, _ in await found.scores(**how)] == ["m3", "m2", "m1"]
        await found.memory.publish(used)
        assert next(id_ for id_, _ in await found.scores(**how)) == "m1"
        others = await found.memory.recall("village", "miller", QUESTION, **how)  # type: ignore[arg-type]
        assert others.hits == ()

    told(tmp_path, work)


@pytest.mark.models("long_term")
def test_an_entry_that_others_use_is_lifted_for_all_its_readers() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many(
                [
                    retained("The rye is sown.", id="shared", audience=["miller"]),
                    retained("The oats are sown.", "miller", id="own"),
                    event("memory.accessed", agent="baker", payload={"counts": {"shared": 5}, "hits": 1, "misses": 0}),
                ]
            )
            how: dict[str, Any] = {"preset": "four_channel", "channels": ["temporal"]}
            found = await memory.recall("village", "miller", QUESTION, **how)
            assert [hit.event.id for hit in found.hits] == ["shared", "own"]

    run(work())


@pytest.mark.models("all")
def test_only_the_types_that_are_asked_for_are_ranked(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        fact, lesson, _ = entries()
        await found.publish(
            fact,
            lesson.model_copy(update={"payload": {**lesson.payload, "type": "lesson"}}),
            event(payload={"text": SECOND}),
        )
        for preset in ("hybrid", "four_channel"):
            assert {id_ for id_, _ in await found.scores(preset=preset)} == {"m1", "m2"}
            assert {id_ for id_, _ in await found.scores(preset=preset, types=["lesson"])} == {"m2"}
            assert await found.scores(preset=preset, types=["note"]) == []

    told(tmp_path, work)


@pytest.mark.models("all")
def test_filters_apply(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        first, second, third = entries()
        await found.publish(
            first.model_copy(update={"session": "dusk"}), second, third.model_copy(update={"at": second.at})
        )
        for preset in ("hybrid", "four_channel"):
            assert {id_ for id_, _ in await found.scores(preset=preset, session="dusk")} == {"m1"}
            assert await found.scores(preset=preset, author="miller") == []
            assert await found.scores(preset=preset, kinds=["agent.spoke"]) == []
            assert await found.scores(preset=preset, until="2026-01-01T00:00:00Z") == []
            assert {id_ for id_, _ in await found.scores(preset=preset, min_similarity=0.7)} <= {"m1", "m2", "m3"}

    told(tmp_path, work)


@pytest.mark.models("all")
def test_the_past_is_ranked_by_the_texts_of_then(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        first, second, third = entries()
        (*_, then) = await found.publish(first, second, third)
        await found.publish(
            changed("archived", entry="m2"),
            changed("updated", entry="m1", text="Oats."),
            changed("updated", entry="m3", text=SECOND),
        )
        assert await found.scores() == [("m3", 0.016393)]
        assert await found.scores(as_of=then) == [("m2", 0.016235), ("m1", 0.009836), ("m3", 0.006452)]
        for id_, text in (("m1", FIRST), ("m3", THIRD)):
            answer = await found.memory.recall(*A, QUESTION, preset="hybrid", as_of=then)
            assert [hit.text for hit in answer.hits if hit.event.id == id_] == [text]

    told(tmp_path, work)


@pytest.mark.models("all")
@pytest.mark.parametrize("seed", range(3))
def test_the_index_ranks_words_as_a_comparison_of_all_entries_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    words = ["rye", "oats", "barley", "mill", "river", "smith", "sack", "flour"]
    texts = [" ".join(chance.choices(words, k=chance.randint(1, 9))) + f" {n}" for n in range(40)]
    published = [
        retained(
            text, chance.choice(["baker", "miller"]), f"e-{n}", audience=chance.choice([None, ["baker"], ["smith"]])
        )
        for n, text in enumerate(texts)
    ]
    gone = [changed("archived", chosen.agent, entry=chosen.id) for chosen in chance.sample(published, 8)]

    async def ranked(memory: Memory) -> list[list[str]]:
        await memory.publish_many([*published, *gone, event(payload={"text": "rye and oats"})])
        await indexed(memory)
        found = []
        for question in ("the rye of the smith", "oats and barley by the river", "flour"):
            how: dict[str, Any] = {"preset": "hybrid", "channels": ["keyword"], "top_k": 50}
            found.append([hit.event.id for hit in (await memory.recall(*A, question, **how)).hits])
        return found

    async def both() -> None:
        async with world(tmp_path) as found, Memory.in_memory() as words_alone:
            assert await ranked(found.memory) == await ranked(words_alone)

    run(both())


@pytest.mark.models("all")
def test_a_blank_query_finds_nothing(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        await found.publish(*entries())
        for preset in ("hybrid", "four_channel"):
            answer = await found.memory.recall(*A, " ", preset=preset)  # type: ignore[call-overload, arg-type]
            assert (answer.hits, answer.considered) == ((), 0)
            assert (await found.memory.recall("nowhere", "nobody", QUESTION, preset=preset)).hits == ()  # type: ignore[arg-type]

    told(tmp_path, work)


@pytest.mark.parametrize(
    ("how", "path"),
    [
        ({"channels": ["entity"]}, "channels.0"),
        ({"preset": "hybrid", "channels": ["keyword", "entity"]}, "channels.1"),
        ({"preset": "four_channel", "channels": ["structure"]}, "channels.0"),
        ({"preset": "four_channel", "vector_weight": 0.5}, "vector_weight"),
        ({"vector_weight": 0.5}, "vector_weight"),
        ({"types": []}, "types"),
        ({"channels": []}, "channels"),
        ({"preset": "hybrid", "recency_weight": 0.5}, "recency_weight"),
        ({"preset": "hybrid", "vector_weight": 1.5}, "vector_weight"),
        ({"preset": "hybrid", "types": ["fact", "event"]}, "types"),
        ({"preset": "best"}, "preset"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(how: dict[str, Any], path: str) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            with pytest.raises(InvalidArgument) as refused:
                await memory.recall(*A, QUESTION, **how)
            assert refused.value.path == path

    run(work())


@pytest.mark.models("all")
def test_a_damaged_point_costs_the_index_and_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FaultyEngine.retrieve

    async def damaged(self: FaultyEngine, *args: Any, **how: Any) -> dict[str, StoredPoint]:
        stored = await whole(self, *args, **how)
        return {id_: replace(point, payload={**point.payload, "turn": 7}) for id_, point in stored.items()}

    async def work(found: World) -> None:
        await found.publish(*entries())
        monkeypatch.setattr(FaultyEngine, "retrieve", damaged)
        answer = await found.memory.recall(*A, QUESTION, preset="hybrid")
        assert {hit.event.id for hit in answer.hits} == {"m2", "m3"}
        assert answer.degraded is not None
        assert "damaged in the index: its payload differs from its checksum" in answer.degraded

    told(tmp_path, work)


@pytest.mark.models("all")
def test_an_entry_and_what_it_was_made_from_are_said_once(tmp_path: Path) -> None:
    async def work(found: World) -> None:
        first, second, third = entries()
        made = retained("The rye is sown.", id="made", sources=["m2", "m3"])
        await found.publish(first, second, third, made)
        ids = {"preset": "hybrid", "channels": ["keyword"]}
        answer = await found.memory.recall(*A, QUESTION, **ids)  # type: ignore[arg-type]
        assert [(hit.event.id, hit.also) for hit in answer.hits] == [("m2", ("made",)), ("m3", ())]
        page = await found.memory.search(*A, QUESTION, **ids)  # type: ignore[arg-type]
        assert [(hit.id, hit.also) for hit in page.hits] == [("m2", ("made",)), ("m3", ())]
        two = await found.memory.recall(*A, QUESTION, top_k=2, **ids)  # type: ignore[arg-type]
        assert [hit.event.id for hit in two.hits] == ["m2", "m3"]

    told(tmp_path, work)
