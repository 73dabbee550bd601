"""A rebuild beside the live views, by one and by two processes, compared with the raw drain of the same topic."""

import os
import time
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import processes, sampling
from benchmarks.cluster.deployments import Cluster, Deployment
from benchmarks.cluster.drain import drained
from benchmarks.cluster.live import caught_up
from benchmarks.measure import Goal, Measure, interleaved, ratio

_RATIO = Goal("≥", 0.2)


class _Used(NamedTuple):
    """CPU use in percent of one core while two workers rebuild."""

    rebuilders: float
    redis: float
    kafka: float


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    cluster.setup.report("rebuild: a worker builds the views that will be replaced")
    await caught_up(cluster, deployment)
    used: list[_Used] = []
    rates = await interleaved(
        cluster.setup,
        "rebuild: raw drain, one process, two",
        {
            "drain": lambda: drained(deployment),
            "one": lambda: _rebuilt(cluster, deployment, 1, []),
            "two": lambda: _rebuilt(cluster, deployment, 2, used),
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
        Measure("rebuild: CPU use of two processes", median(one.rebuilders for one in used), "%"),
        Measure("rebuild: CPU use of Redis", median(one.redis for one in used), "%"),
        Measure("rebuild: CPU use of Kafka", median(one.kafka for one in used), "%"),
    ]


async def _rebuilt(cluster: Cluster, deployment: Deployment, count: int, used: list[_Used]) -> float:
    """Events per second of a rebuild in `count` processes, without their start; appends their CPU use."""
    servers = (cluster.redis.pid, cluster.kafka.pid)
    arguments = ("rebuild", "--workers", str(count), "--json")
    log, settings = cluster.log("rebuild"), deployment.environment
    async with deployment.opened() as components:
        before = await sampling.active_ids(components)
        async with processes.running("recallog_service", *arguments, log=log, settings=settings) as rebuilder:
            began, of_servers = time.perf_counter(), [processes.cpu_seconds(pid) for pid in servers]
            samples = await sampling.sample_until(components, deployment.records, [rebuilder], before=before)
            took = time.perf_counter() - began
            seconds = [samples.taken[-1].used_seconds - samples.taken[0].used_seconds]
            seconds += [processes.cpu_seconds(pid) - earlier for pid, earlier in zip(servers, of_servers, strict=True)]
            used.append(_Used(*(100 * one / took for one in seconds)))
            await rebuilder.ended(sampling.FOLD_SECONDS_MAX)
    return samples.rate()
