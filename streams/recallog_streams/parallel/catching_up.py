"""Catching up with much of a ledger: in several processes, and with pauses in which others have the machine."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import limits
from recallog_streams.concurrency import ended
from recallog_streams.fold import Fetched
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.parallel.workers import BatchTooLarge, WorkerLost, Workers, WorkersUnusable, started
from recallog_streams.progress import Progress
from recallog_streams.projector import Moved, Projector

_log = logging.getLogger("recallog.fold")

Commit = asyncio.Task[Checkpoint | None]
"""The checkpoint after a commit; None if another process has moved it."""


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class ParallelCatchUp:
    """Catches up as `Projector.catch_up` does.

    Workers fold the records of different spaces. This process reads the ledger, extends its chain and commits what all
    workers have folded of a batch in one step, while they fold the next batch. So the rows, and what an interruption
    leaves, are those of one process.
    """

    make: Callable[[], Sequence[Projection]] | None
    """Makes the projections in another process, if it can be pickled; None: they are folded in this process."""
    workers: int = 1
    """How many processes fold; 1: this one."""
    throttle: float = 0.0
    """The share of the time in which it pauses."""

    async def __call__(
        self, projector: Projector, generation: Generation, until: int, progress: Progress | None = None
    ) -> Checkpoint:
        """Process all records below `until`. Raises `GenerationGone` or `LedgerMismatch`."""
        checkpoint = await projector.resume(generation)
        is_worthwhile = projector.ledger.numbers_spaces and until - checkpoint.offset > limits.PARALLEL_RECORDS_MIN
        if self.workers > 1 and self.make is not None and is_worthwhile:
            try:
                await self._in_processes(self.make, projector, generation, until, progress)
            except WorkerLost as error:
                _log.warning("%s; the fold goes on in one process", error)
            except WorkersUnusable as error:
                _log.info("the fold goes on in one process: %s", error)
        return await self._in_process(projector, generation, until, progress)

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
            upto = min(until, checkpoint.offset + 1 + limits.READ_BATCH_RECORDS)
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
        async with started(self.workers, make, projector.fold, unique_ids=unique_ids, store=store) as workers:
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
            except Moved:
                continue
            except BatchTooLarge:
                await projector.catch_up(generation, run.following, progress)


@dataclass(slots=True)
class _Run:
    """Batches that workers fold one after the other, as long as nobody else moves the checkpoint."""

    projector: Projector
    generation: Generation
    until: int
    progress: Progress | None
    workers: Workers
    following: int = 0
    """The offset after the batch that is folded."""

    async def process_from(self, checkpoint: Checkpoint, pause: Callable[[float], Awaitable[None]]) -> None:
        """Raises `Moved`, and as `Workers.fold`; the batch before is committed then."""
        commit = asyncio.create_task(_nothing_to_commit(checkpoint))
        batches = self.projector.ledger.read(self.generation.partition, checkpoint.offset + 1, self.until)
        try:
            async with aclosing(batches):  # type: ignore[type-var]
                async for read in batches:
                    for batch in self.projector.parts(read):
                        began, self.following = time.monotonic(), batch.next
                        commit = asyncio.create_task(self._commit(batch, *await self._folded(batch, commit), began))
                        await pause(began)
            await _committed(commit)
        finally:
            await ended(commit)

    async def _folded(self, batch: Batch, commit: Commit) -> tuple[Checkpoint, Changes]:
        """The checkpoint before a batch and its changes. Rows that workers lack are read after the last commit."""

        async def fetch(row_keys: Sequence[RowKey], log_names: Sequence[LogName]) -> Fetched:
            return await self.projector.fetch(self.generation, await _committed(commit), row_keys, log_names)

        try:
            changes = await self.workers.fold(batch, fetch)
        finally:
            checkpoint = await _committed(commit)
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


async def _committed(commit: Commit) -> Checkpoint:
    """The checkpoint after a commit. Raises `Moved`."""
    checkpoint = await asyncio.shield(commit)
    if checkpoint is None:
        raise Moved
    return checkpoint
