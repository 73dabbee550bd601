"""The section RECALLED of a prompt: related memories from beyond the window, without weak ones."""

from pathlib import Path

import pytest

from recallog import Event
from recallog_projections.index.engines.edge import EdgeEngine
from support.events import event, run
from support.indexing import catch_up, indexing_of, memory_with

pytestmark = pytest.mark.models("prompt")

ANSWER = "The smith burned the mill."
TEXTS = [ANSWER, "Bread!", "Flour is dear.", "I saw the river.", "It was dark."]


def said() -> list[Event]:
    """Events of which the window shows only the last one, each in a session of its own."""
    window = event(kind="agent.configured", payload={"window": 1})
    return [
        window,
        *(event(payload={"text": text}, session=f"s-{turn}", turn=turn) for turn, text in enumerate(TEXTS)),
    ]


def recalled_in(prompt: str) -> list[str]:
    """The lines of the section."""
    sections = dict(section.split("\n", 1) for section in prompt.split("\n\n"))
    return sections.get("RECALLED", "").splitlines()


def test_a_prompt_recalls_what_is_close_and_leaves_out_what_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many(said())
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            weak, prompts = {}, {}
            for question in ("who burned the mill?", "harbours of Genoa"):
                answer = await memory.recall("village", "baker", question)
                assert answer.degraded is None
                weak[question] = [hit.text for hit in answer.hits if hit.weak]
                prompts[question] = (await memory.context("village", "baker", query=question)).text
                shown = [line.rpartition("] ")[2] for line in recalled_in(prompts[question])]
                close = {hit.text for hit in answer.hits if not hit.weak and hit.text != TEXTS[-1]}
                assert (len(shown), set(shown)) == (len(close), close)
            assert weak["who burned the mill?"]
            assert ANSWER not in weak["who burned the mill?"]
            assert ANSWER in weak["harbours of Genoa"]
            assert "RECALLED" not in prompts["harbours of Genoa"]

    run(work())


def test_explanations_agree_on_what_is_recalled(tmp_path: Path) -> None:
    async def work() -> None:
        engine, events = EdgeEngine(tmp_path / "engine"), said()
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many(events)
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            for question in ("who burned the mill?", "harbours of Genoa"):
                prompt = (await memory.context("village", "baker", query=question)).text
                shown = {line.rpartition("] ")[2] for line in recalled_in(prompt)}
                for each in events[1:]:
                    found = await memory.explain("village", "baker", each.id, query=question)
                    assert ("RECALLED" in found.sections) == (each.text in shown)
                    assert (found.verdict == "remembered") == bool(found.sections)

    run(work())


def test_entries_are_recalled_with_their_priority_by_the_query_of_the_template(tmp_path: Path) -> None:
    async def work() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            kept = {"text": "Genoa has two harbours.", "type": "fact", "priority": "critical"}
            await memory.publish_many([*said(), event("memory.retained", id="m-1", turn=9, payload=kept)])
            template = "{current_state} harbours of Genoa"
            await memory.publish(event("agent.configured", payload={"rag": {"query_template": template, "limit": 1}}))
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            shown = "[turn 009][memory.retained][critical] Genoa has two harbours."
            assert recalled_in((await memory.context("village", "baker", query="?")).text) == [shown]
            await memory.publish(event("agent.configured", payload={"rag": {"enabled": False}}))
            assert recalled_in((await memory.context("village", "baker", query="harbours of Genoa")).text) == []

    run(work())
