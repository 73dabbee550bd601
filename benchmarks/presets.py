"""Presets of recall over 100,000 entries of one agent, through the index service of a folder.

The service embeds the questions with the real model. The entries are embedded by `AveragedEmbedder`.
"""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.conversations import ASKER, talk
from benchmarks.indexes import AveragedEmbedder, indexing
from benchmarks.measure import Goal, Measure, Setup, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_projections.index.terms import FUNCTION_WORDS
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

_SPACE = "village-0"
_APPENDED_AT_ONCE = 1_000
_ENTITIES = 10_000
_GOAL = Goal("≤", 80.0)
_WAYS: Sequence[dict[str, Any]] = ({"preset": "four_channel"}, {"preset": "hybrid"}, {"types": ["fact"]})


async def measure(setup: Setup) -> list[Measure]:
    count, folder = setup.size(100_000, 10_000), setup.folder / "presets"
    setup.report("presets: embedding the vocabulary")
    averaged = await asyncio.to_thread(AveragedEmbedder, OnnxEmbedder())
    setup.report(f"presets: publishing {count:,} entries")
    entries = list(_entries(count))
    asked = _questions(entries, setup.size(300, 100))
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for batch in batches(iter(entries), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.catch_up()
    del entries
    setup.report("presets: indexing")
    async with indexing(folder, averaged) as index:
        await generations.current((await index.views()).builder, 0, None)
    return await _asked(setup, folder, asked, f"{count:,} entries")


async def _asked(setup: Setup, folder: Path, asked: Sequence[str], what: str) -> list[Measure]:
    measures: list[Measure] = []
    async with Memory.open(Settings(home=folder, index="embedded", index_idle_seconds=0)) as memory:
        for question in asked[: len(asked) // 10]:  # starts the service, loads its model and reads files
            await memory.recall(_SPACE, ASKER, question, preset="four_channel")
        await memory.catch_up_index()
        for how in _WAYS:
            name = how.get("preset", "default, of facts")
            setup.report(f"presets: {len(asked):,} queries, {name}")
            taken = []
            with without_garbage_collection():
                for question in asked:
                    began = time.perf_counter()
                    found = await memory.recall(_SPACE, ASKER, question, **how)
                    taken.append(time.perf_counter() - began)
                    if found.degraded or not found.hits:
                        raise InvariantViolation(f"the index did not answer: {found.degraded}")
            cuts = quantiles(taken, n=100)
            measures += [
                Measure(f"recall of {what}, {name}: p50", cuts[49] * 1e3, "ms"),
                Measure(f"recall of {what}, {name}: p95", cuts[94] * 1e3, "ms", _GOAL),
            ]
    return measures


def _entries(count: int) -> Iterator[Event]:
    """Facts of 3 to 36 words, each about two of the entities."""
    rng = random.Random(8)
    for number, spoken in enumerate(talk(count)):
        about = f"{_name(number % _ENTITIES)} and {_name(rng.randrange(_ENTITIES))}"
        yield Event(
            id=f"e-{number}",
            space=_SPACE,
            agent=ASKER,
            kind="memory.retained",
            turn=spoken.turn,
            at=spoken.at,
            payload={"text": f"{about} {spoken.text}", "type": "fact"},
        )


def _questions(entries: Sequence[Event], count: int) -> list[str]:
    """Questions with the first entity and three words of an entry."""
    rng = random.Random(9)
    asked: list[str] = []
    while len(asked) < count:
        name, house, _, _, _, *rest = rng.choice(entries).text.split()
        words = [word for word in dict.fromkeys(rest) if word not in FUNCTION_WORDS]
        if len(words) >= 3:
            asked.append(f"What does {name} {house} say about the {' and the '.join(rng.sample(words, 3))}?")
    return asked


def _name(number: int) -> str:
    return f"Trader{number} House{number // 100}"
