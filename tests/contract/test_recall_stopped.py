"""Recall while a service that the index needs is stopped: by words, with the cause, then by meaning again."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory
from recallog.settings import Settings
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_projections.index.engines.server import ServerEngine
from recallog_schemas.views import RecallView
from support.embedding_endpoint import embedding_endpoint
from support.events import event, run
from support.faulty_engine import FaultyEngine
from support.indexing import catch_up, indexing_of, memory_with
from support.silent_server import silent_server
from support.waiting import until

ANSWER = "The smith burned the mill."
EVENTS = [event(payload={"text": text}) for text in ("Bread!", "It was dark.", ANSWER, "I saw the river.")]
DEADLINE_SECONDS = 2.0
ANSWER_SECONDS_MAX = 20.0
"""On a machine that stands still for some seconds."""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")


async def asked(memory: Memory, question: str = "who burned the mill?", **more: Any) -> tuple[float, RecallView]:
    """How long the answer took, and the answer, which is right."""
    began = time.monotonic()
    answer = await memory.recall("village", "baker", question, **more)
    took = time.monotonic() - began
    assert answer.hits[0].text == ANSWER
    return took, answer


async def assert_by_words(memory: Memory, why: str) -> None:
    """The first question may wait for the deadline; those after it do not."""
    took, answer = await asked(memory, "who burned the whole mill?")
    assert took < ANSWER_SECONDS_MAX
    assert answer.degraded is not None
    assert why in answer.degraded
    times = []
    for n in range(5):
        took, answer = await asked(memory, f"who burned mill number {n}?")
        assert why in (answer.degraded or "")
        times.append(took)
    assert min(times) < DEADLINE_SECONDS / 2


def by_meaning(memory: Memory) -> Callable[[], Awaitable[bool]]:
    questions = iter(range(10_000))

    async def answered() -> bool:
        _, answer = await asked(memory, f"who burned the mill {next(questions)} times?")
        return answer.degraded is None

    return answered


def test_a_stopped_endpoint_of_the_embedder_costs_vectors_and_two_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        with embedding_endpoint() as endpoint:
            settings = Settings(home=tmp_path, index="embedded", embedder=endpoint.name, index_idle_seconds=0)
            async with Memory.open(settings) as memory:
                await memory.publish_many(EVENTS)
                _, answer = await asked(memory, wait_index=True)
                assert (answer.degraded, "semantic" in answer.channels) == (None, True)
                endpoint.stop()
                try:
                    await assert_by_words(memory, f"127.0.0.1:{endpoint.port}")
                finally:
                    endpoint.resume()
                await until(by_meaning(memory), "recall by meaning again")

    run(scenario())


def test_a_qdrant_server_that_does_not_answer_costs_vectors_and_two_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        edge = EdgeEngine(tmp_path / "engine")
        engine = FaultyEngine(edge)
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many(EVENTS)
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            assert (await asked(memory))[1].degraded is None
            with silent_server("silent") as port:
                server = ServerEngine(f"http://127.0.0.1:{port}", deadline_seconds=DEADLINE_SECONDS)
                engine.engine = server
                await assert_by_words(memory, f"the Qdrant at http://127.0.0.1:{port} has said nothing for 2 s")
                await server.close()
            engine.engine = edge
            await until(by_meaning(memory), "recall by meaning again")

    run(scenario())
