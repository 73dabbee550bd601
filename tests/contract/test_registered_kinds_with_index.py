"""Kinds that a program registers, and the index: what is rebuilt, and what a process without the model can answer."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from flip.memories import in_process, served
from recallog_schemas import kinds
from recallog_schemas.kinds import Payload
from recallog_schemas.kinds.kind import episode
from recallog_schemas.text_rules import first_of
from support import tiny_onnx
from support.events import event
from support.registering import registered
from support.toy_embedder import ToyEmbedder

TOY = [episode("toy.greeted", "An agent greeted another one.", Payload, first_of("words"), 0.9, "words", shared=True)]
GREETING = event("toy.greeted", payload={"words": "Good morning, miller."})


@pytest.fixture(autouse=True)
def _forget_registrations() -> Iterator[None]:
    with registered():
        yield


def test_an_index_that_has_folded_events_of_an_unknown_kind_is_rebuilt_when_it_is_registered(tmp_path: Path) -> None:
    async def found() -> tuple[str | None, Sequence[str]]:
        async with in_process(tmp_path, embedder=ToyEmbedder()) as memory:
            await memory.publish(event("agent.spoke", payload={"text": "Bread!"}))
            view = await memory.recall("village", "baker", "good morning miller", wait_index=True)
            return view.degraded, [hit.text for hit in view.hits if hit.event.kind == "toy.greeted"]

    async def publish() -> None:
        async with in_process(tmp_path, embedder=ToyEmbedder()) as memory:
            await memory.publish(GREETING)

    asyncio.run(publish())
    assert asyncio.run(found()) == (None, [])
    kinds.register("toy", TOY)
    assert asyncio.run(found()) == (None, ["Good morning, miller."])


def test_a_program_whose_index_process_lacks_its_model_is_answered_and_told(tmp_path: Path) -> None:
    model = tiny_onnx.save(tmp_path / "model", ["good", "morning", "miller"])

    async def work() -> tuple[str, Sequence[str]]:
        async with served(tmp_path / "home", model) as memory:
            await memory.publish(GREETING)
            await memory.episodic("village", "baker")
            await memory.recall("village", "miller", "good morning", wait_index=True)
            await memory.publish(event("toy.greeted", payload={"words": "Good evening."}))
            view = await memory.recall("village", "miller", "good morning")
            return str(view.degraded), sorted(hit.text for hit in view.hits)

    kinds.register("toy", TOY)
    degraded, texts = asyncio.run(work())
    assert texts == ["Good evening.", "Good morning, miller."]
    assert "a kind of the model 'toy', which this process does not have" in degraded
