"""Indexing: against the model alone, again with the same texts, and what it leaves to publishing and folding.

The index is made in this process, as its service makes it: one thread computes, one writes. Vectors are the real ones.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.conversations import ASKER, talk
from benchmarks.indexes import forget_index, indexing
from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, seconds, set_aside
from benchmarks.workload import batches
from recallog import Event, Memory, Settings
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

_SHARE = Goal("≥", 0.8)
_AGAIN = Goal("≥", 10)
_APPENDED_AT_ONCE = 1_000
_THREADS = 1
"""As the service has it: the other processor is left to those who ask."""
_START_SECONDS = 60.0


async def measure(setup: Setup) -> list[Measure]:
    return [*await _speed(setup), *await _beside(setup)]


class _Listening(Embedder):
    """Remembers what the model was asked for."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.model, self.dimension, self.token_vectors = model.model, model.dimension, model.token_vectors
        self.heard: list[Sequence[Passage]] = []

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        self.heard.append(passages)
        return self._model.embed(passages)

    def close(self) -> None:
        return


async def _speed(setup: Setup) -> list[Measure]:
    count, folder = setup.size(2_000, 400), setup.folder / "index"
    setup.say(f"index: appending {count:,} events")
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for batch in batches(talk(count), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
    model = OnnxEmbedder(threads=_THREADS)
    model.embed([Passage("a model is loaded with the first text", 0)])
    listening = _Listening(model)
    with set_aside():
        taken = await interleaved(
            setup,
            f"index: {count:,} events anew, again with the same texts, and their texts by the model alone",
            {
                "anew": lambda: _anew(folder, listening),
                "again": lambda: _again(folder, listening),
                "bare": lambda: _bare(model, listening.heard),
            },
        )
    return [
        Measure("index: anew", median(count / run for run in taken["anew"]), "events/s"),
        Measure("index: the model alone", median(count / run for run in taken["bare"]), "texts/s"),
        Measure("index: anew ÷ the model alone", ratio(taken["bare"], taken["anew"]), "", _SHARE),
        Measure("index: rebuild with the same texts", median(count / run for run in taken["again"]), "events/s"),
        Measure("index: rebuild ÷ anew", ratio(taken["anew"], taken["again"]), "", _AGAIN),
    ]


async def _anew(folder: Path, embedder: _Listening) -> float:
    forget_index(folder)
    embedder.heard.clear()
    async with indexing(folder, embedder) as index:
        views = await index.views()
        return await seconds(generations.current(views.builder, 0))


async def _again(folder: Path, embedder: _Listening) -> float:
    """Beside the index that `_anew` has made."""
    batches_heard = len(embedder.heard)
    async with indexing(folder, embedder) as index:
        views = await index.views()
        taken = await seconds(generations.rebuild(views.builder, 0))
    if len(embedder.heard) != batches_heard:
        raise InvariantViolation("texts that had not changed were embedded again")
    return taken


async def _bare(model: Embedder, heard: Sequence[Sequence[Passage]]) -> float:
    """The same texts in the same batches, in a thread as well."""

    def embed() -> None:
        for passages in heard:
            model.embed(passages)

    return await seconds(asyncio.to_thread(embed))


async def _beside(setup: Setup) -> list[Measure]:
    """Publishing and folding, with a service that indexes what has piled up and without one."""
    count, folder = setup.size(20_000, 5_000), setup.folder / "beside"
    setup.say(f"index: making {count:,} events")
    # Their ids are made anew for each run, since an id is published once.
    events = [event.model_dump(exclude={"id"}) for event in talk(count, 50)]
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        await _publish(memory, events)  # what the first service has to do
    taken = await interleaved(
        setup,
        f"index: publishing and folding {count:,} events, with and without the index being built",
        {"beside": lambda: _with_service(folder, events), "alone": lambda: _without(folder, events)},
    )
    return [
        Measure("index: publish and fold", median(count / run for run in taken["alone"]), "events/s"),
        Measure("index: … while it is built", median(count / run for run in taken["beside"]), "events/s"),
        Measure("index: while it is built ÷ not", ratio(taken["alone"], taken["beside"]), "", _SHARE),
    ]


async def _without(folder: Path, events: Sequence[dict[str, object]]) -> float:
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        await memory.catch_up()
        return await _publish(memory, events)


async def _with_service(folder: Path, events: Sequence[dict[str, object]]) -> float:
    async with Memory.open(Settings(home=folder, index="embedded")) as memory:
        await memory.catch_up()
        await memory.recall("village-0", ASKER, "Who is there?")  # starts the service
        before, give_up = await _indexed(memory), time.monotonic() + _START_SECONDS
        while await _indexed(memory) == before:
            if time.monotonic() > give_up:
                raise InvariantViolation("the service of the index does not index")
            await asyncio.sleep(0.1)
        taken = await _publish(memory, events)
        before = await _indexed(memory)
        while await _indexed(memory) == before:  # or it was not at work all the time
            await asyncio.sleep(0.1)
        return taken


async def _publish(memory: Memory, events: Sequence[dict[str, object]]) -> float:
    made = [Event.model_validate(event) for event in events]
    with set_aside():
        began = time.perf_counter()
        for batch in batches(iter(made), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
            await memory.catch_up()
        return time.perf_counter() - began


async def _indexed(memory: Memory) -> int | None:
    """How far the generation is that is being built."""
    (index,) = [each for each in (await memory.status()).partitions if each.views == "index"]
    return index.building_checkpoint
