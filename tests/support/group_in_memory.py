"""A consumer group in memory: delivers the records of a `MemoryLedger` while its partition is assigned."""

import asyncio
from collections.abc import Callable, Collection, Sequence

from recallog_schemas.errors import StorageUnavailable
from recallog_streams.ledgers.ledger import Batch, RecordSource
from recallog_streams.ledgers.memory import MemoryLedger


def never() -> bool:
    return False


class InMemoryGroup(RecordSource):
    """One member. A test assigns and revokes partitions; it can make polls fail, or deliver outdated batches."""

    def __init__(
        self,
        ledger: MemoryLedger,
        *,
        batch_records: int = 3,
        assigned: bool = True,
        fails: Callable[[], bool] = never,
        is_stale: Callable[[], bool] = never,
    ) -> None:
        self._ledger = ledger
        self._batch_records = batch_records
        self._fails = fails
        self._is_stale = is_stale
        self.assignment = frozenset({0}) if assigned else frozenset()
        self.running = False
        self.starts = 0
        self._opened = ""
        """The name of the ledger at the start."""
        self.next: int | None = None
        """The next offset; None if there was no seek since the assignment."""
        self.no_longer: set[int] = set()
        """Partitions that the next call of `lost` returns."""

    @property
    def _name(self) -> str:
        return str(getattr(self._ledger, "name", ""))

    def assign(self, *partitions: int) -> None:
        if partitions == () or not self.assignment:
            self.next = None
        self.assignment = frozenset(partitions)

    async def start(self) -> None:
        if self._fails():
            raise StorageUnavailable("the group is away")
        self.running, self.next, self._opened = True, None, self._name
        self.starts += 1

    async def stop(self) -> None:
        self.running = False

    def list_assigned(self) -> frozenset[int]:
        return self.assignment if self.running else frozenset()

    def seek(self, partition: int, offset: int) -> bool:
        if partition not in self.list_assigned():
            return False
        self.next = offset
        return True

    async def poll(self, partitions: Collection[int], wait_seconds: float) -> Sequence[Batch]:
        await asyncio.sleep(0)
        if self._fails():
            raise StorageUnavailable("the group is away")
        values = self._ledger.values() if self._name == self._opened else []
        if not partitions or self.next is None or not self.assignment or self.next >= len(values):
            await asyncio.sleep(wait_seconds)
            return []
        start = max(0, self.next - 2) if self._is_stale() else self.next
        self.next = min(len(values), start + self._batch_records)
        return [Batch(0, start, self.next, list(enumerate(values[start : self.next], start)))]

    def take_lost(self) -> Collection[int]:
        lost, self.no_longer = self.no_longer, set()
        return lost
