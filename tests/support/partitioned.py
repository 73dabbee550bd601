"""A ledger in memory with several partitions, and a store that records what is read from it."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Chunk, Generation, ReadResult, Scan
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Event, Position
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest
from recallog_streams.ledgers.memory import MemoryLedger


class PartitionedLedger(Ledger):
    """The number at the end of a space's name is its partition: "village-1" is in partition 1."""

    unique_ids = True

    def __init__(self, partitions: int) -> None:
        self._parts = [MemoryLedger() for _ in range(partitions)]

    async def open(self) -> None:
        return None

    async def manifest(self) -> Manifest:
        return Manifest(ledger="in parts", partitions=len(self._parts), partitioner="by name")

    async def append(self, events: Sequence[Event], appended: Sequence[int] | None = None) -> list[Position]:
        positions = []
        for number, event in enumerate(events):
            partition = self.partition_of(event.space)
            (position,) = await self._parts[partition].append([event], appended and appended[number : number + 1])
            positions.append(Position(partition, position.offset))
        return positions

    async def ends(self) -> list[int]:
        return [(await part.ends())[0] for part in self._parts]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        async for batch in self._parts[partition].read(partition, start, until, space=space):
            yield msgspec.structs.replace(batch, partition=partition)

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        partition = self.partition_of(space)
        found = await self._parts[partition].find(space, id)
        return None if found is None else Position(partition, found.offset)

    def partition_of(self, space: str) -> int:
        return int(space.rpartition("-")[2]) % len(self._parts)

    async def size_bytes(self) -> int:
        return sum([await part.size_bytes() for part in self._parts])

    async def close(self) -> None:
        return None


class CountingStore(MemoryStore):
    """Counts the calls that read rows, and the rows and log totals that they requested or returned."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.rows = 0

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        self.calls += 1
        self.rows += len(rows) + len(logs)
        return await super().read(partition, rows, logs, generation)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        chunk = await super().scan_chunk(generation, scan, damaged)
        self.calls += 1
        self.rows += len(chunk.items)
        return chunk
