"""The newest records of a ledger that does not push them: a worker polls for them.

In a group of workers, the one that holds the lock has all partitions. The others try to get the lock once a second, and
take over when its holder ends. A worker that has lost the lock without noticing does no harm: commits are fenced.
"""

import asyncio
import math
from collections.abc import Collection
from contextlib import AsyncExitStack, aclosing

import msgspec

from recallog_schemas.errors import LockTimeout
from recallog_streams.databases.database import Lock
from recallog_streams.ledgers.ledger import Batch, Ledger, RecordSource

STANDBY_SECONDS = 1.0
"""How often a worker without partitions tries to get the lock."""


class PollingSource(RecordSource):
    """Reads `ledger` itself while this process holds `lock`, which must not wait."""

    def __init__(self, ledger: Ledger, lock: Lock) -> None:
        self._ledger, self._lock = ledger, lock
        self._held = AsyncExitStack()
        self._partitions = frozenset[int]()
        self._next: dict[int, int] = {}
        self._lost = set[int]()
        self._again_at = -math.inf

    async def start(self) -> None:
        await self._ledger.open()
        self._next, self._lost = {}, set()

    async def stop(self) -> None:
        self._partitions = frozenset()
        await self._held.aclose()

    def list_assigned(self) -> frozenset[int]:
        return self._partitions

    def seek(self, partition: int, offset: int) -> bool:
        if partition not in self._partitions:
            return False
        self._next[partition] = offset
        return True

    async def poll(self, partitions: Collection[int], wait_seconds: float) -> list[Batch]:
        if not self._partitions:
            await self._take_over()
        ends = await self._ledger.ends() if partitions else []
        self._lost |= {each for each in partitions if ends[each] < self._next[each]}
        behind = [each for each in partitions if ends[each] > self._next[each]]
        if not behind:
            await asyncio.sleep(wait_seconds)
        return [await self._read(each, ends[each]) for each in behind]

    async def _take_over(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._again_at:
            return
        self._again_at = now + STANDBY_SECONDS
        try:
            await self._held.enter_async_context(self._lock())
        except LockTimeout:
            return  # another worker has it
        self._partitions = frozenset(range(await self._ledger.partitions()))

    async def _read(self, partition: int, end: int) -> Batch:
        async with aclosing(self._ledger.read(partition, self._next[partition], end)) as batches:  # type: ignore[type-var]
            batch: Batch = await anext(batches)
        self._next[partition] = batch.next
        return msgspec.structs.replace(batch, records=batch.stored, sealed=None)  # as they arrive elsewhere

    def take_lost(self) -> frozenset[int]:
        lost, self._lost = frozenset(self._lost), set()
        return lost
