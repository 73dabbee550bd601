"""Queries of an agent's recent events in a large space, and reads of an event that was just published."""

import random
import time

from benchmarks.measure import Measure, Setup, percentiles, without_garbage_collection
from benchmarks.workload import batches, crowd
from recallog import Memory

_SPACE = "crowd"
_AGENTS = 100


async def measure(setup: Setup) -> list[Measure]:
    events = setup.size(100_000, 10_000)
    async with Memory.open(setup.folder / "query") as memory:
        setup.report(f"query: appending {events:,} events to one space")
        for batch in batches(crowd(events, _AGENTS, space=_SPACE), 1_000):
            await memory.publish_many(batch)
        setup.report("query: building the views")
        await memory.episodic(_SPACE, "agent-0")
        with without_garbage_collection():
            asked = await _ask(setup, memory, setup.size(2_000, 500))
            written = await _read_your_writes(setup, memory, setup.size(500, 100))
    return [*percentiles("episodic", asked), *percentiles("publish, then episodic(after=)", written)]


async def _ask(setup: Setup, memory: Memory, queries: int) -> list[float]:
    setup.report(f"query: {queries:,} queries")
    rng, taken = random.Random(3), []
    for _ in range(queries):
        agent = f"agent-{rng.randrange(_AGENTS)}"
        began = time.perf_counter()
        await memory.episodic(_SPACE, agent)
        taken.append(time.perf_counter() - began)
    return taken


async def _read_your_writes(setup: Setup, memory: Memory, writes: int) -> list[float]:
    setup.report(f"query: publish, then episodic(after=), {writes:,} times")
    taken = []
    for event in crowd(writes, _AGENTS, space=_SPACE, seed=4):
        began = time.perf_counter()
        position = await memory.publish(event)
        await memory.episodic(_SPACE, event.agent, after=position)
        taken.append(time.perf_counter() - began)
    return taken
