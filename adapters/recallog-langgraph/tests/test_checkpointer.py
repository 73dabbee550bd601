"""Checkpoints of LangGraph in a memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from recallog.sync import Memory
from recallog_langgraph import RecallogSaver


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


def test_the_conformance_suite_of_langgraph_passes() -> None:
    @checkpointer_test(name="RecallogSaver")
    async def saver() -> AsyncIterator[RecallogSaver]:
        with Memory.in_memory() as memory:
            yield RecallogSaver(memory, space="home", agent="assistant")

    report = asyncio.run(validate(saver))
    assert {name: each.failures for name, each in report.results.items() if each.failures} == {}
    assert [name for name, each in report.results.items() if not each.passed] == []


class State(TypedDict):
    said: list[str]


def answer(state: State) -> State:
    return {"said": [*state["said"], f"answer {len(state['said'])}"]}


def ask(state: State) -> State:
    return {"said": [*state["said"], interrupt("Which cake?")]}


def graph_of(memory: Memory, *nodes: Any) -> Any:
    builder = StateGraph(State)
    names = [node.__name__ for node in nodes]
    for node in nodes:
        builder.add_node(node)
    for one, other in zip([START, *names], [*names, END], strict=True):
        builder.add_edge(one, other)
    return builder.compile(checkpointer=RecallogSaver(memory, space="home", agent="assistant"))


THREAD = {"configurable": {"thread_id": "monday"}}


def test_a_graph_goes_on_where_it_was_interrupted(memory: Memory) -> None:
    graph = graph_of(memory, ask, answer)
    graph.invoke({"said": ["hello"]}, THREAD)
    assert graph.invoke(Command(resume="plum cake"), THREAD)["said"] == ["hello", "plum cake", "answer 2"]


def test_a_graph_is_used_asynchronously(memory: Memory) -> None:
    async def run() -> list[str]:
        graph = graph_of(memory, answer)
        await graph.ainvoke({"said": ["hello"]}, THREAD)
        return [each.values["said"][-1] async for each in graph.aget_state_history(THREAD) if each.values]

    assert asyncio.run(run()) == ["answer 1", "hello"]


def test_a_value_that_is_larger_than_an_item_comes_back(memory: Memory) -> None:
    long = "x" * 300_000
    graph = graph_of(memory, answer)
    graph.invoke({"said": [long]}, THREAD)
    assert graph.get_state(THREAD).values["said"] == [long, "answer 1"]


def test_threads_whose_ids_are_no_names_are_kept_apart(memory: Memory) -> None:
    graph = graph_of(memory, answer)
    ids = ["", "x" * 300, "#x", "e\N{COMBINING ACUTE ACCENT}", "\N{LATIN SMALL LETTER E WITH ACUTE}"]
    for id_ in ids:
        graph.invoke({"said": [f"of {id_}"]}, {"configurable": {"thread_id": id_}})
    states = [graph.get_state({"configurable": {"thread_id": id_}}).values["said"][0] for id_ in ids]
    assert states == [f"of {id_}" for id_ in ids]


def test_keep_latest_keeps_what_is_needed_to_go_on(memory: Memory) -> None:
    graph = graph_of(memory, ask, answer)
    graph.invoke({"said": ["hello"]}, THREAD)
    graph.checkpointer.prune(["monday"])
    assert graph.invoke(Command(resume="plum cake"), THREAD)["said"] == ["hello", "plum cake", "answer 2"]


def test_a_deleted_thread_leaves_no_items(memory: Memory) -> None:
    graph = graph_of(memory, ask, answer)
    graph.invoke({"said": ["x" * 300_000]}, THREAD)
    graph.checkpointer.delete_thread("monday")
    assert memory.items.list("home", "assistant").items == ()
