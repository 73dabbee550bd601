"""CPU time of each step of a fold into Redis, and of each projection.

CPU time and not wall-clock time, because a worker folds one partition while another one waits for Redis: its processor
is the limit. One partition, one process.
"""

import time
from statistics import median

from redis.asyncio import Redis

from benchmarks.breakdown import Laps, TimedFold
from benchmarks.cluster.deployments import Cluster, Deployment
from benchmarks.measure import Measure, without_garbage_collection
from recallog.components import Components
from recallog_projections.stores.redis_format import pack_changes
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations
from recallog_streams.ledgers.ledger import Batch

_PARTITION = 0


class _Steps:
    """The steps of one projector, called one after the other."""

    def __init__(self, components: Components, generation: Generation) -> None:
        self._components, self._generation = components, generation
        self._checkpoint = Checkpoint()
        self.laps = Laps(time.thread_time)
        views = components.views
        self._fold = TimedFold(views.projections, views.builder, self.laps)

    async def batch(self, batch: Batch) -> None:
        laps, store = self.laps, self._components.views.store
        laps.lap("fetch from Kafka, unpack")
        changes = await self._fold.fold(self._generation, batch)
        pack_changes(changes, 0)
        laps.lap("pack changes for Lua")
        new = Checkpoint(batch.next - 1, batch.records[-1][0], b"-" * 16)
        if await store.commit(self._generation, self._checkpoint, new, changes) is not Outcome.APPLIED:
            raise InvariantViolation("another process writes the views of the benchmark")
        laps.lap("commit, without packing")
        self._checkpoint = new


async def measure(cluster: Cluster) -> list[Measure]:
    deployment = await cluster.filled()
    runs = []
    with without_garbage_collection():
        for repetition in range(cluster.setup.repetitions):
            cluster.setup.report(f"breakdown: {repetition + 1} of {cluster.setup.repetitions}")
            runs.append(await _run(deployment))
    return [Measure(f"breakdown: {step}", median(run[step] for run in runs), "µs/event") for step in runs[0]]


async def _run(deployment: Deployment) -> dict[str, float]:
    """Microseconds per event of each step, of the whole loop, and of Redis."""
    await deployment.delete_views()
    async with deployment.opened() as components, Redis.from_url(deployment.views) as client:
        end = (await components.ledger.ends())[_PARTITION]
        await client.config_resetstat()
        began, computed = time.perf_counter(), time.thread_time()
        await generations.current(components.views.builder, _PARTITION)
        whole, computed = time.perf_counter() - began, time.thread_time() - computed
        in_redis = (await client.info("commandstats"))["cmdstat_evalsha"]["usec"] / 1e6
    await deployment.delete_views()
    async with deployment.opened() as components:
        steps = await _steps(components, end)
    taken = dict(steps.laps.seconds)
    taken["commit, without packing"] -= taken["pack changes for Lua"]  # the commit packs them again
    taken["the rest: loop, event loop"] = computed - sum(taken.values())
    taken["= one partition, CPU time"] = computed
    taken["= one partition, wall-clock time"] = whole
    taken["Redis, running Lua at the same time"] = in_redis
    return {step: seconds / end * 1e6 for step, seconds in taken.items()}


async def _steps(components: Components, end: int) -> _Steps:
    builder = components.views.builder
    generation = await builder.first_generation(_PARTITION, end)
    steps = _Steps(components, generation)
    async for batch in components.ledger.read(_PARTITION, 0, end):
        for part in builder.parts(batch):
            await steps.batch(part)
    return steps
