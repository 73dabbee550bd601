"""Live views: the loop of a worker, which keeps the views of whatever partitions it is assigned.

Two things go on at once. Rounds take batches and commit them, and bring partitions up that are not live; they alone
change a live partition. Looks ask once a second whether ledger and store are still what they were: a store that was
flushed, or an older copy of it, must be noticed also where nothing is published.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TypeVar

from recallog_projections.projection import RowKey
from recallog_projections.stores.store import Checkpoint
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
from recallog_streams.ledgers.ledger import Batch, Manifest
from recallog_streams.partition_task import PartitionTask, State, backoff
from recallog_streams.projector import Projector
from recallog_streams.record_source import RecordSource
from recallog_streams.stop_signal import StopSignal

POLL_SECONDS = 0.1
"""How long a poll waits for records. Those are handed out as they come; a partition is taken on so late at most."""
LOOK_SECONDS = 1.0
"""How often ledger and store are looked at."""
ANSWER_SECONDS = 5.0
"""How long they may take to answer before this worker says that it is not well. Calls themselves wait for longer."""
IDLE_SECONDS = 30.0
"""How often a partition that newer code keeps is asked for again."""

Result = TypeVar("Result")

_log = logging.getLogger("recallog.worker")


class LedgerReplaced(LedgerMismatch):
    """Another ledger has taken the place of the one that was opened: whoever goes on must open it anew."""


class LiveProjector:
    """Keeps the views of the partitions that `feed` assigns, until it is told to stop."""

    def __init__(self, projector: Projector, feed: RecordSource) -> None:
        self._projector = projector
        self._feed = feed
        self._tasks: dict[int, PartitionTask] = {}
        self._stopping = StopSignal()
        self._building = asyncio.Semaphore(limits.PARTITIONS_AT_ONCE)
        self._opened: Manifest | None = None
        self._trouble = "not started"
        self._fatal: Exception | None = None
        self._mismatch: LedgerMismatch | None = None
        """What the last look found."""
        self._doubted: set[int] = set()
        """Live partitions whose views a look has not found as they were."""

    @property
    def tasks(self) -> Sequence[PartitionTask]:
        """The partitions, as they are now."""
        return sorted(self._tasks.values(), key=lambda task: task.partition)

    @property
    def trouble(self) -> list[str]:
        """Why this worker is not well, in a sentence each; none where it is."""
        failed = [f"partition {task.partition}: {task.why}" for task in self.tasks if task.state is State.FAILED]
        return ([self._trouble] if self._trouble else []) + failed

    async def run(self) -> None:
        """Go on until `stop`. What cannot be helped by trying again is raised: the process should end.

        Raises `LedgerReplaced` where the ledger must be opened anew; nothing of the other one was folded.
        """
        failures = 0
        try:
            while not self._stopping:
                try:
                    await self._stopping.unless(self._join())
                    failures = 0
                    await self._go_on()
                except RecallogError as error:
                    if not error.retryable:
                        raise
                    self._tell(str(error))
                    failures += 1
                    await self._leave()
                    await self._stopping.pause(backoff(failures))
        finally:
            await self._leave()

    def stop(self) -> None:
        """Finish the batch in hand, leave the group, and return from `run`."""
        self._stopping.set()

    async def _join(self) -> None:
        await self._projector.ledger.open()
        self._opened = self._opened or await self._projector.ledger.manifest()
        await self._feed.start()
        self._tell("")

    async def _leave(self) -> None:
        preparing = [self._drop(partition) for partition in [*self._tasks]]
        await asyncio.gather(*filter(None, preparing), return_exceptions=True)
        await self._feed.stop()

    def _drop(self, partition: int) -> "asyncio.Task[None] | None":
        task = self._tasks.pop(partition)
        if task.preparing is not None:
            task.preparing.cancel()
        return task.preparing

    async def _go_on(self) -> None:
        looking = asyncio.create_task(self._keep_looking(), name="recallog-look")
        try:
            while not self._stopping:
                if looking.done():
                    looking.result()
                if self._fatal is not None:
                    raise self._fatal
                await self._round()
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _round(self) -> None:
        self._follow_assignment()
        self._follow_looks()
        live = {task.partition: task for task in self._tasks.values() if task.state is State.LIVE}
        batches = await self._stopping.unless(self._feed.poll(list(live), POLL_SECONDS)) or ()
        for partition in self._feed.lost():
            if partition in live:
                self._prepare(live[partition])
        of_partitions = [list(of_one) for _, of_one in groupby(batches, key=lambda batch: batch.partition)]
        if of_partitions and not self._stopping:
            concerned = [live[of_one[0].partition] for of_one in of_partitions]
            if await self._stopping.unless(self._is_same_ledger(concerned)):
                done = await asyncio.gather(*map(self._process, concerned, of_partitions), return_exceptions=True)
                for error in filter(None, done):
                    raise error

    def _follow_assignment(self) -> None:
        assigned = self._feed.assigned()
        for partition in self._tasks.keys() - assigned:
            self._drop(partition)
        for partition in assigned - self._tasks.keys():
            task = self._tasks[partition] = PartitionTask(partition)
            self._prepare(task)

    def _follow_looks(self) -> None:
        for task in self._tasks.values():
            moving = task.state in (State.LIVE, State.BUILDING)
            doubted = task.state is State.LIVE and task.partition in self._doubted
            if moving and self._mismatch is not None:
                self._fail(task, self._mismatch)
            elif doubted or (not moving and self._mismatch is None and task.again_at <= self._now()):
                self._prepare(task)
        self._doubted.clear()

    async def _is_same_ledger(self, concerned: Iterable[PartitionTask]) -> bool:
        """Whether batches come from the ledger that was opened. Asked after they were fetched: a topic that is deleted
        and made anew has new records at the old offsets, and a fetch does not tell."""
        try:
            await self._check_opened()
        except LedgerReplaced:
            raise
        except RecallogError as error:
            for task in concerned:
                self._fail(task, error)
            return False
        return True

    async def _check_opened(self) -> None:
        manifest = await _answered("the ledger", self._projector.ledger.manifest())
        if manifest != self._opened:
            raise LedgerReplaced(f"another ledger has taken the place of the one that was open: {manifest}")

    async def _process(self, task: PartitionTask, batches: Iterable[Batch]) -> None:
        """Fold batches of one live partition."""
        for batch in batches:
            if task.state is not State.LIVE or task.generation is None:
                return
            try:
                checkpoint = await self._projector.process(task.generation, batch, task.checkpoint)
            except Rebuilding:
                self._prepare(task)  # a cutover, or the store has lost it
            except InvariantViolation:
                raise
            except RecallogError as error:
                self._fail(task, error)
            else:
                if checkpoint is None:  # somebody else was faster, or an older copy of the store was restored
                    self._prepare(task)
                    return
                task.checkpoint, task.failures = checkpoint, 0
                task.progress(checkpoint.offset + 1, batch.next)

    def _prepare(self, task: PartitionTask) -> None:
        task.state = State.BUILDING
        task.preparing = asyncio.create_task(self._bring_up(task), name=f"partition-{task.partition}")

    async def _bring_up(self, task: PartitionTask) -> None:
        """Bring the active generation, or the first one, to the ledger's end; then go on with what comes."""
        try:
            async with self._building:
                await self._check_opened()
                self._projector.invalidate()
                while True:
                    generation = await generations.current(self._projector, task.partition, task.progress)
                    checkpoint = await self._projector.store.checkpoint(generation)
                    if checkpoint is not None:
                        break
        except ViewsTooNew as error:
            task.state, task.why, task.again_at = State.IDLE, str(error), self._now() + IDLE_SECONDS
        except Exception as error:  # noqa: BLE001 - rounds raise it: an error of a task would go unheard
            if isinstance(error, RecallogError) and not isinstance(error, InvariantViolation | LedgerReplaced):
                self._fail(task, error)
            else:
                self._fatal = error
        else:
            if self._tasks.get(task.partition) is task and self._feed.seek(task.partition, checkpoint.offset + 1):
                task.live(generation, checkpoint)

    def _fail(self, task: PartitionTask, error: RecallogError) -> None:
        if task.preparing is not None and task.preparing is not asyncio.current_task():
            task.preparing.cancel()
        task.failures += 1
        task.state, task.why = State.FAILED, str(error)
        task.again_at = self._now() + backoff(task.failures)
        _log.warning("partition %d: %s: %s", task.partition, type(error).__name__, error)

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self._look()
            except LedgerReplaced:
                raise
            except LedgerMismatch as error:
                self._mismatch = error
                self._tell(str(error))
            except RecallogError as error:
                if not error.retryable:
                    raise
                self._tell(str(error))
            else:
                self._mismatch = None
                self._tell("")
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        """Is it still the same ledger, where does it end, and are the views still there?"""
        ledger = self._projector.ledger
        await self._check_opened()
        await _answered("the store of the views", self._projector.verify_ledger_identity(0, Checkpoint()))
        ends = await _answered("the ledger", ledger.ends())
        for task in [*self._tasks.values()]:
            task.end = max(task.end, ends[task.partition])
            generation, known = task.generation, task.checkpoint
            if task.state is not State.LIVE or generation is None or known is None:
                continue
            if not task.garbage_collected:
                await self._projector.store.collect_garbage(task.partition)
                task.garbage_collected = True
            need = RowKey(dead_letters.COUNT.name, "")
            reading = self._projector.store.read(task.partition, [need], generation=generation)
            with suppress(Rebuilding):
                snapshot = await _answered("the store of the views", reading)
                row = snapshot.rows[0]
                task.dead_letters = dead_letters.COUNT.decode(row).total if row else 0
                if snapshot.checkpoint.offset >= known.offset:
                    continue
            if task.generation is generation:
                self._doubted.add(task.partition)

    def _tell(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            _log.warning("%s", trouble)
        self._trouble = trouble

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _answered(who: str, question: Awaitable[Result]) -> Result:
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await question
    except TimeoutError:
        raise StorageUnavailable(f"{who} has not answered for {ANSWER_SECONDS:g} seconds. Is it up?") from None
