"""Blocks of working memory in recall and under RECALLED, for agents whose setting `working.include_in_rag` says so."""

from typing import Any

import pytest

from recallog import Event, Memory
from support.events import event, run

pytestmark = pytest.mark.models("working")


def configured(**working: Any) -> Event:
    return event("agent.configured", payload={"working": working})


def block(label: str, value: Any, **fields: Any) -> Event:
    return event("item.put", payload={"namespace": ["working"], "key": label, "value": value}, **fields)


RYE, GOALS = block("Prices", "Rye costs three crowns."), block("Goals", ["sell the oven"])
DEEPER = event("item.put", payload={"namespace": ["working", "old"], "key": "rye", "value": "Rye was dear."})
INCLUDED = configured(include_in_rag=True, auto_inject=False)


def found(*events: Event, query: str = "What does rye cost?", agent: str = "baker", **where: Any) -> list[str]:
    async def work() -> list[str]:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            hits = (await memory.recall("village", agent, query, **where)).hits
            return [f"{hit.event.payload['type']} {hit.text}" for hit in hits]

    return run(work())


def test_recall_finds_the_blocks_of_an_agent_that_includes_them() -> None:
    assert found(INCLUDED, RYE, GOALS, DEEPER) == ["block Prices: Rye costs three crowns."]
    assert found(INCLUDED, RYE, GOALS, query="the oven") == ['block Goals: ["sell the oven"]']


@pytest.mark.parametrize("setting", [None, {}, {"include_in_rag": False}, {"include_in_rag": True, "enabled": False}])
def test_it_finds_none_otherwise(setting: Any) -> None:
    assert found(RYE, *([] if setting is None else [configured(**setting)])) == []


def test_nobody_else_finds_them() -> None:
    other = event("agent.configured", agent="miller", payload={"working": {"include_in_rag": True}})
    assert found(INCLUDED, other, RYE, agent="miller") == []


def test_a_block_that_changed_is_found_as_it_is_and_as_of_then_as_it_was() -> None:
    deleted = event("item.deleted", payload={"namespace": ["working"], "key": "Prices"})
    assert found(INCLUDED, RYE, block("Prices", "Rye costs four.")) == ["block Prices: Rye costs four."]
    assert found(INCLUDED, RYE, deleted) == []
    assert found(INCLUDED, RYE, deleted, as_of="0:1") == ["block Prices: Rye costs three crowns."]


@pytest.mark.models("prompt")
def test_a_prompt_shows_a_block_once() -> None:
    async def work(setting: dict[str, Any]) -> str:
        async with Memory.in_memory() as memory:
            await memory.publish_many([configured(include_in_rag=True, **setting), RYE, GOALS])
            return (await memory.context("village", "baker", query="What does rye cost?")).text

    line = "RECALLED\n[turn 000][memory.retained] Prices: Rye costs three crowns."
    assert line in run(work({"auto_inject": False}))
    assert line in run(work({"labels": ["Goals"]}))
    assert run(work({})).count("Rye costs three crowns.") == 1
