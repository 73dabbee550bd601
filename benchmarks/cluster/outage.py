"""Seconds without progress of the views when the broker is killed and started again immediately."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import deployments
from benchmarks.cluster.deployments import Cluster
from benchmarks.cluster.events import regions
from benchmarks.measure import Measure
from recallog.components import Components
from recallog_schemas import Position
from recallog_schemas.errors import StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.ledger import Ledger

_PUBLISHED_AT_ONCE = 20
_PAUSE_SECONDS = 0.05
_POLL_SECONDS = 0.01
_BEFORE_CALLS = 20
_OUTAGE_SECONDS_MAX = 180.0


class _Outage(NamedTuple):
    """Seconds since the broker was killed."""

    broker: float
    """Until the broker answers again."""
    acknowledged: float
    """Until an event is acknowledged."""
    processed: float
    """Until the views contain an event that was published later."""


async def measure(cluster: Cluster) -> list[Measure]:
    outages = []
    deployment = await cluster.deployment("outage")
    async with deployment.opened() as components, cluster.worker(deployment) as (worker, health):
        await deployments.live(worker, health)
        for repetition in range(cluster.setup.size(3, 1)):
            cluster.setup.report(f"outage: the broker is killed, repetition {repetition + 1}")
            outages.append(await _outage(cluster, components))
            if not worker.running:
                raise worker.failed("ended")
    return [
        Measure("outage: until the broker answers", median(one.broker for one in outages), "s"),
        Measure("outage: until an event is acknowledged", median(one.acknowledged for one in outages), "s"),
        Measure("outage: until the views make progress", median(one.processed for one in outages), "s"),
        Measure("outage: until the views make progress, longest", max(one.processed for one in outages), "s"),
    ]


async def _outage(cluster: Cluster, components: Components) -> _Outage:
    """Kill the broker while events are published, start it again, and wait until the views contain a later event."""
    written: list[tuple[float, Position]] = []
    publishing = asyncio.create_task(_publish(components.ledger, written))
    try:
        async with asyncio.timeout(_OUTAGE_SECONDS_MAX):
            await _until_written(written, _BEFORE_CALLS)
            await asyncio.to_thread(cluster.kafka.kill)
            killed, known = time.perf_counter(), len(written)
            restarting = asyncio.create_task(_restarted(cluster))
            await _until_written(written, known + 1)
            acknowledged, position = written[known]
            while (await components.views.store.read(position.partition)).checkpoint.offset < position.offset:
                await asyncio.sleep(_POLL_SECONDS)
            processed = time.perf_counter()
            return _Outage(await restarting - killed, acknowledged - killed, processed - killed)
    finally:
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)


async def _until_written(written: Sequence[object], count: int) -> None:
    while len(written) < count:
        await asyncio.sleep(_POLL_SECONDS)


async def _restarted(cluster: Cluster) -> float:
    await asyncio.to_thread(cluster.kafka.start)
    return time.perf_counter()


async def _publish(ledger: Ledger, written: list[tuple[float, Position]]) -> None:
    """Publish a few events at a time, repeating until they are acknowledged; appends the time and the last position."""
    for seed in itertools.count():
        events = list(regions(_PUBLISHED_AT_ONCE, seed=seed))
        while True:
            try:
                positions = await ledger.append(events)
            except (StorageUnavailable, UnknownOutcome):
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                break
        written.append((time.perf_counter(), positions[-1]))
        await asyncio.sleep(_PAUSE_SECONDS)
