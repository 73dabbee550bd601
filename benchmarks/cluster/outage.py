"""Seconds without news in the views when the broker is killed and started again at once."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import places
from benchmarks.cluster.events import regions
from benchmarks.cluster.places import Cluster
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
    """Seconds from the kill until …"""

    broker: float
    """… the broker answers again."""
    acknowledged: float
    """… an event is acknowledged."""
    moving: float
    """… the views have decided an event that was published since."""


async def measure(cluster: Cluster) -> list[Measure]:
    outages = []
    place = await cluster.place("outage")
    async with place.opened() as parts, cluster.worker(place) as (worker, health):
        await places.live(worker, health)
        for repetition in range(cluster.setup.size(3, 1)):
            cluster.setup.say(f"outage: the broker is killed, repetition {repetition + 1}")
            outages.append(await _outage(cluster, parts))
            if not worker.running:
                raise worker.failed("ended")
    return [
        Measure("outage: until the broker answers", median(one.broker for one in outages), "s"),
        Measure("outage: until an event is acknowledged", median(one.acknowledged for one in outages), "s"),
        Measure("outage: until views move", median(one.moving for one in outages), "s"),
        Measure("outage: until views move, the longest", max(one.moving for one in outages), "s"),
    ]


async def _outage(cluster: Cluster, parts: Components) -> _Outage:
    """Kill the broker while events come, start it at once, and wait until the views hold what came since."""
    written: list[tuple[float, Position]] = []
    publishing = asyncio.create_task(_publish(parts.ledger, written))
    try:
        async with asyncio.timeout(_OUTAGE_SECONDS_MAX):
            await _more(written, _BEFORE_CALLS)
            await asyncio.to_thread(cluster.kafka.kill)
            killed, known = time.perf_counter(), len(written)
            restarting = asyncio.create_task(_restarted(cluster))
            await _more(written, known + 1)
            acknowledged, position = written[known]
            while (await parts.views.store.read(position.partition)).checkpoint.offset < position.offset:
                await asyncio.sleep(_POLL_SECONDS)
            moving = time.perf_counter()
            return _Outage(await restarting - killed, acknowledged - killed, moving - killed)
    finally:
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)


async def _more(written: Sequence[object], count: int) -> None:
    while len(written) < count:
        await asyncio.sleep(_POLL_SECONDS)


async def _restarted(cluster: Cluster) -> float:
    await asyncio.to_thread(cluster.kafka.start)
    return time.perf_counter()


async def _publish(ledger: Ledger, written: list[tuple[float, Position]]) -> None:
    """Publish a few events at a time, again and again until they are there; notes when, and where the last one is."""
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
