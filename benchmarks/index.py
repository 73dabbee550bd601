"""Indexing: compared with the model alone, a rebuild with the same texts, and its effect on publishing and folding.

The index is built in this process in the same way as in its service: one thread embeds, one writes. The model is real.
"""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.conversations import ASKER, talk
from benchmarks.indexes import delete_index, indexing
from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, seconds, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

_SHARE = Goal("≥", 0.8)
_REUSE = Goal("≥", 10)
_APPENDED_AT_ONCE = 1_000
_THREADS = 1
"""As in the service, which leaves the other processors to queries."""
_START_SECONDS = 60.0


async def measure(setup: Setup) -> list[Measure]:
    return [*await _speed(setup), *await _with_and_without_service(setup)]


class _RecordingEmbedder(Embedder):
    """Records the batches that the model was given."""

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self.model, self.dimension, self.token_vectors = model.model, model.dimension, model.token_vectors
        self.recorded: list[Sequence[Passage]] = []

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        self.recorded.append(passages)
        return self._model.embed(passages)

    def close(self) -> None:
        return


async def _speed(setup: Setup) -> list[Measure]:
    count, folder = setup.size(2_000, 400), setup.folder / "index"
    setup.report(f"index: appending {count:,} events")
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for batch in batches(talk(count), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
    model = OnnxEmbedder(threads=_THREADS)
    model.embed([Passage("the first call loads the model")])
    recording = _RecordingEmbedder(model)
    with without_garbage_collection():
        taken = await interleaved(
            setup,
            f"index: first build of {count:,} events, rebuild with the same texts, and the model alone",
            {
                "first": lambda: _first_build(folder, recording),
                "rebuild": lambda: _rebuild(folder, recording),
                "model": lambda: _model_alone(model, recording.recorded),
            },
        )
    return [
        Measure("index: first build", median(count / run for run in taken["first"]), "events/s"),
        Measure("index: the model alone", median(count / run for run in taken["model"]), "texts/s"),
        Measure("index: first build ÷ the model alone", ratio(taken["model"], taken["first"]), "", _SHARE),
        Measure("index: rebuild with the same texts", median(count / run for run in taken["rebuild"]), "events/s"),
        Measure("index: rebuild ÷ first build", ratio(taken["first"], taken["rebuild"]), "", _REUSE),
    ]


async def _first_build(folder: Path, embedder: _RecordingEmbedder) -> float:
    delete_index(folder)
    embedder.recorded.clear()
    async with indexing(folder, embedder) as index:
        views = await index.views()
        return await seconds(generations.current(views.builder, 0))


async def _rebuild(folder: Path, embedder: _RecordingEmbedder) -> float:
    """Rebuilds the index that `_first_build` has built."""
    batches_before = len(embedder.recorded)
    async with indexing(folder, embedder) as index:
        views = await index.views()
        taken = await seconds(generations.rebuild(views.builder, 0))
    if len(embedder.recorded) != batches_before:
        raise InvariantViolation("unchanged texts were embedded again")
    return taken


async def _model_alone(model: Embedder, recorded: Sequence[Sequence[Passage]]) -> float:
    """Embeds the same texts in the same batches, also in a thread."""

    def embed() -> None:
        for passages in recorded:
            model.embed(passages)

    return await seconds(asyncio.to_thread(embed))


async def _with_and_without_service(setup: Setup) -> list[Measure]:
    """Publishing and folding, with and without a service that indexes a backlog at the same time."""
    count, folder = setup.size(20_000, 5_000), setup.folder / "beside"
    setup.report(f"index: creating {count:,} events")
    # Each run gives them new ids, since an event with a known id is not appended.
    events = [event.model_dump(exclude={"id"}) for event in talk(count, 50)]
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        await _publish(memory, events)  # the backlog of the first service
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
    async with Memory.open(Settings(home=folder, index="embedded", index_idle_seconds=0)) as memory:
        await memory.catch_up()
        await memory.recall("village-0", ASKER, "Who is there?")  # starts the service
        before, deadline = await _indexed(memory), time.monotonic() + _START_SECONDS
        while await _indexed(memory) == before:
            if time.monotonic() > deadline:
                raise InvariantViolation("the index service makes no progress")
            await asyncio.sleep(0.1)
        taken = await _publish(memory, events)
        before = await _indexed(memory)
        while await _indexed(memory) == before:  # checks that the service was still indexing
            await asyncio.sleep(0.1)
        return taken


async def _publish(memory: Memory, events: Sequence[dict[str, object]]) -> float:
    made = [Event.model_validate(event) for event in events]
    with without_garbage_collection():
        began = time.perf_counter()
        for batch in batches(iter(made), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
            await memory.catch_up()
        return time.perf_counter() - began


async def _indexed(memory: Memory) -> int | None:
    """The checkpoint of the generation that is being built."""
    (index,) = [each for each in (await memory.admin.status()).partitions if each.views == "index"]
    return index.building_checkpoint
