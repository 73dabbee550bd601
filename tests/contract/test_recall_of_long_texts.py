"""Long texts: any part of one is found and quoted, also in prompts, and it does not outrank a short text as close."""

from pathlib import Path

import pytest

from recallog import Event, Memory
from recallog_projections.index import passages
from recallog_projections.index.engines.edge import EdgeEngine
from support.events import event, run
from support.indexing import indexed, indexing_of, memory_with, toys

FILLER = "The harbour master writes down the ships that arrive, their cargo, and the tax that each of them owes. "
ANSWER = "The smith burned the mill on Sunday."
QUESTION = "Who burned the mill?"
SHORT = "The mill is old."
ESSAY = f"  {FILLER * 20}\n\n{ANSWER}\n\n{FILLER * 20}"


async def published(memory: Memory, texts: list[str]) -> list[Event]:
    """One event for each text, in sessions of their own: neighbours play no role."""
    window = event(kind="agent.configured", payload={"window": 1})
    events = [event(payload={"text": text}, session=f"s-{turn}", turn=turn) for turn, text in enumerate(texts)]
    await memory.publish_many([window, *events])
    await indexed(memory)
    return events


def test_a_hit_quotes_the_passage_with_the_answer(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await published(memory, [SHORT, ESSAY, "Flour is dear."])
            found = await memory.recall("village", "baker", QUESTION)
            long, short = (next(hit for hit in found.hits if hit.text == text) for text in (ESSAY, SHORT))
            assert long.passage is not None
            start, end = long.passage
            assert ANSWER in ESSAY[start:end]
            assert passages.length(ESSAY[start:end]) <= passages.PASSAGE_LENGTH
            assert long.quote == f"…{ESSAY[start:end].strip()}…"
            assert (short.passage, short.quote) == (None, SHORT)
            previews = {hit.id: hit.preview for hit in (await memory.search("village", "baker", QUESTION)).hits}
            assert previews[long.event.id].startswith(long.quote[:100])

    run(scenario())


@pytest.mark.models("prompt")
def test_a_prompt_recalls_the_passage_and_not_the_whole_text(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await published(memory, [ESSAY, "Bread!"])
            prompt = await memory.context("village", "baker", query=QUESTION)
            if memory._components.index is None:
                return  # without an index a prompt recalls nothing
            recalled = prompt.text.split("RECALLED\n")[1].split("\n\n")[0]
            assert ANSWER in recalled
            assert len(recalled) < 2 * passages.PASSAGE_LENGTH

    run(scenario())


def test_of_a_sentence_and_an_essay_that_contains_it_the_sentence_comes_first(memory: Memory) -> None:
    async def scenario() -> None:
        async with memory:
            await published(memory, [ANSWER, f"{ANSWER} {FILLER * 40}", "Bread!"])
            found = await memory.recall("village", "baker", QUESTION)
            assert found.hits[0].text == ANSWER

    run(scenario())


def test_a_very_long_text_has_a_bounded_number_of_vectors(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await published(memory, [FILLER * 1000 + ANSWER])
            index = memory._components.index
            assert index is not None
            snapshot = await index.open(0)
            (point,) = await engine.scroll(snapshot.collection, None, 10, vectors=True)
            assert point.dense is not None
            assert len(point.dense) == passages.EMBEDDED_MAX
            (hit,) = (await memory.recall("village", "baker", QUESTION)).hits
            assert hit.quote.endswith(ANSWER)

    run(scenario())


def test_a_rebuild_reuses_the_vectors_of_all_passages_and_the_index_verifies(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine, embedders = EdgeEngine(tmp_path / "engine"), toys()
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine, embedders)) as memory:
            await published(memory, [ESSAY, ANSWER])
            before = (await memory.recall("village", "baker", QUESTION)).hits
            embedded = embedders["toy"].embedded
            assert embedded > len(passages.spans(ESSAY.strip()))
            await memory.admin.rebuild(what="index")
            assert (await memory.admin.verify()).ok
            after = (await memory.recall("village", "baker", QUESTION)).hits
            assert embedders["toy"].embedded == embedded
            assert [(hit.event.id, hit.passage, hit.score) for hit in after] == [
                (hit.event.id, hit.passage, hit.score) for hit in before
            ]

    run(scenario())
