"""The prompts of agents that share a large space, with memories recalled through the index service of its folder."""

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import quantiles

from benchmarks.conversations import questions, talk
from benchmarks.indexes import AveragedEmbedder, indexing
from benchmarks.measure import Goal, Measure, Setup, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations

AGENTS = 1_000

_P50, _P95 = Goal("≤", 15.0), Goal("≤", 30.0)
_APPENDED_AT_ONCE = 1_000


async def measure(setup: Setup) -> list[Measure]:
    count, folder = setup.size(100_000, 10_000), setup.folder / "context"
    setup.report(f"context: publishing {count:,} events of {AGENTS:,} agents")
    events = list(_crowd(count))
    async with Memory.open(Settings(home=folder, index="off")) as memory:
        for batch in batches(iter(events), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.catch_up()
    setup.report("context: building the index")
    averaged = await asyncio.to_thread(AveragedEmbedder, OnnxEmbedder())
    async with indexing(folder, averaged) as index:
        await generations.current((await index.views()).builder, 0)
    asked = questions(events, setup.size(300, 100))
    setup.report(f"context: {len(asked):,} prompts")
    taken = await _prompts(folder, asked)
    cuts = quantiles(taken, n=100)
    name = f"context of one of {AGENTS:,} agents, {count:,} events:"
    return [
        Measure(f"{name} p50", cuts[49] * 1e3, "ms", _P50),
        Measure(f"{name} p95", cuts[94] * 1e3, "ms", _P95),
    ]


def _crowd(count: int) -> Iterator[Event]:
    """A conversation in one space. Half of the events are shared; the others are private to one of the agents."""
    rng = random.Random(8)
    for event in talk(count):
        yield event.model_copy(update={"agent": f"agent-{rng.randrange(AGENTS)}"})


async def _prompts(folder: Path, asked: Sequence[tuple[str, str]]) -> list[float]:
    """Seconds of each prompt that has recalled memories; weak ones are left out of some."""
    rng = random.Random(9)
    async with Memory.open(Settings(home=folder, index="embedded")) as memory:
        for space, question in asked[: len(asked) // 10]:  # starts the service, loads its model and reads files
            await memory.recall(space, f"agent-{rng.randrange(AGENTS)}", question)
        taken = []
        with without_garbage_collection():
            for space, question in asked:
                agent = f"agent-{rng.randrange(AGENTS)}"
                began = time.perf_counter()
                prompt = await memory.context(space, agent, query=question)
                seconds = time.perf_counter() - began
                if "RECALLED" in prompt.text:
                    taken.append(seconds)
        if len(taken) < len(asked) / 2:
            raise InvariantViolation(f"only {len(taken)} of {len(asked)} prompts had recalled memories")
        return taken
