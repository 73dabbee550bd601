"""Live views: the loop of a worker, which keeps the views of whatever partitions it is assigned.

Each partition is in one of four states:

building   its generation is brought to the ledger's end first: after a start, a rebalance, a cutover, a loss
live       batches are folded as they come
stuck      something is wrong that may pass, or that an operator must see to; `why` says what; tried again
idle       newer code has built its views: this worker has nothing more to do for it
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from recallog_projections.stores.store import Checkpoint, Generation
from recallog_schemas import limits
from recallog_schemas.errors import InvariantViolation, LedgerMismatch, Rebuilding, RecallogError, ViewsTooNew
from recallog_streams import dead_letters, generations
from recallog_streams.ledger import Batch
from recallog_streams.projector import Projector

POLL_SECONDS = 0.1
"""How long a poll waits for records. Those are handed out as they come; a partition is taken on so late at most."""
LOOK_SECONDS = 1.0
"""How often the ledger is looked at: is it still the same one, and where does it end?"""
BACKOFF_SECONDS_MIN = 0.1
BACKOFF_SECONDS_MAX = 5.0
IDLE_SECONDS = 30.0
"""How often a partition that newer code keeps is asked for again."""

_log = logging.getLogger("recallog.worker")


class Feed(ABC):
    """Batches of the partitions that this worker is assigned."""

    @abstractmethod
    async def start(self) -> None:
        """Join the others. Raises `StorageUnavailable`."""

    @abstractmethod
    async def stop(self) -> None:
        """Leave, so that others take over at once."""

    @abstractmethod
    def assigned(self) -> frozenset[int]:
        """The partitions of this worker as of now."""

    @abstractmethod
    def seek(self, partition: int, offset: int) -> bool:
        """Go on at `offset`; False where the partition is not assigned any more."""

    @abstractmethod
    async def poll(self, partitions: Collection[int], wait_seconds: float) -> Sequence[Batch]:
        """What follows in `partitions` (all of which were sought), in order, each batch where the last one ended.

        Raises `StorageUnavailable`.
        """

    @abstractmethod
    def lost(self) -> Collection[int]:
        """Partitions that could not go on where they should, since this was asked last: the ledger is not as it was."""


class State(Enum):
    BUILDING = "building"
    LIVE = "live"
    STUCK = "stuck"
    IDLE = "idle"


@dataclass(slots=True)
class Kept:
    """One assigned partition."""

    partition: int
    state: State = State.BUILDING
    why: str = ""
    generation: Generation | None = None
    checkpoint: Checkpoint | None = None
    decided: int | None = None
    """How many offsets its views have decided, those still being built too; None while that is not known."""
    end: int = 0
    """The ledger's end as of the last look."""
    parked: int | None = None
    """Its dead letters as of the last look."""
    failures: int = 0
    again_at: float = 0.0
    """When a stuck or idle one is tried again (`time.monotonic`)."""
    preparing: "asyncio.Task[None] | None" = field(default=None, repr=False)

    @property
    def lag(self) -> int | None:
        """Offsets still to decide; None while that is not known."""
        return None if self.decided is None else max(0, self.end - self.decided)

    def progress(self, done: int, total: int) -> None:
        """Its views are being built."""
        self.decided, self.end = done, max(self.end, total)


class LiveProjector:
    """Keeps the views of the partitions that `feed` assigns, until it is told to stop."""

    def __init__(
        self,
        projector: Projector,
        feed: Feed,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._projector = projector
        self._feed = feed
        self._clock = clock
        self._kept: dict[int, Kept] = {}
        self._stopping = asyncio.Event()
        self._building = asyncio.Semaphore(limits.PARTITIONS_AT_ONCE)
        self._trouble = "not started"
        self._fatal: Exception | None = None
        self._looked_at = 0.0

    @property
    def kept(self) -> Sequence[Kept]:
        """The partitions, as they are now."""
        return sorted(self._kept.values(), key=lambda kept: kept.partition)

    @property
    def trouble(self) -> list[str]:
        """Why this worker is not well, in a sentence each; none where it is."""
        stuck = [f"partition {kept.partition}: {kept.why}" for kept in self.kept if kept.state is State.STUCK]
        return ([self._trouble] if self._trouble else []) + stuck

    async def run(self) -> None:
        """Go on until `stop`. What cannot be helped by trying again is raised: the process should end."""
        try:
            await self._start()
            while not self._stopping.is_set():
                await self._round()
        finally:
            preparing = [kept.preparing for kept in self._kept.values() if kept.preparing is not None]
            for task in preparing:
                task.cancel()
            await asyncio.gather(*preparing, return_exceptions=True)
            await self._feed.stop()

    def stop(self) -> None:
        """Finish the batch in hand, leave the group, and return from `run`."""
        self._stopping.set()

    async def _start(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                await self._projector.ledger.open()
                await self._feed.start()
            except RecallogError as error:
                if not error.retryable:
                    raise
                self._trouble = str(error)
                failures += 1
                _log.warning("%s; trying again", error)
                await self._pause(_backoff(failures))
            else:
                self._trouble = ""
                return

    async def _round(self) -> None:
        if self._fatal is not None:
            raise self._fatal
        self._follow_assignment()
        now = self._clock()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            await self._look()
        for kept in self._kept.values():
            if kept.state in (State.STUCK, State.IDLE) and kept.again_at <= now:
                self._prepare(kept)
        live = [kept.partition for kept in self._kept.values() if kept.state is State.LIVE]
        if not live:
            await self._pause(POLL_SECONDS / 2)
            return
        try:
            batches = await self._feed.poll(live, POLL_SECONDS)
        except RecallogError as error:
            if not error.retryable:
                raise
            self._trouble = str(error)
            await self._pause(BACKOFF_SECONDS_MIN)
            return
        for partition in self._feed.lost():
            self._prepare(self._kept[partition])
        of_partitions = [list(of_one) for _, of_one in groupby(batches, key=lambda batch: batch.partition)]
        await asyncio.gather(*(self._decide(self._kept[of_one[0].partition], of_one) for of_one in of_partitions))

    def _follow_assignment(self) -> None:
        assigned = self._feed.assigned()
        for partition in self._kept.keys() - assigned:
            kept = self._kept.pop(partition)
            if kept.preparing is not None:
                kept.preparing.cancel()
        for partition in assigned - self._kept.keys():
            kept = self._kept[partition] = Kept(partition)
            self._prepare(kept)

    async def _look(self) -> None:
        """Is it still the same ledger, and where does it end?"""
        try:
            await self._projector.recognise(0, Checkpoint())
            ends = await self._projector.ledger.ends()
        except LedgerMismatch as error:
            self._trouble = str(error)
            for kept in self._kept.values():
                if kept.preparing is not None:
                    kept.preparing.cancel()
                self._stick(kept, error)
            return
        except RecallogError as error:
            if not error.retryable:
                raise
            self._trouble = str(error)
            return
        self._trouble = ""
        for kept in self._kept.values():
            kept.end = max(kept.end, ends[kept.partition])
            if kept.state is State.LIVE and kept.generation is not None:
                with suppress(RecallogError):  # the next batch finds out
                    kept.parked = (await dead_letters.count(self._projector.store, kept.generation)).parked

    async def _decide(self, kept: Kept, batches: Iterable[Batch]) -> None:
        """Fold batches of one live partition."""
        for batch in batches:
            if kept.state is not State.LIVE or kept.generation is None:
                return
            try:
                checkpoint = await self._projector.decide(kept.generation, batch, kept.checkpoint)
            except Rebuilding:
                self._prepare(kept)  # a cutover, or the store has lost it
            except InvariantViolation:
                raise
            except RecallogError as error:
                self._stick(kept, error)
            else:
                if checkpoint is None:  # somebody else was faster, or an older copy of the store was restored
                    self._prepare(kept)
                    return
                kept.checkpoint, kept.failures = checkpoint, 0
                kept.progress(checkpoint.offset + 1, batch.next)

    def _prepare(self, kept: Kept) -> None:
        kept.state = State.BUILDING
        kept.preparing = asyncio.create_task(self._bring_up(kept), name=f"partition-{kept.partition}")

    async def _bring_up(self, kept: Kept) -> None:
        """Bring the active generation, or the first one, to the ledger's end; then go on with what comes."""
        try:
            async with self._building:
                while True:
                    generation = await generations.current(self._projector, kept.partition, kept.progress)
                    checkpoint = await self._projector.store.checkpoint(generation)
                    if checkpoint is not None:
                        break
                await self._projector.recognise(kept.partition, checkpoint)
        except ViewsTooNew as error:
            kept.state, kept.why, kept.again_at = State.IDLE, str(error), self._clock() + IDLE_SECONDS
            return
        except Exception as error:  # noqa: BLE001 - `run` raises it: an error of a task would go unheard
            if isinstance(error, RecallogError) and not isinstance(error, InvariantViolation):
                self._stick(kept, error)
            else:
                self._fatal = error
            return
        kept.generation, kept.checkpoint, kept.why = generation, checkpoint, ""
        kept.decided = checkpoint.offset + 1
        if self._kept.get(kept.partition) is kept and self._feed.seek(kept.partition, checkpoint.offset + 1):
            kept.state = State.LIVE

    def _stick(self, kept: Kept, error: RecallogError) -> None:
        kept.failures += 1
        kept.state, kept.why = State.STUCK, str(error)
        kept.again_at = self._clock() + _backoff(kept.failures)
        _log.warning("partition %d: %s: %s", kept.partition, type(error).__name__, error)

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return


def _backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return min(BACKOFF_SECONDS_MAX, BACKOFF_SECONDS_MIN * 2.0 ** min(failures - 1, 10))
