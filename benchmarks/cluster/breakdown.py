"""CPU time of each step of a fold into Redis: the projector's steps, each run separately over whole batches.

CPU time and not wall-clock time, because a worker folds one partition while another one waits for Redis: its processor
is the limit. One partition, one process.
"""

import gc
import time
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from redis.asyncio import Redis

from benchmarks.cluster.deployments import Cluster, Deployment
from benchmarks.measure import Measure, without_garbage_collection
from recallog.components import Components
from recallog_projections.rows import Rows
from recallog_projections.stores.redis_format import pack_changes
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Event, Record, codec, kinds
from recallog_schemas.errors import InvariantViolation
from recallog_streams import generations
from recallog_streams.identity import Identity
from recallog_streams.ledgers.ledger import Batch

_PARTITION = 0


class _Laps:
    """CPU seconds of this thread per step, in the order of the steps."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._last = time.thread_time()

    def lap(self, step: str) -> None:
        now = time.thread_time()
        self.seconds[step] += now - self._last
        self._last = now


class _Steps:
    """The steps of one projector, called one after the other."""

    def __init__(self, components: Components, generation: Generation) -> None:
        self._components = components
        self._generation = generation
        self._identity = Identity()
        self._rows: Rows = components.views.builder.fold.new_rows()
        self._checkpoint = Checkpoint()
        self.laps = _Laps()

    async def batch(self, batch: Batch) -> None:
        laps, ledger, store = self.laps, self._components.ledger, self._components.views.store
        laps.lap("fetch from Kafka, unpack")
        events = [codec.decode(data) for _, data in batch.records]
        laps.lap("decode")
        for event, key in zip(events, batch.keys or (), strict=True):
            if key != event.space.encode() or ledger.partition_of(event.space) != batch.partition:
                raise InvariantViolation("an event of the benchmark is in another partition")
        records = [_record(batch, n, event) for n, event in enumerate(events)]
        laps.lap("check key and partition")
        for needs in self._identity.batches_of_needs(self._rows, records):
            missing = self._rows.missing(needs)
            laps.lap("identity: buckets needed")
            await self._fetch(missing)
            laps.lap("identity: buckets from Redis")
        for record in records:
            if not self._identity.first_seen(self._rows, record.event, record.offset):
                raise InvariantViolation("an event of the benchmark occurs twice")
        laps.lap("identity: digests, buckets")
        missing = self._rows.missing(self._needs(records))
        laps.lap("needs of the projections")
        await self._fetch(missing)
        laps.lap("rows from Redis")
        for projection in self._components.views.projections:
            kinds_of_it = getattr(projection, "kinds", None)
            for record in records:
                if kinds_of_it is None or record.event.kind in kinds_of_it:
                    projection.apply(self._rows, record)
            laps.lap(f"apply {projection.name}")
        self._rows.commit_record()
        changes = self._rows.changes()
        laps.lap("encode changes")
        pack_changes(changes, 0)
        laps.lap("pack changes for Lua")
        new = Checkpoint(batch.next - 1, batch.records[-1][0], b"-" * 16)
        if await store.commit(self._generation, self._checkpoint, new, changes) is not Outcome.APPLIED:
            raise InvariantViolation("another process writes the views of the benchmark")
        laps.lap("commit, without packing")
        self._checkpoint = new

    def _needs(self, records: Sequence[Record]) -> list[RowKey]:
        return [
            need
            for projection in self._components.views.projections
            for record in records
            if (of_it := getattr(projection, "kinds", None)) is None or record.event.kind in of_it
            for need in projection.needs(record)
        ]

    async def _fetch(self, needs: Sequence[RowKey]) -> None:
        if not needs:
            return
        rows = self._rows
        of_rows = [need for need in needs if not rows.is_log(need)]
        of_logs = [need for need in needs if rows.is_log(need)]
        totals = [(LogName(*need[:3]), 0) for need in of_logs]
        snapshot = await self._components.views.store.read(_PARTITION, of_rows, totals, self._generation)
        for need, data in zip(of_rows, snapshot.rows, strict=True):
            rows.load(need, data)
        for need, tail in zip(of_logs, snapshot.logs, strict=True):
            rows.load_total(need, tail.total)


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
    # Can be negative: the loop computes the needs of the projections only if many rows are missing.
    taken["the rest: loop, event loop"] = computed - sum(taken.values())
    taken["= one partition, CPU time"] = computed
    taken["= one partition, wall-clock time"] = whole
    taken["Redis, running Lua at the same time"] = in_redis
    return {step: seconds / end * 1e6 for step, seconds in taken.items()}


async def _steps(components: Components, end: int) -> _Steps:
    builder = components.views.builder
    generation = await builder.first_generation(_PARTITION, end)
    steps = _Steps(components, generation)
    gc.disable()  # as the projector does around a batch
    try:
        async for batch in components.ledger.read(_PARTITION, 0, end):
            await steps.batch(batch)
    finally:
        gc.enable()
    return steps


def _record(batch: Batch, number: int, event: Event) -> Record:
    offset, data = batch.records[number]
    return Record(batch.partition, offset, event, data, kinds.kind_of(event.kind).is_episode)
