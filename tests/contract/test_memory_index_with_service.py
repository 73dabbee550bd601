"""An index of the user's own beside the process that serves the semantic index: each answers its part of a prompt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.settings import Settings
from recallog_schemas import Event
from support.embedding_endpoint import EmbeddingEndpoint, embedding_endpoint
from support.events import event, run
from unit.test_memory_index import BY_INDEX, Chosen, said

A = ("village", "baker")
QUERY = "Who burned the mill yesterday?"
EVENTS = [
    event("world.observed", id="scene", at="2026-05-01T12:00:00Z", payload={"text": "The mill burned yesterday."}),
    *(said(f"m-{n}", f"The mill of village {n} burned.", turn=4, at=f"2026-05-0{n}T12:00:00Z") for n in range(1, 6)),
    said("bread", "Bread!", turn=4, at="2026-05-06T12:00:00Z"),
]


def configured(**more: Any) -> Event:
    """The agent's prompts remember the most salient event."""
    payload = {"use_salience": True, "salience_top_k": 1, **more}
    return event("agent.configured", id="settings", at="2026-05-01T12:00:00Z", payload=payload)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with embedding_endpoint() as running:
        yield running


def settings_of(home: Path, endpoint: EmbeddingEndpoint) -> Settings:
    return Settings(home=home, index="embedded", embedder=endpoint.name, index_idle_seconds=5, deadline_seconds=20)


@pytest.mark.models("prompt")
@pytest.mark.parametrize(
    ("query", "as_of"),
    [(QUERY, None), (None, None), (QUERY, "0:4"), (None, "2026-05-04T12:00:00Z")],
    ids=["asked", "scene", "position", "time"],
)
def test_a_prompt_is_the_same_but_for_relevance(
    query: str | None, as_of: str | None, tmp_path: Path, endpoint: EmbeddingEndpoint
) -> None:
    """Where relevance has no weight, the prompt is the one of a memory without that index, RECALLED included."""
    unweighted = {"salience_weights": {"relevance": 0.0, "recency": 0.5, "importance": 0.5}}

    async def work() -> None:
        settings = settings_of(tmp_path, endpoint)
        async with Memory.open(settings) as memory:
            await memory.publish_many([configured(**unweighted), *EVENTS])
            await memory.catch_up_index()
            plain = await memory.context(*A, query=query, as_of=as_of)
            assert "RECALLED" in plain.text
        async with Memory.open(settings, index=Chosen("m-1")) as memory:
            own = await memory.context(*A, query=query, as_of=as_of)
            assert (own.text, own.degraded, plain.degraded) == (plain.text, None, None)
            recalled = await memory.recall(*A, QUERY, as_of=as_of)
            assert (recalled.degraded, recalled.hits[0].source) == (None, "index")

    run(work())


@pytest.mark.models("prompt")
def test_two_moments_are_compared_while_a_process_serves_the_index(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    """The prompt is compared, and RECALLED of it needs the index, which the process that asks cannot open."""

    async def work() -> None:
        async with Memory.open(settings_of(tmp_path, endpoint)) as memory:
            since, *_ = await memory.publish_many([configured(), *EVENTS])
            await memory.catch_up_index()
            found = await memory.diff(*A, since)
            lines = {each.after for each in found.changes if (each.section, each.id) == ("prompt", "RECALLED")}
            assert lines
            assert lines <= set((await memory.context(*A)).text.splitlines())

    run(work())


@pytest.mark.models("prompt")
def test_the_memory_of_a_prompt_is_what_that_index_finds(tmp_path: Path, endpoint: EmbeddingEndpoint) -> None:
    async def work() -> None:
        settings = settings_of(tmp_path, endpoint)
        async with Memory.open(settings, index=Chosen("m-1")) as memory:
            await memory.publish_many([configured(), *EVENTS])
            first = await memory.context(*A, query=QUERY)
            assert first.degraded is not None  # RECALLED: the semantic index is being built
            assert "] The mill of village 1 burned." in memory_of(first.text)
            await memory.catch_up_index()
            prompt = await memory.context(*A, query=QUERY)
            assert prompt.degraded is None
            assert memory_of(prompt.text) == memory_of(first.text)
            explained = await memory.explain("village", "baker", "m-1", query=QUERY)
            assert explained.memory is not None
            assert (explained.rank, explained.memory.relevance) == (1, 1.0)
            assert (await memory.salient(*A, QUERY)).relevance_by == BY_INDEX

    run(work())


def memory_of(prompt: str) -> str:
    """The section of the memory."""
    return prompt.partition("YOUR MEMORY\n")[2].partition("\n\n")[0]
