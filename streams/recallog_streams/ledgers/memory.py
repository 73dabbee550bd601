"""A ledger in memory, for tests of projections and for data that need not outlive the process.

It can allow repeated ids, as Kafka does.
"""

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from recallog_projections.plugins import AdapterSettings
from recallog_schemas import Event, Position, codec, limits, sealing
from recallog_schemas.errors import IdConflict, InvalidEvent
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest, Times, check_repeat


class MemoryLedger(Ledger):
    """A ledger of one partition: lists of (space, value) and of times, in which the index is the offset."""

    def __init__(self, *, unique_ids: bool = True, batch_records: int = limits.READ_BATCH_RECORDS) -> None:
        self.unique_ids = unique_ids  # type: ignore[misc]
        self._id = secrets.token_hex(16)
        self._batch_records = batch_records
        self._values: list[tuple[str | None, bytes]] = []
        self._appended: list[int] = []
        self._offsets: dict[tuple[str, str], int] = {}

    async def open(self) -> None:
        return None

    async def manifest(self) -> Manifest:
        return Manifest(ledger=f"memory:{self._id}", partitions=1, partitioner="one")

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        values = await self.encode(events, appended)
        opened = await self.sealing.opener([*(data for data, _ in values), *self._firsts(events)])
        before = len(self._values)
        positions = []
        for event, (data, time) in zip(events, values, strict=True):
            first = self._offsets.get((event.space, event.id)) if self.unique_ids else None
            if first is not None:
                try:
                    at = Position(0, first) if first < before else None
                    check_repeat(event, data, self._values[first][1], at, opened)
                except IdConflict:
                    del self._values[before:], self._appended[before:]
                    self._offsets = {key: offset for key, offset in self._offsets.items() if offset < before}
                    raise
            positions.append(Position(0, len(self._values) if first is None else first))
            if first is None:
                self._offsets[event.space, event.id] = len(self._values)
                self._values.append((event.space, data))
                self._appended.append(time)
        return positions

    def _firsts(self, events: Sequence[Event]) -> list[bytes]:
        """The records that have ids of `events`."""
        offsets = [self._offsets.get((event.space, event.id)) for event in events] if self.unique_ids else []
        return [self._values[offset][1] for offset in offsets if offset is not None]

    def append_bytes(self, data: bytes, space: str | None = None, appended: int = 0) -> Position:
        """Append raw bytes, as a producer without this library can; `appended` as in `Batch`."""
        self._values.append((space, data))
        self._appended.append(appended)
        return Position(0, len(self._values) - 1)

    def values(self) -> list[bytes]:
        """All records in order."""
        return [data for _, data in self._values]

    def times(self) -> list[int]:
        """When each record was first appended, in order, in milliseconds since 1970; 0 if that is not known."""
        return list(self._appended)

    async def ends(self) -> list[int]:
        return [len(self._values)]

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        while start < until:
            records: list[tuple[int, bytes]] = []
            room_bytes = limits.READ_BATCH_BYTES
            following = min(start + self._batch_records, until)
            for offset, (found, data) in enumerate(self._values[start:following], start):
                if space is None or found == space:
                    room_bytes -= len(data)
                    if room_bytes < 0 and records:
                        following = offset
                        break
                    records.append((offset, data))
            appended = [self._appended[at] for at, _ in records]
            yield await self.unseal(Batch(partition, start, following, records, appended=appended))
            start = following

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        for offset, (_, data) in enumerate(self._values):
            with suppress(InvalidEvent):
                event = codec.decode(sealing.erase_record(data) if sealing.is_sealed(data) else data)
                if (event.space, event.id) == (space, id):
                    return Position(0, offset)
        return None

    def partition_of(self, space: str) -> int:
        return 0

    async def size_bytes(self) -> int:
        return sum(len(data) for _, data in self._values)

    async def close(self) -> None:
        await self.sealing.close()


def open_ledger(url: str, settings: AdapterSettings) -> MemoryLedger:
    """The ledger at `memory://`."""
    return MemoryLedger()
