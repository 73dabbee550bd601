"""The live end of a topic, shared among the workers of a consumer group.

The group only assigns partitions. Offsets come from the views' checkpoints by `seek`, and nothing is committed to
Kafka. The start of each batch is checked, since an aiokafka consumer can return records that were fetched before a seek
or a rebalance, and can lose decoded records when the next ones fail. If a batch does not start at the expected offset,
the partition is sought once more; a batch that starts at the same offset again follows a hole in the offsets.
"""

import asyncio
import logging
from collections.abc import Collection
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, ConsumerRecord, TopicPartition
from aiokafka.errors import (
    CorruptRecordException,
    IllegalStateError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
)

from recallog_schemas import limits
from recallog_schemas.errors import StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import has_stopped_fetching
from recallog_streams.ledgers.kafka.headers import traceparent_of
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.record_source import RecordSource

SESSION_SECONDS = 10.0
"""How long a member may send no heartbeat before its partitions are assigned to others."""
HEARTBEAT_SECONDS = 1.0
"""How soon a member learns that another one has joined or left."""
_IDLE_SECONDS_MAX = 24 * 3600.0
_REBALANCE_SECONDS = 0.2
"""Added to the time limit of a poll: aiokafka returns nothing during a rebalance, and waits for its end without a
limit."""
_POSITION_SECONDS = 0.05
_STOP_SECONDS = 5.0
"""How long leaving the group may take. It takes longer only if the cluster is unreachable; the session then expires."""
_POLLED_RECORDS = limits.CLUSTER_BATCH_RECORDS
_PARTITION_BYTES = 512 * 1024
_FETCH_BYTES = 8 * 1024 * 1024
_UNREADABLE = (CorruptRecordException, RecordTooLargeError, UnicodeDecodeError)
"""Errors of aiokafka for records that it cannot decode: damaged in transit, or with header names that are not UTF-8."""

_log = logging.getLogger("recallog.worker")


class ConsumerGroupSource(RecordSource):
    """One member of the group `group` on the topic of `address`."""

    def __init__(
        self,
        address: KafkaAddress,
        group: str,
        *,
        batch_records: int = limits.CLUSTER_BATCH_RECORDS,
        traced: bool = False,
    ) -> None:
        """`traced`: whether batches say which spans have published their records."""
        self._address = address
        self._traced = traced
        self._group = group
        self._batch_records = batch_records
        self._consumer: AIOKafkaConsumer | None = None
        self._rebalances = _Rebalances()
        self._rebalanced = 0
        """The number of rebalances at the last poll: each of them resets the offsets."""
        self._next: dict[int, int] = {}
        """By partition: the next offset."""
        self._doubtful: dict[int, int] = {}
        """By partition: the start of a batch that did not start at the expected offset."""
        self._lost: set[int] = set()

    async def start(self) -> None:
        consumer = AIOKafkaConsumer(
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            session_timeout_ms=round(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=round(HEARTBEAT_SECONDS * 1000),
            # A partition whose views are being built is not polled for as long as that takes.
            max_poll_interval_ms=round(_IDLE_SECONDS_MAX * 1000),
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=_PARTITION_BYTES,
            retry_backoff_ms=100,
            **self._address.connection(),
        )
        self._next, self._doubtful, self._lost = {}, {}, set()
        consumer.subscribe([self._address.topic], listener=self._rebalances)
        try:
            # It waits for the group without a limit, and an unreachable broker can take long to return.
            async with asyncio.timeout(self._address.timeout_seconds):
                await consumer.start()
        except BaseException as error:
            await _stopped(consumer)
            if isinstance(error, KafkaError | OSError):  # TimeoutError is an OSError
                raise self._unavailable(error) from error
            raise
        self._consumer = consumer

    async def stop(self) -> None:
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await _stopped(consumer)

    def assigned(self) -> frozenset[int]:
        return frozenset(topic_partition.partition for topic_partition in self._started().assignment())

    def seek(self, partition: int, offset: int) -> bool:
        try:
            self._started().seek(self._topic_partition(partition), offset)
        except (IllegalStateError, StorageUnavailable):
            return False
        self._next[partition] = offset
        self._doubtful.pop(partition, None)
        return True

    async def poll(self, partitions: Collection[int], wait_seconds: float) -> list[Batch]:
        consumer = self._started()
        if self._rebalanced != self._rebalances.count:
            self._rebalanced = self._rebalances.count
            self._again(*partitions)
        # Polled also without partitions, since the consumer recovers from errors of the group only then.
        topic_partitions = [self._topic_partition(partition) for partition in partitions] or [self._topic_partition(-1)]
        try:
            async with asyncio.timeout(wait_seconds + _REBALANCE_SECONDS):
                found = await consumer.getmany(
                    *topic_partitions, timeout_ms=round(wait_seconds * 1000), max_records=_POLLED_RECORDS
                )
            if has_stopped_fetching(consumer):
                raise KafkaError("the consumer has stopped fetching")
        except TimeoutError:
            return []
        except NoOffsetForPartitionError:  # assigned again since the seek
            self._again(*partitions)
            return []
        except OffsetOutOfRangeError as error:
            (out_of_range,) = error.args
            self._lost |= {topic_partition.partition for topic_partition in out_of_range}
            return []
        except _UNREADABLE as error:
            _log.warning("a fetch from %s is repeated: %r", self._address, error)
            self._lost |= set(partitions)
            return []
        except KafkaError as error:
            raise self._unavailable(error) from error
        batches = []
        for partition in partitions:
            batches += await self._batches(partition, found.get(self._topic_partition(partition), []))
        return batches

    def lost(self) -> frozenset[int]:
        lost, self._lost = frozenset(self._lost), set()
        return lost

    async def _batches(self, partition: int, records: list[ConsumerRecord[bytes, bytes]]) -> list[Batch]:
        expected = self._next[partition]
        start = records[0].offset if records else await self._position(partition)
        if start is None or (start == expected and not records):
            return []
        if start < expected or (start > expected and self._doubtful.get(partition) != start):
            self._again(partition)
            self._doubtful[partition] = start
            return []
        self._doubtful.pop(partition, None)
        batches = []
        for first in range(0, len(records), self._batch_records):
            part = records[first : first + self._batch_records]
            following = part[-1].offset + 1
            batches.append(
                Batch(
                    partition,
                    expected,
                    following,
                    [(record.offset, record.value or b"") for record in part],
                    [record.key for record in part],
                    [traceparent_of(record.headers) for record in part] if self._traced else None,
                )
            )
            expected = following
        if not records:
            batches.append(Batch(partition, expected, start, []))
            expected = start
        self._next[partition] = expected
        return batches

    async def _position(self, partition: int) -> int | None:
        """The next offset of the consumer, which skips holes; None if it has none, for example after a rebalance."""
        try:
            # It returns at once, or waits without a limit if a rebalance has reset the position.
            async with asyncio.timeout(_POSITION_SECONDS):
                return int(await self._started().position(self._topic_partition(partition)))
        except TimeoutError:
            self._again(partition)
            return None
        except KafkaError:
            return None

    def _again(self, *partitions: int) -> None:
        for partition in partitions:
            self.seek(partition, self._next[partition])

    def _topic_partition(self, partition: int) -> TopicPartition:
        return TopicPartition(self._address.topic, partition)

    def _started(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise StorageUnavailable("the consumer is not started")
        return self._consumer

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(
            f"cannot join or poll the group of workers at {self._address} ({error!r}). Is Kafka running?"
        )


class _Rebalances(ConsumerRebalanceListener):
    """Counts rebalances, and does nothing else, since aiokafka drops the errors of a listener."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self.count += 1


async def _stopped(consumer: AIOKafkaConsumer) -> None:
    with suppress(KafkaError, TimeoutError):
        async with asyncio.timeout(_STOP_SECONDS):
            await consumer.stop()
