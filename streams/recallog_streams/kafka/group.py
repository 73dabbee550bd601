"""The live end of a topic, shared among the workers of a consumer group.

The group does one thing: it assigns partitions. Offsets come from the views' checkpoints by `seek`, and nothing is ever
committed to Kafka. What an aiokafka consumer hands out is checked against what was asked for, since it can hold records
that were fetched before a seek or before a rebalance: a batch that does not start where it should is sought once more,
and is a legal hole in the offsets if it then starts there again.
"""

from collections.abc import Collection
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import IllegalStateError, KafkaError, NoOffsetForPartitionError, OffsetOutOfRangeError

from recallog_schemas import limits
from recallog_schemas.errors import StorageUnavailable
from recallog_streams.kafka.address import KafkaAddress
from recallog_streams.ledger import Batch
from recallog_streams.live import Feed

SESSION_SECONDS = 10.0
"""How long a member may be silent before its partitions go to others."""
_IDLE_SECONDS_MAX = 24 * 3600.0
_POLLED_RECORDS = 4 * limits.CLUSTER_BATCH_RECORDS
_PARTITION_BYTES = 512 * 1024
_FETCH_BYTES = 8 * 1024 * 1024


class GroupFeed(Feed):
    """One member of the group `group` on the topic of `address`."""

    def __init__(self, address: KafkaAddress, group: str, *, batch_records: int = limits.CLUSTER_BATCH_RECORDS) -> None:
        self._address = address
        self._group = group
        self._batch_records = batch_records
        self._consumer: AIOKafkaConsumer | None = None
        self._next: dict[int, int] = {}
        """By partition that was sought: the offset that follows."""
        self._sought: set[int] = set()
        """Those whose first batch is still to come."""
        self._doubtful: dict[int, int] = {}
        """Where the batch began that was not where it should be."""
        self._lost: set[int] = set()

    async def start(self) -> None:
        consumer = AIOKafkaConsumer(
            self._address.topic,
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            session_timeout_ms=round(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=round(SESSION_SECONDS * 1000 / 5),
            # A partition whose views are being built is not polled for as long as that takes.
            max_poll_interval_ms=round(_IDLE_SECONDS_MAX * 1000),
            fetch_max_bytes=_FETCH_BYTES,
            max_partition_fetch_bytes=_PARTITION_BYTES,
            retry_backoff_ms=100,
            **self._address.connection(),
        )
        try:
            await consumer.start()
        except (KafkaError, OSError) as error:
            await consumer.stop()
            raise StorageUnavailable(f"Kafka does not answer at {self._address} ({error!r}). Is it running?") from error
        self._consumer = consumer

    async def stop(self) -> None:
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            with suppress(KafkaError):
                await consumer.stop()

    def assigned(self) -> frozenset[int]:
        return frozenset(place.partition for place in self._started().assignment())

    def seek(self, partition: int, offset: int) -> bool:
        try:
            self._started().seek(self._place(partition), offset)
        except IllegalStateError:
            return False
        self._next[partition] = offset
        self._sought.add(partition)
        return True

    async def poll(self, partitions: Collection[int], wait_seconds: float) -> list[Batch]:
        places = [self._place(partition) for partition in partitions]
        try:
            found = await self._started().getmany(
                *places, timeout_ms=round(wait_seconds * 1000), max_records=_POLLED_RECORDS
            )
        except NoOffsetForPartitionError:  # assigned once more since the seek
            for partition in partitions:
                self._again(partition)
            return []
        except OffsetOutOfRangeError as error:
            (out_of_range,) = error.args
            self._lost |= {place.partition for place in out_of_range}
            return []
        except KafkaError as error:
            raise StorageUnavailable(f"Kafka does not answer at {self._address} ({error!r})") from error
        batches = []
        for partition in partitions:
            batches += await self._batches(partition, found.get(self._place(partition), []))
        return batches

    def lost(self) -> frozenset[int]:
        lost, self._lost = frozenset(self._lost) & self._next.keys(), set()
        return lost

    async def _batches(self, partition: int, records: list[ConsumerRecord[bytes, bytes]]) -> list[Batch]:
        expected = self._next[partition]
        start = records[0].offset if records else await self._position(partition)
        if start is None or (start == expected and not records):
            return []
        if self._is_doubtful(partition, start):
            self._doubtful[partition] = start
            self._again(partition)
            return []
        self._sought.discard(partition)
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
                )
            )
            expected = following
        if not records:
            batches.append(Batch(partition, expected, start, []))
            expected = start
        self._next[partition] = expected
        return batches

    def _is_doubtful(self, partition: int, start: int) -> bool:
        """Whether `start` may come from before a seek; the same start after a second seek is a hole."""
        expected = self._next[partition]
        if start == expected or (start > expected and partition not in self._sought):
            return False
        return start < expected or self._doubtful.get(partition) != start

    async def _position(self, partition: int) -> int | None:
        """The consumer's own idea of what comes next, which moves over holes; None where it has none (any more)."""
        place = self._place(partition)
        if place not in self._started().assignment():
            return None
        return int(await self._started().position(place))

    def _again(self, partition: int) -> None:
        self.seek(partition, self._next[partition])

    def _place(self, partition: int) -> TopicPartition:
        return TopicPartition(self._address.topic, partition)

    def _started(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise StorageUnavailable("the consumer is not started")
        return self._consumer
