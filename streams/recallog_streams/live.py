"""The loop of a worker: it keeps views, or the index, of the assigned partitions up to date.

Two tasks run concurrently. Rounds poll batches, fold and commit them, and build the views of partitions that are not
live; only rounds change a live partition. Checks verify once a second that ledger and store are unchanged: a store that
was flushed or restored from an older copy must be detected even while no events are published.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from recallog_projections.concurrency import cancel_all
from recallog_projections.stores.store import Checkpoint, Generation, Store
from recallog_projections.tables import RowKey
from recallog_schemas import limits
from recallog_schemas.errors import (
    InvariantViolation,
    LedgerMismatch,
    Rebuilding,
    RecallogError,
    StorageUnavailable,
    ViewsTooNew,
)
from recallog_streams import dead_letters, generations
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest, RecordSource, StorageFault
from recallog_streams.partition_task import PartitionTask, TaskState, backoff
from recallog_streams.projector import Projector
from recallog_streams.stop_signal import StopSignal

POLL_SECONDS = 0.1
"""How long a poll waits for records. Records are returned as they arrive; a new assignment waits no longer than this.
"""
CHECK_SECONDS = 1.0
"""The interval between checks of ledger and store."""
ANSWER_SECONDS = 5.0
"""How long ledger and store may take to answer before the worker reports a problem. Other calls wait longer."""
IDLE_SECONDS = 30.0
"""The interval between retries of a partition whose views newer code has built."""

Result = TypeVar("Result")

_log = logging.getLogger("recallog.worker")


class LedgerReplaced(LedgerMismatch):
    """Another ledger has replaced the one that was opened. The process must open the ledger again."""


class LiveViews(Protocol):
    """What a live projector maintains."""

    @property
    def ledger(self) -> Ledger:
        """The ledger from which it is computed."""

    @property
    def rows(self) -> Store:
        """The store of its checkpoints."""

    async def projector(self, partition: int) -> Projector:
        """The projector that maintains a partition from its next preparation on."""


class ProjectedViews:
    """Views that one projector maintains in all partitions."""

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self.ledger = projector.ledger
        self.rows = projector.store

    async def projector(self, partition: int) -> Projector:
        return self._projector


class LiveProjector:
    """Keeps the views of the partitions that `source` assigns up to date until `stop` is called."""

    def __init__(
        self, views: LiveViews, source: RecordSource, *, building_at_once: int = limits.PARTITIONS_AT_ONCE
    ) -> None:
        """`building_at_once` is how many partitions are built, or caught up, at the same time."""
        self._committed: Callable[[Batch], None] = lambda batch: None
        self._ledger = views.ledger
        self._views = views
        self._identity = Projector(views.ledger, views.rows, [])
        """Checks that the views belong to the ledger."""
        self._source = source
        self._tasks: dict[int, PartitionTask] = {}
        self._stopping = StopSignal()
        self._building = asyncio.Semaphore(building_at_once)
        self._opened: Manifest | None = None
        self._problem = "not started"
        self.faults: Sequence[StorageFault] = ()
        """What the last check found wrong with the ledger's storage."""
        self._fatal: Exception | None = None
        self._mismatch: LedgerMismatch | None = None
        """The mismatch found by the last check."""
        self._suspect: set[int] = set()
        """Live partitions whose views the last check found missing or older than their task's checkpoint."""

    def on_commit(self, committed: Callable[[Batch], None]) -> None:
        """Call `committed` with each batch that the views of a live partition contain from now on."""
        self._committed = committed

    @property
    def tasks(self) -> Sequence[PartitionTask]:
        """The tasks of the assigned partitions, by partition."""
        return sorted(self._tasks.values(), key=lambda task: task.partition)

    @property
    def problems(self) -> list[str]:
        """Why its views make no progress, one sentence per problem; empty if they make progress."""
        failed = [f"partition {task.partition}: {task.why}" for task in self.tasks if task.state is TaskState.FAILED]
        return ([self._problem] if self._problem else []) + failed

    async def run(self) -> None:
        """Process records until `stop` is called. Errors that a retry cannot fix are raised: the process should end.

        Raises `LedgerReplaced` if the ledger must be opened again; no record of the other ledger was folded.
        """
        failures = 0
        try:
            while not self._stopping:
                try:
                    await self._stopping.unless(self._join())
                    failures = 0
                    await self._process_rounds()
                except RecallogError as error:
                    if not error.retryable:
                        raise
                    self._report(str(error))
                    failures += 1
                    await self._leave()
                    await self._stopping.pause(backoff(failures))
        finally:
            await self._leave()

    def stop(self) -> None:
        """Finish the current batch, leave the group, and return from `run`."""
        self._stopping.set()

    async def _join(self) -> None:
        await self._ledger.open()
        self._opened = self._opened or await self._ledger.manifest()
        try:
            await self._source.start()
        except LedgerMismatch as error:
            raise LedgerReplaced(str(error)) from error
        await self._check_manifest()  # the source has opened the ledger for itself
        self._report("")

    async def _leave(self) -> None:
        preparing = [self._drop(partition) for partition in [*self._tasks]]
        await cancel_all(*filter(None, preparing))
        await self._source.stop()

    def _drop(self, partition: int) -> "asyncio.Task[None] | None":
        task = self._tasks.pop(partition)
        if task.preparing is not None:
            task.preparing.cancel()
        return task.preparing

    async def _process_rounds(self) -> None:
        checking = asyncio.create_task(self._keep_checking(), name="recallog-check")
        try:
            while not self._stopping:
                if checking.done():
                    checking.result()
                if self._fatal is not None:
                    raise self._fatal
                await self._round()
        finally:
            await cancel_all(checking)

    async def _round(self) -> None:
        self._apply_assignment()
        self._apply_check_results()
        live = {task.partition: task for task in self._tasks.values() if task.state is TaskState.LIVE}
        batches = await self._stopping.unless(self._source.poll(list(live), POLL_SECONDS)) or ()
        for partition in self._source.take_lost():
            if partition in live:
                self._prepare(live[partition])
        if batches and not self._stopping:
            tasks = [live[batch.partition] for batch in batches]
            opened = [await self._ledger.unseal(batch) for batch in batches]
            done = await asyncio.gather(*map(self._process, tasks, opened), return_exceptions=True)
            for error in filter(None, done):
                raise error

    def _apply_assignment(self) -> None:
        assigned = self._source.list_assigned()
        for partition in self._tasks.keys() - assigned:
            self._drop(partition)
        for partition in assigned - self._tasks.keys():
            task = self._tasks[partition] = PartitionTask(partition)
            self._prepare(task)

    def _apply_check_results(self) -> None:
        for task in self._tasks.values():
            active = task.state in (TaskState.LIVE, TaskState.BUILDING)
            suspect = task.state is TaskState.LIVE and task.partition in self._suspect
            if active and self._mismatch is not None:
                self._fail(task, self._mismatch)
            elif suspect or (not active and self._mismatch is None and task.again_at <= self._now()):
                self._prepare(task)
        self._suspect.clear()

    async def _check_manifest(self) -> None:
        manifest = await _with_timeout("the ledger", self._ledger.manifest())
        if manifest != self._opened:
            raise LedgerReplaced(f"another ledger has replaced the one that was opened: {manifest}")

    async def _process(self, task: PartitionTask, batch: Batch) -> None:
        """Fold a batch of a live partition."""
        projector = task.projector
        if projector is None:
            return
        for part in projector.parts(batch):
            if task.state is not TaskState.LIVE or task.generation is None or self._stopping:
                return
            try:
                checkpoint = await projector.process(task.generation, part, task.checkpoint)
            except Rebuilding:
                self._prepare(task)  # a cutover replaced the generation, or the store lost it
            except InvariantViolation:
                raise
            except RecallogError as error:
                self._fail(task, error)
            else:
                if checkpoint is None:  # another worker was faster, or an older copy of the store was restored
                    self._prepare(task)
                    return
                task.checkpoint, task.failures = checkpoint, 0
                task.progress(checkpoint.offset + 1, part.next)
                self._committed(part)

    def _prepare(self, task: PartitionTask) -> None:
        task.state = TaskState.BUILDING
        task.preparing = asyncio.create_task(self._catch_up(task), name=f"partition-{task.partition}")

    async def _catch_up(self, task: PartitionTask) -> None:
        """Fold the active generation (a new one if there is none) up to the ledger's end, then make the task live."""
        try:
            async with self._building:
                await self._check_manifest()
                while True:
                    task.projector = projector = await self._views.projector(task.partition)
                    projector.invalidate()
                    generation = await generations.current(projector, task.partition, task.progress)
                    checkpoint = await projector.store.checkpoint(generation)
                    if checkpoint is not None:
                        break
        except ViewsTooNew as error:
            task.state, task.why, task.again_at = TaskState.IDLE, str(error), self._now() + IDLE_SECONDS
        except Exception as error:  # noqa: BLE001 - the next round raises it: nothing awaits this task
            if isinstance(error, RecallogError) and not isinstance(error, InvariantViolation | LedgerReplaced):
                self._fail(task, error)
            else:
                self._fatal = error
        else:
            if self._tasks.get(task.partition) is task and self._source.seek(task.partition, checkpoint.offset + 1):
                task.live(generation, checkpoint)

    def _fail(self, task: PartitionTask, error: RecallogError) -> None:
        if task.preparing is not None and task.preparing is not asyncio.current_task():
            task.preparing.cancel()
        task.failures += 1
        task.state, task.why = TaskState.FAILED, str(error)
        task.again_at = self._now() + backoff(task.failures)
        _log.warning("partition %d: %s: %s", task.partition, type(error).__name__, error)

    async def _keep_checking(self) -> None:
        while True:
            try:
                await self._check()
            except LedgerReplaced:
                raise
            except LedgerMismatch as error:
                self._mismatch = error
                self._report(str(error))
            except RecallogError as error:
                if not error.retryable:
                    raise
                self._report(str(error))
            else:
                self._mismatch = None
                self._report("")
            await asyncio.sleep(CHECK_SECONDS)

    async def _check(self) -> None:
        """Check that the ledger is the same and that the views are there; update the tasks' ends and dead letters."""
        await self._check_manifest()
        await _with_timeout("the store of the views", self._identity.verify_ledger_identity(0, Checkpoint()))
        self._report_faults(await _with_timeout("the ledger", self._ledger.faults()))
        ends = await _with_timeout("the ledger", self._ledger.ends())
        for task in [*self._tasks.values()]:
            task.end = max(task.end, ends[task.partition])
            generation, known, projector = task.generation, task.checkpoint, task.projector
            if task.state is not TaskState.LIVE or generation is None or known is None or projector is None:
                continue
            if not task.garbage_collected:
                await projector.store.collect_garbage(task.partition)
                task.garbage_collected = True
            if not await self._is_there(projector, task, generation, known) and task.generation is generation:
                self._suspect.add(task.partition)

    async def _is_there(
        self, projector: Projector, task: PartitionTask, generation: Generation, known: Checkpoint
    ) -> bool:
        """Whether a live generation is as far as `known`; updates the task's dead letters."""
        need = RowKey(dead_letters.COUNT.name, "")
        reading = projector.store.read(task.partition, [need], generation=generation)
        try:
            snapshot = await _with_timeout("the store of the views", reading)
        except Rebuilding:
            return False
        row = snapshot.rows[0]
        task.dead_letters = dead_letters.COUNT.decode(row).total if row else 0
        # A collection of the index may be lost although its rows exist.
        stored = await _with_timeout("the store of the views", projector.store.checkpoint(generation))
        return stored is not None and min(stored.offset, snapshot.checkpoint.offset) >= known.offset

    def _report(self, problem: str) -> None:
        if problem and problem != self._problem:
            _log.warning("%s", problem)
        self._problem = problem

    def _report_faults(self, faults: Sequence[StorageFault]) -> None:
        for fault in faults:
            if fault not in self.faults:
                _log.warning("%s", fault)
        self.faults = faults

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _with_timeout(service: str, call: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await call
    except TimeoutError:
        raise StorageUnavailable(
            f"{service} has not answered for {ANSWER_SECONDS:g} seconds. Check that it is running"
        ) from None
