"""Recall through the index service of a folder: latency, exactness, and memory and disk space per memory.

The service embeds the questions with the real model. The memories, whose embedding would take minutes, are embedded by
`AveragedEmbedder`. Everything else is as in production.
"""

import asyncio
import json
import shutil
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

import numpy as np

from benchmarks.conversations import ASKER, questions, talk
from benchmarks.indexes import AveragedEmbedder, RecordingEngine, engine_folder, indexing
from benchmarks.measure import Goal, Measure, Setup, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings, layout
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Search
from recallog_projections.index.store import collection_of
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

_DISK = Goal("≤", 4.0)
_EXACT = Goal("≥", 0.98)
_NEAREST = 10
_APPENDED_AT_ONCE = 1_000
_FOLDERS = 3
"""The number of folders that are open at the same time."""


@dataclass(frozen=True, slots=True)
class _Size:
    memories: int
    spaces: int
    p50_max: float
    """The goals, in milliseconds."""
    p95_max: float

    @property
    def words(self) -> str:
        return f"{self.memories:,} in " + ("one space" if self.spaces == 1 else f"{self.spaces:,} spaces")


async def measure(setup: Setup) -> list[Measure]:
    sizes = [_Size(10_000, 1, 15, 25)]
    if not setup.quick:
        sizes += [_Size(100_000, 1, 30, 50), _Size(100_000, 1_000, 15, 25)]
    model = OnnxEmbedder()
    setup.report("recall: embedding the vocabulary")
    averaged = await asyncio.to_thread(AveragedEmbedder, model)
    measures: list[Measure] = []
    for size in sizes:
        measures += await _measured(setup, size, averaged, model)
    return measures


async def _measured(setup: Setup, size: _Size, averaged: AveragedEmbedder, model: OnnxEmbedder) -> list[Measure]:
    folder = setup.folder / f"recall-{size.memories}-{size.spaces}"
    setup.report(f"recall: publishing {size.words}")
    events = list(talk(size.memories, size.spaces))
    asked = questions(events, setup.size(300, 100))
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for batch in batches(iter(events), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.catch_up()
    exact = await _indexed(setup, folder, size, averaged, model, asked)
    del events
    setup.report(f"recall: {len(asked):,} queries")
    taken, memory_bytes = await _asked(folder, asked)
    of_folders = await _asked_at_once(folder, asked) if size.memories == 10_000 else {}
    cuts = quantiles(taken, n=100)
    name = f"recall of {size.words}:"
    return [
        Measure(f"{name} p50", cuts[49] * 1e3, "ms", Goal("≤", size.p50_max)),
        Measure(f"{name} p95", cuts[94] * 1e3, "ms", Goal("≤", size.p95_max)),
        Measure(f"{name} nearest {_NEAREST} that exact search finds", exact, "", _EXACT),
        Measure(f"{name} service, resident", memory_bytes["VmRSS"] / 2**20, "MiB"),
        Measure(f"{name} service, resident without file pages", memory_bytes["RssAnon"] / 2**20, "MiB"),
        Measure(f"{name} service, resident per memory", memory_bytes["VmRSS"] / 2**10 / size.memories, "KiB"),
        *(
            Measure(f"{_FOLDERS} folders of {size.words}, {each}", of_folders[each] / 2**20, "MiB")
            for each in of_folders
        ),
        Measure(f"{name} disk per memory", _blocks_bytes(folder / layout.INDEX) / 2**10 / size.memories, "KiB", _DISK),
    ]


async def _indexed(
    setup: Setup,
    folder: Path,
    size: _Size,
    averaged: AveragedEmbedder,
    model: OnnxEmbedder,
    asked: Sequence[tuple[str, str]],
) -> float:
    """Build the index of a folder; the fraction of the nearest memories that its engine finds."""
    reported = 0

    def progress(done: int, end: int) -> None:
        nonlocal reported
        if done >= reported + end // 10:
            reported = done
            setup.report(f"recall: indexing {size.words}: {100 * done // end} %")

    engine = RecordingEngine(engine_folder(folder))
    async with indexing(folder, averaged, engine) as index:
        views = await index.views()
        generation = await generations.current(views.builder, 0, progress)
        setup.report(f"recall: comparing searches with exact ones, {size.words}")
        vectors = model.embed([Passage(question, is_query=True) for _, question in asked])
        shares = []
        for (space, _), embedding in zip(asked, vectors, strict=True):
            search = Search(Filter(space, (ASKER, EVERYBODY)), _NEAREST, dense=embedding.vector)
            (hits,) = await engine.search(collection_of(generation), [search])
            ids, matrix = engine.vectors_of(space)
            nearest = {ids[number] for number in np.argsort(-(matrix @ embedding.vector))[:_NEAREST]}
            shares.append(len(nearest & {hit.id for hit in hits}) / len(nearest))
        return fmean(shares)


async def _asked(folder: Path, asked: Sequence[tuple[str, str]]) -> tuple[list[float], dict[str, int]]:
    """Seconds of each query, and the memory of the service after them."""
    async with Memory.open(Settings(home=folder, index="embedded", index_idle_seconds=0)) as memory:
        for space, question in asked[: len(asked) // 10]:  # starts the service, loads its model and reads files
            await memory.recall(space, ASKER, question)
        await memory.publish(_last_event(asked[0][0]))  # loads the model that the service uses for indexing
        await memory.catch_up_index()
        taken = []
        with without_garbage_collection():
            for space, question in asked:
                began = time.perf_counter()
                found = await memory.recall(space, ASKER, question)
                taken.append(time.perf_counter() - began)
                if found.degraded or found.index_behind or not found.hits:
                    raise InvariantViolation(f"the index did not answer: {found.degraded}")
        return taken, _memory_bytes(int(json.loads((folder / layout.INDEX_ADDRESS).read_bytes())["pid"]))


async def _asked_at_once(folder: Path, asked: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Bytes of memory of the processes that serve copies of a folder, after queries of each."""
    copies = [folder.with_name(f"{folder.name}-copy-{number}") for number in range(_FOLDERS)]
    async with AsyncExitStack() as closing:
        for copy in copies:
            shutil.copytree(folder, copy)
            closing.callback(shutil.rmtree, copy)
            settings = Settings(home=copy, index="embedded", index_idle_seconds=0)
            memory = await closing.enter_async_context(Memory.open(settings))
            for space, question in asked:
                await memory.recall(space, ASKER, question)
            await memory.publish(_last_event(asked[0][0]))
            await memory.catch_up_index()
        pids = {int(json.loads((copy / layout.INDEX_ADDRESS).read_bytes())["pid"]) for copy in copies}
        found = [_memory_bytes(pid) for pid in pids]
    return {
        "processes resident": sum(each["VmRSS"] for each in found),
        "processes resident without file pages": sum(each["RssAnon"] for each in found),
    }


def _last_event(space: str) -> Event:
    return Event(space=space, agent=ASKER, kind="agent.spoke", payload={"text": "That was all for today."})


def _memory_bytes(process: int) -> dict[str, int]:
    """Bytes of memory of a process, by Linux' names of them; zeros on other systems."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    sizes = {line.partition(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.endswith(" kB")}
    return {name: sizes.get(name, 0) for name in ("VmRSS", "RssAnon")}


def _blocks_bytes(folder: Path) -> int:
    """Disk space of the files. It is less than their length, because an engine's files are sparse."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
