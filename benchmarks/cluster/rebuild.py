"""A rebuild beside the live views, by one process and by two, against the raw drain of the same topic."""

import os
import time
from contextlib import AsyncExitStack
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import following, processes
from benchmarks.cluster.drain import drained
from benchmarks.cluster.live import caught_up
from benchmarks.cluster.places import Cluster, Place
from benchmarks.measure import Goal, Measure, interleaved, ratio

_RATIO = Goal("≥", 0.2)


class _Used(NamedTuple):
    """Percent of one core while two processes rebuild: what limits them."""

    rebuilders: float
    redis: float
    kafka: float


async def measure(cluster: Cluster) -> list[Measure]:
    place = await cluster.filled()
    cluster.setup.say("rebuild: a worker builds the views that are to be replaced")
    await caught_up(cluster, place)
    used: list[_Used] = []
    rates = await interleaved(
        cluster.setup,
        "rebuild: raw drain, one process, two",
        {
            "drain": lambda: drained(place),
            "one": lambda: _rebuilt(cluster, place, 1, []),
            "two": lambda: _rebuilt(cluster, place, 2, used),
        },
    )
    return [
        Measure("rebuild: raw drain", median(rates["drain"]), "events/s"),
        Measure("rebuild: one process", median(rates["one"]), "events/s"),
        Measure("rebuild: two processes", median(rates["two"]), "events/s"),
        Measure("rebuild: one process ÷ raw drain", ratio(rates["one"], rates["drain"]), ""),
        Measure("rebuild: two processes ÷ raw drain", ratio(rates["two"], rates["drain"]), "", _RATIO),
        Measure("rebuild: two processes ÷ one", ratio(rates["two"], rates["one"]), ""),
        Measure("rebuild: cores", float(os.cpu_count() or 1), ""),
        Measure("rebuild: two processes use of one core", median(one.rebuilders for one in used), "%"),
        Measure("rebuild: Redis uses meanwhile", median(one.redis for one in used), "%"),
        Measure("rebuild: Kafka uses meanwhile", median(one.kafka for one in used), "%"),
    ]


async def _rebuilt(cluster: Cluster, place: Place, count: int, used: list[_Used]) -> float:
    """Events per second of `count` processes that rebuild together, once they have started; notes what they used."""
    servers = (cluster.redis.pid, cluster.kafka.pid)
    async with place.opened() as parts, AsyncExitStack() as stack:
        before = await following.active_ids(parts)
        rebuilders = [
            await stack.enter_async_context(
                processes.running(
                    "recallog_service", "rebuild", "--json", log=cluster.log("rebuild"), settings=place.environment
                )
            )
            for _ in range(count)
        ]
        began, of_servers = time.perf_counter(), [processes.cpu_seconds(pid) for pid in servers]
        samples = await following.follow(parts, place.records, rebuilders, before=before)
        took = time.perf_counter() - began
        seconds = [samples.taken[-1].used_seconds - samples.taken[0].used_seconds]
        seconds += [processes.cpu_seconds(pid) - earlier for pid, earlier in zip(servers, of_servers, strict=True)]
        used.append(_Used(*(100 * one / took for one in seconds)))
        for rebuilder in rebuilders:
            await rebuilder.ended(following.FOLD_SECONDS_MAX)
    return samples.rate()
