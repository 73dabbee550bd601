"""Bounded reads of a topic: one fetch after the other, the next one in progress while a batch is processed.

aiokafka's consumer is not used: it fetches without end (a seek waits for the fetch before it, up to half a second at
the log's end), buffers records beyond `until`, and creates an object for each record. A single fetch has none of these
costs, names the log's bounds, and shares the connection.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from aiokafka import errors as kafka

from recallog_schemas import limits
from recallog_schemas.errors import LedgerMismatch
from recallog_streams.concurrency import ended
from recallog_streams.ledgers.kafka.aiokafka_internals import EARLIEST, LATEST, Client, FetchedBatch, batches_of
from recallog_streams.ledgers.kafka.connection import Connection
from recallog_streams.ledgers.ledger import Batch

FETCH_BYTES: Final = 1024 * 1024
"""The size of a fetch, compressed as in the log. Two fetches are in memory at a time."""
_RECORD_BYTES: Final = 256
SCAN_RECORDS: Final = 100_000
"""After so many offsets without a record of its space, a read returns an empty batch, which reports progress."""


class Fetched(NamedTuple):
    """The result of one fetch: Kafka's batches, and the aborted transactions among them."""

    batches: Sequence[FetchedBatch]
    aborted: Sequence[tuple[int, int]]
    """Producer id and first offset of each."""

    @property
    def next(self) -> int:
        return self.batches[-1].next_offset


class Reader:
    """Reads partitions of one topic under read_committed."""

    def __init__(self, connection: Connection, batch_records: int) -> None:
        self._connection = connection
        self._topic = connection.address.topic
        self._batch_records = batch_records

    async def ends(self, partitions: int) -> list[int]:
        """The next offset of each partition that readers see: the first one of an open transaction, if there is one."""
        return await self._connection.ask(
            "asking for the ends", lambda client: client.offsets(self._topic, range(partitions), LATEST)
        )

    async def read(self, partition: int, start: int, until: int, key: bytes | None) -> AsyncIterator[Batch]:
        """Batches of [start, until); with `key`, only the records that have it."""
        first, position, room_bytes = start, start, limits.READ_BATCH_BYTES
        records: list[tuple[int, bytes]] = []
        keys: list[bytes | None] = []
        in_flight: asyncio.Task[Fetched] | None = None
        try:
            while position < until:
                fetched = await (in_flight or self._fetch(partition, position, until))
                in_flight = None
                if fetched.next < until:
                    in_flight = asyncio.create_task(self._fetch(partition, fetched.next, until))
                for batch in _committed(fetched, self._topic):
                    for record in batch.records():
                        offset = record.offset
                        if offset < position:
                            continue
                        if offset >= until:
                            break
                        if key is not None and record.key != key:
                            continue
                        value = record.value or b""
                        if records and (room_bytes < len(value) or len(records) == self._batch_records):
                            yield Batch(partition, first, offset, records, keys)
                            first, room_bytes, records, keys = offset, limits.READ_BATCH_BYTES, [], []
                        room_bytes -= len(value)
                        records.append((offset, value))
                        keys.append(record.key)
                position = fetched.next
                if position < until and position - first >= SCAN_RECORDS:
                    yield Batch(partition, first, position, records, keys)
                    first, room_bytes, records, keys = position, limits.READ_BATCH_BYTES, [], []
            if first < until:
                yield Batch(partition, first, until, records, keys)
        finally:
            if in_flight is not None:
                await ended(in_flight)

    async def _fetch(self, partition: int, position: int, until: int) -> Fetched:
        try:
            return await self._connection.ask(
                f"reading partition {partition}", lambda client: self._fetch_once(client, partition, position, until)
            )
        except _OutOfRange:
            raise await self._lost(partition, position, until) from None

    async def _fetch_once(self, client: Client, partition: int, position: int, until: int) -> Fetched:
        # The broker returns at least one whole batch, which is enough for a single record.
        bytes_max = min(FETCH_BYTES, (until - position) * _RECORD_BYTES)
        found = await client.fetch(self._topic, partition, position, bytes_max)
        if found.error is kafka.OffsetOutOfRangeError:
            start, end = await self._bounds(client, partition)
            if start <= position <= end:
                raise kafka.NotLeaderForPartitionError  # a new leader that does not know its log's end yet
            raise _OutOfRange
        if found.error is not kafka.NoError:
            raise found.error(f"{self._topic}-{partition}")
        batches: list[FetchedBatch] = []
        for fetched in batches_of(found.data):
            if batches and fetched.base_offset >= until:
                break
            batches.append(fetched)
        if not batches:
            # Below the end there is at least a record or a marker, unless the log was truncated meanwhile.
            raise kafka.LeaderNotAvailableError(f"{self._topic}-{partition} shows nothing at offset {position}")
        return Fetched(batches, found.aborted)

    async def _bounds(self, client: Client, partition: int) -> tuple[int, int]:
        (start,) = await client.offsets(self._topic, [partition], EARLIEST)
        (end,) = await client.offsets(self._topic, [partition], LATEST)
        return start, end

    async def _lost(self, partition: int, position: int, until: int) -> LedgerMismatch:
        start, end = await self._connection.ask(
            "asking for the bounds of the log", lambda client: self._bounds(client, partition)
        )
        where = f"partition {partition} of {self._connection.address}"
        if position < start:
            return LedgerMismatch(
                f"{where} begins at offset {start}: the records from {position} up to there were deleted, and history "
                "is lost. Check the topic's retention and who deleted records; restore them from a copy"
            )
        return LedgerMismatch(
            f"{where} ends at offset {end}, before {until}: it has fewer records than before. Was it recreated, or "
            "truncated by an unclean leader election? Restore it from a copy"
        )


class _OutOfRange(Exception):
    """The offset is outside the log."""


def _committed(fetched: Fetched, topic: str) -> list[FetchedBatch]:
    """The batches of committed records, without markers and aborted transactions."""
    aborted = sorted(fetched.aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    found = []
    for batch in fetched.batches:
        if not batch.is_whole():
            raise kafka.CorruptRecordException(f"{topic}: the batch at offset {batch.base_offset} is damaged")
        while aborted and aborted[0][1] <= batch.base_offset:
            aborting.add(aborted.pop(0)[0])
        if batch.is_control:
            if batch.is_abort_marker():
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            found.append(batch)
    return found
