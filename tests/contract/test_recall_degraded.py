"""Recall while the index is down, behind or broken: answers by words with a reason, and recovery."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.index.indexer import Indexer
from recallog.retrieval.reranker import Reranker
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas import limits
from recallog_schemas.errors import EmbedderUnavailable, IndexLost, IndexUnavailable
from recallog_schemas.views import RecallView
from support.events import event, run
from support.faulty_engine import FaultyEngine
from support.indexing import catch_up, indexing_of, memory_with, running, toys
from support.toy_embedder import ToyEmbedder
from support.waiting import until

QUESTION = "who burned the mill?"
ANSWER = "The smith burned the mill."
TEXTS = ["Bread!", "It was dark.", ANSWER, "I saw the river.", "Flour is dear."]


def spoke(text: str, **fields: Any) -> Event:
    return event(payload={"text": text}, **fields)


EVENTS = [spoke(text, turn=turn) for turn, text in enumerate(TEXTS)]


@dataclass
class Inn:
    memory: Memory
    indexing: Indexer
    engine: FaultyEngine
    embedder: ToyEmbedder

    async def ask(self, question: str = QUESTION, **more: Any) -> RecallView:
        return await self.memory.recall("village", "baker", question, **more)

    async def relevance_by(self) -> str | None:
        return (await self.memory.salient("village", "baker", QUESTION)).relevance_by


@asynccontextmanager
async def inn(home: Path) -> AsyncIterator[Inn]:
    """A memory whose index is up to date."""
    engine, embedders = FaultyEngine(EdgeEngine(home / "engine")), toys()
    async with memory_with(home, lambda ledger: indexing_of(ledger, engine, embedders)) as memory:
        await memory.publish_many(EVENTS)
        assert memory._components.index is not None
        indexing = memory._components.index.indexer
        await catch_up(indexing)
        yield Inn(memory, indexing, engine, embedders["toy"])


def in_an_inn(home: Path, work: Callable[[Inn], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with inn(home) as found:
            await work(found)

    run(whole())


def assert_by_words(answer: RecallView, why: str) -> None:
    assert answer.hits[0].text == ANSWER
    assert {hit.source for hit in answer.hits} == {"views"}
    assert all(hit.similarity is None for hit in answer.hits)
    assert set(answer.channels) == {"keyword", "structure"}
    assert (answer.index, answer.index_checkpoint) == (None, None)
    assert answer.degraded is not None
    assert why in answer.degraded


def assert_by_index(answer: RecallView) -> None:
    assert answer.hits[0].text == ANSWER
    assert {hit.source for hit in answer.hits} == {"index"}
    assert set(answer.channels) == {"keyword", "late_interaction", "semantic", "structure"}
    assert (answer.degraded, answer.index_behind) == (None, 0)


FAULTS = [IndexUnavailable("the engine is down"), IndexLost("the engine is down: its collection is gone")]


@pytest.mark.models("prompt")
@pytest.mark.parametrize("fault", FAULTS, ids=["unavailable", "lost"])
def test_recall_answers_by_words_while_the_engine_is_down(tmp_path: Path, fault: IndexUnavailable) -> None:
    async def work(found: Inn) -> None:
        assert_by_index(await found.ask())
        assert await found.relevance_by() == "meaning"
        found.engine.down(fault)
        assert_by_words(await found.ask(), "the engine is down")
        assert await found.relevance_by() == f"words: {fault}"
        assert ANSWER in (await found.memory.context("village", "baker", query=QUESTION)).text
        found.engine.up()
        assert_by_index(await found.ask())
        assert await found.relevance_by() == "meaning"

    in_an_inn(tmp_path, work)


@pytest.mark.models("prompt")
def test_recall_answers_by_words_while_the_embedder_is_down(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        found.embedder.failure = EmbedderUnavailable("the model is gone")
        assert_by_words(await found.ask(), "the model is gone")
        assert await found.relevance_by() == "words: the model is gone"
        assert ANSWER in (await found.memory.context("village", "baker", query=QUESTION)).text
        found.embedder.failure = None
        assert_by_index(await found.ask())
        assert await found.relevance_by() == "meaning"

    in_an_inn(tmp_path, work)


def test_a_query_by_words_alone_needs_no_embedder(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        found.embedder.failure = EmbedderUnavailable("the model is gone")
        answer = await found.ask(channels=["keyword", "structure"])
        assert (answer.hits[0].text, answer.hits[0].source, answer.degraded) == (ANSWER, "index", None)

    in_an_inn(tmp_path, work)


def test_an_event_that_is_not_indexed_yet_is_found_by_its_words(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        await found.memory.publish(spoke("The baker burned the mill, I say."))
        answer = await found.ask(top_k=100)
        sources = {hit.text: hit.source for hit in answer.hits}
        assert sources["The baker burned the mill, I say."] == "views"
        assert sources[ANSWER] == "index"
        assert (answer.degraded, answer.index_behind) == (None, 1)
        assert await found.relevance_by() == "words: the index is 1 positions behind"
        await catch_up(found.indexing)
        assert {hit.source for hit in (await found.ask()).hits} == {"index"}

    in_an_inn(tmp_path, work)


def test_an_event_found_by_index_and_by_words_is_one_hit(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        await found.memory.publish(spoke("A second smith burned a second mill."))
        answer = await found.ask(top_k=100)
        offsets = [hit.position.offset for hit in answer.hits]
        assert len(offsets) == len(set(offsets))
        assert {2, 5} <= set(offsets)

    in_an_inn(tmp_path, work)


@pytest.mark.parametrize("behind", [limits.RECALL_INDEX_LAG_MAX, limits.RECALL_INDEX_LAG_MAX + 1])
def test_the_lag_of_the_index_is_reported_and_the_newest_event_is_found_by_words(tmp_path: Path, behind: int) -> None:
    async def work(found: Inn) -> None:
        await found.memory.publish_many([spoke(f"Flour {n}.") for n in range(behind - 1)])
        await found.memory.publish(spoke("The mill burned, and the miller did it."))
        answer = await found.ask(top_k=100)
        sources = {hit.text: hit.source for hit in answer.hits}
        assert sources["The mill burned, and the miller did it."] == "views"
        assert sources[ANSWER] == "index"
        assert answer.index_behind == behind
        if behind > limits.RECALL_INDEX_LAG_MAX:
            assert answer.degraded is not None
            assert f"{behind} positions behind" in answer.degraded
        else:
            assert answer.degraded is None

    in_an_inn(tmp_path, work)


def test_a_query_as_of_a_position_that_the_index_has_processed_is_not_degraded(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        then = (await found.ask()).checkpoint
        assert then is not None
        await found.memory.publish_many([spoke(f"Flour {n}.") for n in range(limits.RECALL_INDEX_LAG_MAX + 5)])
        assert_by_index(await found.ask(as_of=then))

    in_an_inn(tmp_path, work)


def test_an_index_that_failed_while_following_resumes_and_answers_queries(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        async with running(found.indexing):
            found.engine.down(IndexUnavailable("the engine is down"))
            await found.memory.publish(spoke("The baker burned the mill, I say."))

            async def complains() -> bool:
                return bool(found.indexing.problem)

            await until(complains, "the index says that it does not follow")
            assert_by_words(await found.ask("who did burn the mill, the smith?"), "the engine is down")
            found.engine.up()
            answer = await found.ask(wait_index=True, top_k=2)
            assert {hit.source for hit in answer.hits} == {"index"}
            assert answer.degraded is None

    in_an_inn(tmp_path, work)


def test_an_index_that_is_being_built_reports_its_progress(tmp_path: Path) -> None:
    async def work() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many(EVENTS)
            answer = await memory.recall("village", "baker", QUESTION)
            assert_by_words(answer, "the index is being built, 0 % done")
            assert (await memory.salient("village", "baker", QUESTION)).relevance_by == (
                "words: the index is being built, 0 % done; try again"
            )

    run(work())


@pytest.mark.models("prompt")
def test_the_index_is_not_used_without_a_query(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        found.engine.down(IndexUnavailable("the engine is down"))
        embedded = found.embedder.embedded
        assert (await found.memory.salient("village", "baker")).relevance_by == "words"
        await found.memory.episodic("village", "baker")
        await found.memory.context("village", "baker", query=" ")
        assert found.embedder.embedded == embedded

    in_an_inn(tmp_path, work)


# The index is off.


@pytest.mark.models("prompt")
def test_with_the_index_off_answers_have_no_trace_of_it(tmp_path: Path) -> None:
    """No field of the index appears in an answer, and no section in the prompt."""

    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many([*EVENTS, spoke(QUESTION, turn=7, kind="world.observed")])
            salient = await memory.salient("village", "baker", QUESTION, top_k=2)
            assert salient.relevance_by is None
            assert list(salient.model_dump(mode="json")) == [
                *("generation", "checkpoint", "space", "agent", "known", "query", "turn", "top_k", "weights"),
                *("considered", "memories"),
            ]
            assert salient.format() == (
                "[turn 002][agent.spoke][sal=0.49] The smith burned the mill.\n"
                "[turn 007][world.observed][sal=0.91] who burned the mill?"
            )
            recalled = await memory.recall("village", "baker", QUESTION)
            assert (recalled.degraded, recalled.index) == (None, None)
            prompt = await memory.context("village", "baker")
            assert str(prompt) == "\n".join(
                [
                    *("IDENTITY", "You are baker.", ""),
                    *("CURRENT SCENE", "who burned the mill?", ""),
                    "YOUR MEMORY",
                    *(f"[turn {turn:03d}][agent.spoke] {text}" for turn, text in enumerate(TEXTS)),
                    "",
                    *("VISITOR", "(quiet)"),
                ]
            )

    run(work())


def test_an_index_does_not_change_the_views(tmp_path: Path) -> None:
    async def work(found: Inn) -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as off:
            for ask in (
                lambda memory: memory.episodic("village", "baker"),
                lambda memory: memory.salient("village", "baker"),
                lambda memory: memory.timeline("village", "baker"),
            ):
                with_index, without = await ask(found.memory), await ask(off)
                assert with_index.model_dump(exclude={"relevance_by"}) == without.model_dump(exclude={"relevance_by"})

    in_an_inn(tmp_path, work)


@pytest.mark.models("prompt")
def test_an_engine_that_fails_between_search_and_retrieve_still_gives_an_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with inn(tmp_path) as place:
            place.engine.before = {"retrieve": IndexUnavailable("the engine is down")}
            answer = await place.ask()
            assert "the engine is down" in (answer.degraded or "")
            prompt = await place.memory.context("village", "baker", scene=QUESTION)
            assert "the engine is down" in (prompt.degraded or "")
            assert answer.hits[0].text == ANSWER

    run(work())


def test_an_event_not_indexed_yet_with_the_words_of_the_query_ranks_among_the_first(tmp_path: Path) -> None:
    async def work() -> None:
        async with inn(tmp_path) as place:
            await place.memory.publish(spoke("The mill burned, and the miller did it."))
            answer = await place.ask(top_k=2)
            assert {hit.source for hit in answer.hits} == {"index", "views"}

    run(work())


class Backwards(Reranker):
    """Reverses the order."""

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [float(place) for place in range(len(texts))]


class Broken(Reranker):
    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        raise RuntimeError("out of memory")


def test_a_reranker_sets_the_order_and_its_failure_leaves_the_original_order(tmp_path: Path) -> None:
    async def work() -> None:
        async with inn(tmp_path) as place:
            plain = await place.ask()
            place.memory._reranker = Backwards()
            turned = await place.ask()
            assert [hit.event.id for hit in turned.hits] == [hit.event.id for hit in reversed(plain.hits)]
            assert turned.hits[0].parts == {"reranker": turned.hits[0].score}
            place.memory._reranker = Broken()
            kept = await place.ask()
            assert kept.hits == plain.hits
            assert "out of memory" in (kept.degraded or "")

    run(work())
