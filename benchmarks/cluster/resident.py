"""Resident memory of a worker process while it folds two million events; it must not grow with the ledger."""

import asyncio
from statistics import median

from benchmarks.cluster import deployments, sampling
from benchmarks.cluster.deployments import Cluster
from benchmarks.measure import Goal, Measure

_GROWTH = Goal("≤", 5)


async def measure(cluster: Cluster) -> list[Measure]:
    """Publishes and folds at the same time."""
    count = cluster.setup.size(2_000_000, 200_000)
    deployment = await cluster.deployment("resident")
    cluster.setup.report(f"resident: a worker folds {count:,} events")
    taken: list[tuple[int, int]] = []
    async with (
        deployment.opened() as components,
        cluster.publisher(deployment, count, seed=11) as publisher,
        cluster.worker(deployment) as (worker, health),
    ):
        await deployments.live(worker, health)
        publisher.go()
        samples = await sampling.sample_until(
            components, count, [worker], note=lambda done: taken.append((done, worker.resident_bytes()))
        )
        await asyncio.sleep(0)
    half, end = _around(taken, count // 2, count), _around(taken, count, count)
    return [
        Measure("resident: at half of the events", half / 2**20, "MiB"),
        Measure(f"resident: at {count:,} events", end / 2**20, "MiB"),
        Measure("resident: maximum", max(resident for _, resident in taken) / 2**20, "MiB"),
        Measure("resident: growth in the last half", 100 * (end / half - 1), "%", _GROWTH),
        Measure("resident: fold rate", samples.rate(), "events/s"),
    ]


def _around(taken: list[tuple[int, int]], done: int, count: int) -> float:
    """The median of the resident bytes before `done`, over a twentieth of the records: single samples vary too much."""
    return median(resident for at, resident in taken if done - count / 20 <= at <= done)
