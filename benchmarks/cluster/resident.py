"""Memory of a worker process while it folds two million events: it must not grow with the ledger."""

import asyncio
from statistics import median

from benchmarks.cluster import following, places
from benchmarks.cluster.places import Cluster
from benchmarks.measure import Goal, Measure

_GROWTH = Goal("≤", 5)


async def measure(cluster: Cluster) -> list[Measure]:
    """Published and folded at the same time."""
    count = cluster.setup.size(2_000_000, 200_000)
    place = await cluster.place("resident")
    cluster.setup.say(f"resident: a worker folds {count:,} events")
    taken: list[tuple[int, int]] = []
    async with (
        place.opened() as parts,
        cluster.publisher(place, count, seed=11) as publisher,
        cluster.worker(place) as (worker, health),
    ):
        await places.live(worker, health)
        publisher.go()
        samples = await following.follow(
            parts, count, [worker], note=lambda done: taken.append((done, worker.resident_bytes()))
        )
        await asyncio.sleep(0)
    half, end = _around(taken, count // 2, count), _around(taken, count, count)
    return [
        Measure("resident: at half of them", half / 2**20, "MiB"),
        Measure(f"resident: at {count:,} events", end / 2**20, "MiB"),
        Measure("resident: most", max(resident for _, resident in taken) / 2**20, "MiB"),
        Measure("resident: growth in the last half", 100 * (end / half - 1), "%", _GROWTH),
        Measure("resident: folded meanwhile", samples.rate(), "events/s"),
    ]


def _around(taken: list[tuple[int, int]], done: int, count: int) -> float:
    """Bytes, the median of a twentieth of the way before `done`: single samples jump with the batches in hand."""
    return median(resident for at, resident in taken if done - count / 20 <= at <= done)
