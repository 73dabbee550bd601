"""Recall with two models: what the first one cannot read is compared by the second one, which reads all languages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recallog import Memory
from recallog_projections.index.embedders.embedder import Embedding, Passage
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.stores.memory import MemoryStore
from support.events import event, run
from support.indexing import indexed, indexing_of, memory_with
from support.toy_embedder import ToyEmbedder

pytestmark = pytest.mark.models("long_term")

MILL, BREAD, FLOUR = "The mill burned on Sunday.", "面包很贵。", "Flour costs nine coins."
ENGLISH_QUESTION, CHINESE_QUESTION = "How expensive is bread?", "磨坊怎么了？"
WORDS = {"面包": "bread ", "很贵": "expensive ", "磨坊": "mill ", "怎么了": "burned "}


class Translator(ToyEmbedder):
    """Reads Chinese as English."""

    cosines = (0.2, 1.0)

    def _embedding(self, passage: Passage) -> Embedding:
        before, own = (
            _translated(part) for part in (passage.text[: passage.tokens_from], passage.text[passage.tokens_from :])
        )
        found = super()._embedding(replace(passage, text=before + own, tokens_from=len(before)))
        return replace(found, token_spans=[], token_vectors=found.token_vectors[:0], readable=True)


def _translated(text: str) -> str:
    for chinese, english in WORDS.items():
        text = text.replace(chinese, english)
    return text


@dataclass
class Found:
    memory: Memory
    first: ToyEmbedder
    second: Translator


@asynccontextmanager
async def remembered(folder: Path, *texts: str) -> AsyncIterator[Found]:
    """A memory whose index has two models, with these texts in sessions of their own."""
    first, second = ToyEmbedder("toy"), Translator("translating")
    first.multilingual = second
    rows, engine = MemoryStore(), EdgeEngine(folder / "engine")
    memory = memory_with(folder, lambda ledger: indexing_of(ledger, engine, {"toy": first}, rows))
    async with memory:
        await memory.publish(event(kind="agent.configured", payload={"window": 1}))
        for turn, text in enumerate(texts):
            await memory.publish(event(payload={"text": text}, session=f"s-{turn}", turn=turn))
        await indexed(memory)
        yield Found(memory, first, second)


async def best(memory: Memory, question: str) -> str:
    return (await memory.recall("village", "baker", question)).hits[0].text


def test_a_question_in_the_first_models_language_finds_a_text_in_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path, MILL, BREAD, FLOUR) as found:
            assert await best(found.memory, ENGLISH_QUESTION) == BREAD

    run(scenario())


def test_a_question_in_another_language_finds_a_text_in_the_first_models_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path, MILL, BREAD, FLOUR) as found:
            assert await best(found.memory, CHINESE_QUESTION) == MILL

    run(scenario())


def test_where_the_first_model_reads_all_texts_its_questions_are_not_embedded_twice(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path, MILL, FLOUR) as found:
            before = found.second.embedded
            assert await best(found.memory, "Who burned the mill?") == MILL
            assert found.second.embedded == before

    run(scenario())


def test_texts_of_the_first_models_language_have_the_scores_that_they_have_without_the_second(tmp_path: Path) -> None:
    async def scores(folder: Path, *, multilingual: bool) -> list[tuple[str, float]]:
        async with remembered(folder, MILL, FLOUR) as found:
            if not multilingual:
                found.first.multilingual = None
            answer = await found.memory.recall("village", "baker", "Who burned the mill?")
            return [(hit.text, hit.score) for hit in answer.hits]

    async def scenario() -> None:
        assert await scores(tmp_path / "two", multilingual=True) == await scores(tmp_path / "one", multilingual=False)

    run(scenario())


def test_a_similarity_by_the_second_model_is_on_the_scale_of_the_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path, BREAD) as found:
            answer = await found.memory.recall("village", "baker", ENGLISH_QUESTION)
            (asked,) = found.second.embed([Passage(ENGLISH_QUESTION, is_query=True)])
            (text,) = found.second.embed([Passage(f"baker: {BREAD}", len("baker: "))])
            (hit,) = answer.hits
            assert hit.similarity == pytest.approx(found.second.similarity(asked.vector @ text.vector), abs=0.02)

    run(scenario())


def test_a_rebuild_copies_the_vectors_of_both_models(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path, MILL, BREAD, FLOUR) as found:
            before = found.first.embedded, found.second.embedded
            await found.memory.admin.rebuild(what="index")
            assert (found.first.embedded, found.second.embedded) == before
            assert await best(found.memory, CHINESE_QUESTION) == MILL
            assert await best(found.memory, ENGLISH_QUESTION) == BREAD

    run(scenario())


def test_entries_are_found_across_languages_by_a_preset(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with remembered(tmp_path) as found:
            for text in (MILL, BREAD, FLOUR):
                await found.memory.long_term.retain("village", "baker", text)
            await indexed(found.memory)
            for question, text in ((CHINESE_QUESTION, MILL), (ENGLISH_QUESTION, BREAD)):
                answer = await found.memory.recall(
                    "village", "baker", question, preset="four_channel", channels=["semantic"]
                )
                assert answer.hits[0].text == text

    run(scenario())
