"""Recall of texts that the model cannot read: words are compared, by the index, and fairly beside readable texts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from recallog import Memory, Settings
from recallog_projections.index.engines.edge import EdgeEngine
from support.events import event, run
from support.indexing import catch_up, indexing_of, memory_with

SESSIONS = [
    ["我养了一只猫，叫小白。", "猫喜欢吃鱼。", "今天下雨了。"],
    ["我们四月去了医院。", "医生说没有问题。", "I bought an iPhone15 there."],
    ["The mill burned to the ground.", "Nine sacks are unpaid.", "他的iPhone15坏了。"],
]
EVENTS = [
    event(payload={"text": text}, session=f"s{number}", turn=10 * number + turn)
    for number, texts in enumerate(SESSIONS)
    for turn, text in enumerate(texts)
]
QUESTIONS = ["小白是什么猫？", "什么时候去了医院？", "谁的iPhone15坏了？"]


@asynccontextmanager
async def indexed(home: Path) -> AsyncIterator[Memory]:
    """A memory whose index is up to date."""
    async with memory_with(home, lambda ledger: indexing_of(ledger, EdgeEngine(home / "engine"))) as memory:
        await memory.publish_many(EVENTS)
        assert memory._components.index is not None
        await catch_up(memory._components.index.indexer)
        yield memory


def test_a_question_that_the_model_cannot_read_is_answered_as_without_an_index(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(tmp_path) as memory, Memory.open(Settings(home=tmp_path, index="off")) as off:
            for question in QUESTIONS:
                found = await memory.recall("village", "baker", question)
                expected = await off.recall("village", "baker", question)
                assert [hit.text for hit in found.hits] == [hit.text for hit in expected.hits]
                assert [hit.weak for hit in found.hits] == [hit.weak for hit in expected.hits]
                assert [set(hit.parts) for hit in found.hits] == [set(hit.parts) for hit in expected.hits]
                assert {hit.source for hit in found.hits} == {"index"}
                assert all(hit.similarity is None for hit in found.hits)
                assert set(found.channels) == {"keyword", "structure"}
                assert found.degraded is None

    run(work())


def test_a_text_that_the_model_cannot_read_is_found_beside_readable_ones(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(tmp_path) as memory:
            found = (await memory.recall("village", "baker", "iPhone15")).hits
            assert {hit.text for hit in found[:2]} == {"I bought an iPhone15 there.", "他的iPhone15坏了。"}
            assert {hit.text: hit.similarity is None for hit in found[:2]} == {
                "I bought an iPhone15 there.": False,
                "他的iPhone15坏了。": True,
            }
            assert not found[0].weak
            assert not found[1].weak

    run(work())


def test_nothing_is_close_to_a_question_without_a_common_character(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(tmp_path) as memory:
            assert not (await memory.recall("village", "baker", "小白是什么猫？")).nothing_close
            assert (await memory.recall("village", "baker", "谁住在北京？")).nothing_close

    run(work())


def test_salience_compares_words_by_the_index_if_the_model_cannot_read_the_scene(tmp_path: Path) -> None:
    async def work() -> None:
        async with indexed(tmp_path) as memory:
            found = await memory.salient("village", "baker", "小白是什么猫？", top_k=9)
            assert found.relevance_by == "words: the model cannot read the query"
            assert max(found.memories, key=lambda one: one.relevance).text == SESSIONS[0][0]
            assert (await memory.salient("village", "baker", "the mill")).relevance_by == "meaning"

    run(work())
