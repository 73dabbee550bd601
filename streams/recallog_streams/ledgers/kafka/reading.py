"""Bounded reads of a topic: one fetch after the other, the next one in progress while a batch is processed.

aiokafka's consumer is not used: it fetches continuously (a seek waits for the previous fetch, up to half a second at
the log's end), buffers records beyond `until`, and creates an object for each record. A single fetch has none of these
costs, names the log's bounds, and names the topic by its id: a topic that was recreated has other records at the same
offsets, and the broker refuses to return them.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, NamedTuple

from aiokafka import errors as kafka

from recallog_projections.concurrency import cancel_all
from recallog_schemas import limits
from recallog_schemas.errors import LedgerMismatch, OutOfRange
from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.aiokafka_internals import (
    EARLIEST,
    LATEST,
    FetchedBatch,
    FetchedPartition,
    KafkaClient,
    RecordFields,
    UnknownTopicId,
    batches_of,
)
from recallog_streams.ledgers.kafka.connection import KafkaConnection
from recallog_streams.ledgers.kafka.topic import Topics
from recallog_streams.ledgers.ledger import Batch

FETCH_BYTES: Final = 1024 * 1024
"""The size of a fetch, compressed as in the log. Two fetches are in memory at a time."""
_RECORD_BYTES: Final = 256
_WAIT_SECONDS: Final = 0.1
SCAN_RECORDS: Final = 100_000
"""After so many offsets without a record of its space, a read returns an empty batch, which reports progress."""


class Fetched(NamedTuple):
    """The result of one fetch."""

    batches: Sequence[FetchedBatch]
    """Kafka's batches of committed records."""
    next: int
    """The offset after them, and after control records and aborted transactions."""


class Reader:
    """Reads partitions of one topic under read_committed."""

    def __init__(self, connection: KafkaConnection, topics: Topics, batch_records: int) -> None:
        self._connection = connection
        self._topics = topics
        self._topic = connection.address.topic
        self._batch_records = batch_records

    async def ends(self, partitions: int) -> list[int]:
        """The next offset of each partition that readers see: the first one of an open transaction, if there is one."""
        return await self._connection.ask(
            "asking for the ends", lambda client: client.offsets(self._topic, range(partitions), LATEST)
        )

    async def read(self, partition: int, start: int, until: int, key: bytes | None) -> AsyncIterator[Batch]:
        """Batches of [start, until); with `key`, only the records that have it."""
        topic = await self._topics.same()
        if not 0 <= partition < topic.partitions:
            raise OutOfRange(f"there is no partition {partition}: {self._connection.address} has {topic.partitions}")
        first, position, room_bytes = start, start, limits.READ_BATCH_BYTES
        records: list[tuple[int, bytes]] = []
        keys: list[bytes | None] = []
        appended: list[int] = []
        in_flight: asyncio.Task[Fetched] | None = None
        try:
            while position < until:
                fetched = await (in_flight or self._fetch(partition, position, until))
                in_flight = None
                if fetched.next < until:
                    in_flight = asyncio.create_task(self._fetch(partition, fetched.next, until))
                for batch in fetched.batches:
                    for record in batch.records():
                        offset = record.offset
                        if offset < position:
                            continue
                        if offset >= until:
                            break
                        if key is not None and record.key != key:
                            continue
                        if record.key is None and markers.is_marker(record.value):
                            continue
                        value = record.value or b""
                        if records and (room_bytes < len(value) or len(records) == self._batch_records):
                            yield Batch(partition, first, offset, records, keys, appended=appended)
                            first, room_bytes, records, keys, appended = offset, limits.READ_BATCH_BYTES, [], [], []
                        room_bytes -= len(value)
                        records.append((offset, value))
                        keys.append(record.key)
                        appended.append(max(0, record.timestamp))
                position = fetched.next
                if position < until and position - first >= SCAN_RECORDS:
                    yield Batch(partition, first, position, records, keys, appended=appended)
                    first, room_bytes, records, keys, appended = position, limits.READ_BATCH_BYTES, [], [], []
            if first < until:
                yield Batch(partition, first, until, records, keys, appended=appended)
        finally:
            if in_flight is not None:
                await cancel_all(in_flight)

    async def records(self, partition: int, start: int, until: int) -> list[RecordFields]:
        """All records of [start, until), also markers."""
        found, position = list[RecordFields](), start
        while position < until:
            fetched = await self._fetch(partition, position, until)
            found += [each for batch in fetched.batches for each in batch.records() if position <= each.offset < until]
            position = fetched.next
        return found

    async def _fetch(self, partition: int, position: int, until: int) -> Fetched:
        try:
            return await self._connection.ask(
                f"reading partition {partition}", lambda client: self._fetch_once(client, partition, position, until)
            )
        except _OutOfRange:
            raise await self._make_mismatch(partition, position, until) from None

    async def _fetch_once(self, client: KafkaClient, partition: int, position: int, until: int) -> Fetched:
        # The broker returns at least one whole batch, which is enough for a single record.
        bytes_max = min(FETCH_BYTES, (until - position) * _RECORD_BYTES)
        topic, node = await self._topics.open(), client.leader(self._topic, partition)
        answers = await client.fetch(
            node, topic.id_bytes, {partition: position}, bytes_max=bytes_max, wait_seconds=_WAIT_SECONDS
        )
        found = answers[partition]
        if found.error is UnknownTopicId:
            await self._topics.compare()
        if found.error is kafka.OffsetOutOfRangeError:
            start, end = await self._bounds(client, partition)
            if start <= position <= end:
                raise kafka.NotLeaderForPartitionError  # a new leader that does not know its log's end yet
            raise _OutOfRange
        if found.error is not kafka.NoError:
            raise found.error(f"{self._topic}-{partition}")
        fetched = select_committed(found, until, f"{self._topic}-{partition}")
        if fetched is None:
            # Below the end there is at least a record or a marker, unless the log was truncated meanwhile.
            raise kafka.LeaderNotAvailableError(f"{self._topic}-{partition} shows nothing at offset {position}")
        return fetched

    async def _bounds(self, client: KafkaClient, partition: int) -> tuple[int, int]:
        (start,) = await client.offsets(self._topic, [partition], EARLIEST)
        (end,) = await client.offsets(self._topic, [partition], LATEST)
        return start, end

    async def _make_mismatch(self, partition: int, position: int, until: int) -> LedgerMismatch:
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


def select_committed(found: FetchedPartition, until: float, place: str) -> Fetched | None:
    """The batches below `until` that a fetch has returned; None if it has returned no batch at all.

    `place` names the partition in errors. Raises `CorruptRecordException`.
    """
    aborted = sorted(found.aborted, key=lambda transaction: transaction[1])
    aborting: set[int] = set()
    batches: list[FetchedBatch] = []
    following: int | None = None
    for batch in batches_of(found.data):
        if following is not None and batch.base_offset >= until:
            break
        if not batch.is_whole():
            raise kafka.CorruptRecordException(f"{place}: the batch at offset {batch.base_offset} is damaged")
        following = batch.next_offset
        while aborted and aborted[0][1] <= batch.base_offset:
            aborting.add(aborted.pop(0)[0])
        if batch.is_control:
            if batch.is_abort_marker():
                aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            batches.append(batch)
    return None if following is None else Fetched(batches, following)
