"""Access of readers to the semantic index: its active generation, its progress, and waiting for it."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from recallog_projections.concurrency import gather_limited
from recallog_projections.index.unread import unread
from recallog_projections.threads import run_in_own_thread
from recallog_schemas.errors import IndexUnavailable, Rebuilding, StorageError, ViewsBehind

if TYPE_CHECKING:
    from recallog.index.indexer import Indexer, IndexSnapshot
    from recallog.index.messages import HealthReport
    from recallog_projections.stores.store import Store
    from recallog_streams.ledgers.ledger import Ledger

PROBLEM_SECONDS = 5.0
"""How long `wait` waits for an index that makes no progress and reports a problem."""
_POLL_SECONDS = 0.05


class SemanticIndex(ABC):
    """The index as readers use it."""

    @abstractmethod
    async def open(self, partition: int) -> "IndexSnapshot":
        """The active generation. Raises `IndexUnavailable`, also if another process serves the index.

        While the first generation is being built, the error is raised at once and reports the progress.
        """

    @property
    @abstractmethod
    def rows(self) -> "Store":
        """The store of the index's checkpoints."""

    @property
    @abstractmethod
    def ledger(self) -> "Ledger": ...

    @abstractmethod
    def exists(self) -> bool:
        """Whether an index may exist. In the embedded form, the first query creates it."""

    @abstractmethod
    async def size_bytes(self) -> int:
        """The size of the index on disk, as far as it is known without starting a process."""

    @abstractmethod
    async def begin(self) -> bool:
        """Start the process that serves the index, without waiting for it. Returns whether the index has such a
        process.

        Raises `IndexUnavailable` if it cannot be started.
        """

    @abstractmethod
    async def start(self) -> "HealthReport":
        """Make sure that the index is served, and return whether it follows the ledger.

        It waits for a busy service. Raises `IndexUnavailable` if the index is not served after `START_SECONDS`, or if
        the service neither answers nor computes.
        """

    @abstractmethod
    async def health(self) -> "HealthReport | None":
        """Whether the index follows the ledger; None if nothing maintains it now, or if that is not known here.

        Does not start a process. Raises `IndexUnavailable` if the index does not answer.
        """

    @abstractmethod
    def note_damage(self, partition: int, found: str) -> None:
        """Note that a query has found damage in the index of a partition. It is rebuilt if this process maintains
        it."""

    @abstractmethod
    async def close(self) -> None:
        """Release the index, and end the service process if this process has started it for itself."""

    async def wait(
        self, partition: int, offset: int, seconds: float, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Wait until the index has processed `offset`.

        Raises `ViewsBehind` if it makes no progress for `seconds`, or reports a problem after `PROBLEM_SECONDS` without
        progress, and `IndexUnavailable`. Texts of a batch that is not committed yet count as progress. `progress` is
        called with (records processed, records to process) at the beginning, when more is processed, and at the end.
        """
        committed, embedded_before, since = -1, 0, time.monotonic()
        shown: int | None = None
        moved: tuple[int, int] | None = None
        while True:
            health = await self.start()
            try:
                processed, of_all, read = await self._read_processed(partition)
                is_built = (await self.rows.pointer(partition)).active is not None
            except StorageError as error:
                raise IndexUnavailable(f"the state of the index cannot be read: {error}") from error
            if processed >= offset and is_built:
                if progress is not None:
                    progress(offset + 1, offset + 1)
                return
            if of_all != committed or health.indexed < embedded_before:
                committed, embedded_before = of_all, health.indexed
            seen = of_all + health.indexed - embedded_before
            if (read, seen) != moved:  # the first pass over a backlog computes no vectors
                moved, since = (read, seen), time.monotonic()
            if seen != shown:
                shown = seen
                if progress is not None:
                    progress(min(processed + health.indexed - embedded_before, offset) + 1, offset + 1)
            idle_seconds = time.monotonic() - since
            problem = health.problem if idle_seconds > PROBLEM_SECONDS else ""
            if idle_seconds > seconds or problem:
                raise ViewsBehind(
                    f"the index of partition {partition} has stopped at {processed:,}, before {offset:,}"
                    + (
                        f": {problem}"
                        if problem
                        else ". Does a worker maintain it? Start one: recallog worker --only index"
                    )
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _read_processed(self, partition: int) -> tuple[int, int, int]:
        """The last offset processed in one partition, and the sum over all: an indexer reads partitions in turn.

        Both exclude the events whose vectors are not computed yet. The third number is the sum with these events.
        """
        rows = self.rows

        async def read_processed(number: int) -> tuple[int, int]:
            pointer = await rows.pointer(number)
            shown = pointer.active or pointer.building
            checkpoint = await rows.checkpoint(shown) if shown is not None else None
            if shown is None or checkpoint is None:
                return -1, -1
            try:
                return checkpoint.offset - len(await unread(rows, shown)), checkpoint.offset
            except Rebuilding:  # another process has just replaced it
                return -1, -1

        found = await gather_limited(read_processed, range(len(await self.ledger.ends())))
        of_all, read = map(sum, zip(*found, strict=True))
        return found[partition][0], of_all, read


class IndexInProcess(SemanticIndex):
    """The index in processes that call its engine: any process if the engine is a server, else the service process."""

    def __init__(self, indexer: "Callable[[], Indexer]") -> None:
        """The indexer is created on first use. A process that never uses the index does not import any of it."""
        self._make_indexer = indexer

    @cached_property
    def indexer(self) -> "Indexer":
        """The indexer, which also provides the projection group for rebuilds and verification."""
        return self._make_indexer()

    async def open(self, partition: int) -> "IndexSnapshot":
        return await self.indexer.open(partition)

    @property
    def rows(self) -> "Store":
        return self.indexer.rows

    @property
    def ledger(self) -> "Ledger":
        return self.indexer.ledger

    def exists(self) -> bool:
        return True

    async def size_bytes(self) -> int:
        return await self.indexer.rows.size_bytes() + (await self.indexer.engine.size_bytes() or 0)

    async def begin(self) -> bool:
        return False

    async def start(self) -> "HealthReport":
        from recallog.index.messages import HealthReport

        return HealthReport(self.indexer.problem, self.indexer.indexed, self.indexer.repair)

    async def health(self) -> "HealthReport | None":
        await self.indexer.engine.collections()  # raises if the engine is not there
        return await self.start()

    def note_damage(self, partition: int, found: str) -> None:
        self.indexer.note_damage(partition, found)

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # all parts, even if one of them fails or the caller is cancelled
            if "indexer" in self.__dict__:
                closing.push_async_callback(self.indexer.rows.close)
                closing.push_async_callback(self.indexer.engine.close)
                closing.push_async_callback(run_in_own_thread, self.indexer.close)
