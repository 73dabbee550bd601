"""Time from publishing an event to an answer that contains it, at 1,000 events per second in 200 spaces."""

import asyncio
import time
from collections.abc import Iterator

from benchmarks.cluster import deployments
from benchmarks.cluster.deployments import Cluster
from benchmarks.cluster.events import regions
from benchmarks.measure import Goal, Measure, percentiles, without_garbage_collection
from recallog import Event, Memory

RATE = 1_000
_SAMPLED_ONE_IN = 20
_WARM_SECONDS = 3
_GOAL_MS = Goal("≤", 50)


class _Taken:
    """Seconds of each sampled event since the call of `publish`."""

    def __init__(self) -> None:
        self.acknowledged: list[float] = []
        self.answered: list[float] = []


async def measure(cluster: Cluster) -> list[Measure]:
    length_seconds = cluster.setup.size(30, 8)
    deployment = await cluster.deployment("latency", regions(cluster.setup.size(40_000, 10_000), seed=2))
    count = RATE * (length_seconds + _WARM_SECONDS)
    made = list(regions(count, seed=3))
    async with cluster.worker(deployment) as (worker, health), Memory.open(deployment.settings) as memory:
        await deployments.live(worker, health)
        cluster.setup.report(f"latency: {RATE:,} events/s for {length_seconds} s")
        with without_garbage_collection():
            await _publish(memory, iter(made[: RATE * _WARM_SECONDS]), _Taken())
            taken, used = _Taken(), worker.cpu_seconds()
            began = time.perf_counter()
            await _publish(memory, iter(made[RATE * _WARM_SECONDS :]), taken)
            took = time.perf_counter() - began
            used = worker.cpu_seconds() - used
    p50, p99 = percentiles("latency: publish to queryable", taken.answered)
    return [
        Measure("latency: published", RATE * length_seconds / took, "events/s"),
        *percentiles("latency: publish alone", taken.acknowledged),
        p50,
        Measure(p99.name, p99.value, p99.unit, _GOAL_MS),
        Measure("latency: worst", max(taken.answered) * 1e3, "ms"),
        Measure("latency: CPU use of the worker", 100 * used / took, "%"),
    ]


async def _publish(memory: Memory, made: Iterator[Event], taken: _Taken) -> None:
    """Publish each event at its time, whether or not earlier ones are acknowledged."""
    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for number, event in enumerate(made):
            while (early := began + number / RATE - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            sampled = number % _SAMPLED_ONE_IN == 0
            tasks.create_task(_sampled(memory, event, taken) if sampled else _published(memory, event))


async def _published(memory: Memory, event: Event) -> None:
    await memory.publish(event)


async def _sampled(memory: Memory, event: Event, taken: _Taken) -> None:
    began = time.perf_counter()
    position = await memory.publish(event)
    taken.acknowledged.append(time.perf_counter() - began)
    await memory.episodic(event.space, event.agent, after=position)
    taken.answered.append(time.perf_counter() - began)
