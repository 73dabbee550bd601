"""Catching up with a large part of a ledger: in several processes, and with pauses for other programs."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from recallog_projections.concurrency import cancel_all
from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, Fetched
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import limits
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.parallel import partitions
from recallog_streams.parallel.partitions import Open, PartitionWorkers, WorkerParts
from recallog_streams.parallel.processes import WorkerLost, WorkersUnusable
from recallog_streams.parallel.workers import BatchTooLarge, Workers, start_workers
from recallog_streams.progress import Progress
from recallog_streams.projector import GenerationMoved, Projector
from recallog_streams.verify import Verification, verify

_log = logging.getLogger("recallog.fold")

_PARTITIONS_OF_WORKER = 2
"""A worker folds one partition while another one waits for Kafka or Redis."""

Commit = asyncio.Task[Checkpoint | None]
"""The checkpoint after a commit; None if another process has moved it."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(slots=True)
class ParallelCatchUp:
    """Catches up as `Projector.catch_up` does, and verifies.

    Where a ledger numbers its spaces, workers fold the records of different spaces. This process reads the ledger,
    extends its chain and commits the folds of all workers for a batch in one step, while they fold the next batch.
    Where other processes can open the ledger, workers catch up with different partitions. In both cases the rows, also
    after an interruption, are the same as with one process.

    The workers of partitions end with the block of `running`.
    """

    make: Callable[[], Sequence[Projection]] | None = None
    """Makes the projections in another process, if it can be pickled; None: they are folded in this process."""
    workers: int = 1
    """How many processes fold; 1: this one."""
    throttle: float = 0.0
    """The share of the time in which it pauses."""
    open: Open | None = None
    """Opens the projector in another process, if it can be pickled; None: other processes cannot open it."""
    _running: AsyncExitStack | None = None
    _pool: PartitionWorkers | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ParallelCatchUp"]:
        """Returns itself. Workers that it starts in the block end with the block."""
        async with AsyncExitStack() as self._running:
            yield self

    @property
    def partitions_at_once(self) -> int:
        """How many partitions keep the workers busy."""
        return max(limits.PARTITIONS_AT_ONCE, _PARTITIONS_OF_WORKER * self.workers)

    async def __call__(
        self, projector: Projector, generation: Generation, until: int, progress: Progress | None = None
    ) -> Checkpoint:
        """Process all records below `until`. Raises `GenerationGone` or `LedgerMismatch`."""
        begin = (await projector.resume(generation)).offset + 1
        try:
            if self.make is not None and projector.ledger.numbers_spaces:
                if self.workers > 1 and until - begin > limits.PARALLEL_RECORDS_MIN:
                    await self._in_processes(self.make, projector, generation, until, progress)
            elif (pool := await self._partition_workers(projector, generation.partition, begin)) is not None:
                await pool.call(partial(_catch_up, generation, until, self.throttle), progress)
        except WorkersUnusable as error:
            _report(error)
        return await self._in_process(projector, generation, until, progress)

    async def verify(
        self, projector: Projector, projections: Sequence[Projection], generation: Generation, progress: Progress | None
    ) -> Verification:
        """As `verify.verify`; in another process where workers work on partitions."""
        try:
            if (pool := await self._partition_workers(projector, generation.partition, 0)) is not None:
                return await pool.call(partial(_verify, generation, self.throttle), progress)
        except WorkersUnusable as error:
            _report(error)
        # The fresh fold is in the memory of this process, so that no worker can open it.
        catch_up = ParallelCatchUp(self.make, self.workers, self.throttle)
        return await verify(projector, projections, generation, progress, catch_up)

    async def _partition_workers(self, projector: Projector, partition: int, begin: int) -> PartitionWorkers | None:
        """The workers, if it is worthwhile to start them for the records of a partition from `begin` on."""
        if self.workers == 1 or self.open is None or self._running is None or not projector.ledger.folded_by_workers:
            return None
        ends = await projector.ledger.ends()
        if len(ends) == 1 or len(ends) * (ends[partition] - begin) <= limits.PARALLEL_RECORDS_MIN:
            return None
        async with self._starting:
            if self._pool is None and self.open is not None:
                starting = partitions.open_workers(min(self.workers, len(ends)), self.open, projector.fold.code)
                try:
                    self._pool = await self._running.enter_async_context(starting)
                except WorkersUnusable:
                    self.open = None
                    raise
            return self._pool

    async def _in_process(
        self, projector: Projector, generation: Generation, until: int, progress: Progress | None
    ) -> Checkpoint:
        if not self.throttle:
            return await projector.catch_up(generation, until, progress)

        def report(done: int, _: int) -> None:
            if progress is not None:
                progress(done, until)

        while True:
            checkpoint, began = await projector.resume(generation), time.monotonic()
            if checkpoint.offset + 1 >= until:
                return checkpoint
            records = limits.CLUSTER_BATCH_RECORDS if projector.store.remote else limits.READ_BATCH_RECORDS
            upto = min(until, checkpoint.offset + 1 + records)
            await projector.catch_up(generation, upto, report)
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        if self.throttle:
            await asyncio.sleep((time.monotonic() - began) * self.throttle / (1 - self.throttle))

    async def _in_processes(
        self,
        make: Callable[[], Sequence[Projection]],
        projector: Projector,
        generation: Generation,
        until: int,
        progress: Progress | None,
    ) -> None:
        """Process all records below `until`. Raises `WorkersUnusable` as well."""
        unique_ids, store = projector.ledger.unique_ids, projector.store
        async with start_workers(self.workers, make, projector.fold, unique_ids=unique_ids, store=store) as workers:
            await self.catch_up_with(workers, projector, generation, until, progress)

    async def catch_up_with(
        self,
        workers: Workers,
        projector: Projector,
        generation: Generation,
        until: int,
        progress: Progress | None = None,
    ) -> None:
        """Process all records below `until` with workers that run. Raises `WorkersUnusable` as well."""
        while (checkpoint := await projector.resume(generation)).offset + 1 < until:
            workers.forget(complete=checkpoint.offset < 0)
            run = _Run(projector, generation, until, progress, workers)
            try:
                await run.process_from(checkpoint, self._pause)
            except GenerationMoved:
                continue
            except BatchTooLarge:
                await projector.catch_up(generation, run.following, progress)


def _report(error: WorkersUnusable) -> None:
    if isinstance(error, WorkerLost):
        _log.warning("%s; the fold continues in one process", error)
    else:
        _log.info("the fold continues in one process: %s", error)


async def _catch_up(
    generation: Generation, until: int, throttle: float, opened: WorkerParts, progress: Progress
) -> None:
    """Catch up in a worker."""
    await ParallelCatchUp(throttle=throttle)(opened.projector, generation, until, progress)


async def _verify(generation: Generation, throttle: float, opened: WorkerParts, progress: Progress) -> Verification:
    """Verify in a worker."""
    return await ParallelCatchUp(throttle=throttle).verify(*opened, generation, progress)


@dataclass(slots=True)
class _Run:
    """Batches that workers fold one after the other, while no other process moves the checkpoint."""

    projector: Projector
    generation: Generation
    until: int
    progress: Progress | None
    workers: Workers
    following: int = 0
    """The offset after the batch that is folded."""

    async def process_from(self, checkpoint: Checkpoint, pause: Callable[[float], Awaitable[None]]) -> None:
        """Raises `Moved`, and the errors of `Workers.fold`; the previous batch is then committed."""
        commit = asyncio.create_task(_nothing_to_commit(checkpoint))
        batches = self.projector.ledger.read(self.generation.partition, checkpoint.offset + 1, self.until)
        try:
            async with aclosing(batches):  # type: ignore[type-var]
                async for read in batches:
                    for batch in self.projector.parts(read):
                        began, self.following = time.monotonic(), batch.next
                        commit = asyncio.create_task(self._commit(batch, *await self._fold_batch(batch, commit), began))
                        await pause(began)
            await _await_commit(commit)
        finally:
            await cancel_all(commit)

    async def _fold_batch(self, batch: Batch, commit: Commit) -> tuple[Checkpoint, Changes]:
        """The checkpoint before a batch and its changes. Rows that workers lack are read after the last commit."""

        async def fetch(row_keys: Sequence[RowKey], log_names: Sequence[LogName]) -> Fetched:
            return await self.projector.fetch(self.generation, await _await_commit(commit), row_keys, log_names)

        try:
            changes = await self.workers.fold(batch, fetch)
        finally:
            checkpoint = await _await_commit(commit)
        return checkpoint, changes

    async def _commit(self, batch: Batch, checkpoint: Checkpoint, changes: Changes, began: float) -> Checkpoint | None:
        new, outcome = await self.projector.commit(self.generation, batch, checkpoint, changes, began)
        if outcome is not Outcome.APPLIED:
            return None
        if self.progress is not None:
            self.progress(batch.next, self.until)
        return new


async def _nothing_to_commit(checkpoint: Checkpoint) -> Checkpoint | None:
    return checkpoint


async def _await_commit(commit: Commit) -> Checkpoint:
    """The checkpoint after a commit. Raises `Moved`."""
    checkpoint = await asyncio.shield(commit)
    if checkpoint is None:
        raise GenerationMoved
    return checkpoint
