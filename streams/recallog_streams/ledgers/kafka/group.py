"""The live end of a topic, shared among the workers of a consumer group.

The group only assigns partitions: aiokafka's consumer joins it, with all its partitions paused. Offsets come from the
views' checkpoints by `seek`, and nothing is committed to Kafka. One fetch at a time asks a broker for all partitions
that it leads, so that a round has all records that arrived during the previous one. The consumer would fetch ahead for
all partitions except the one that is being processed, and the next records of that one wait until the fetch ends.
"""

import asyncio
import logging
import math
import random
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka import errors as kafka

from recallog_projections.concurrency import cancel_all
from recallog_schemas import limits
from recallog_schemas.errors import StorageUnavailable
from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import FetchedPartition, KafkaClient, make_client, stop_consumer
from recallog_streams.ledgers.kafka.connection import RETRY_WAIT_SECONDS, KafkaConnection
from recallog_streams.ledgers.kafka.headers import traceparent_of
from recallog_streams.ledgers.kafka.reading import FETCH_BYTES, Fetched, select_committed
from recallog_streams.ledgers.kafka.topic import Topics
from recallog_streams.ledgers.ledger import Batch, RecordSource

SESSION_SECONDS = 10.0
"""How long a member may send no heartbeat before its partitions are assigned to others."""
HEARTBEAT_SECONDS = 1.0
"""How soon a member learns that another one has joined or left, and of an error of the group."""
_IDLE_SECONDS_MAX = 24 * 3600.0
_REBALANCE_SECONDS = 0.2
"""How long a poll waits for a rebalance: aiokafka waits for its end without a limit."""
_STOP_SECONDS = 5.0
"""How long leaving the group may take. It takes longer only if the cluster is unreachable; the session then expires."""

_log = logging.getLogger("recallog.worker")


class _Fetch(NamedTuple):
    """A fetch in progress from one broker."""

    starts: Mapping[int, int]
    """By partition: the first offset."""
    answer: asyncio.Task[dict[int, FetchedPartition]]


class ConsumerGroupSource(RecordSource):
    """One member of the group `group` on the topic of `address`."""

    def __init__(self, address: KafkaAddress, group: str, *, traced: bool = False) -> None:
        """`traced`: whether batches say which spans have published their records."""
        self._address = address
        self._traced = traced
        self._group = group
        self._consumer: AIOKafkaConsumer | None = None
        self._group_checked_at = -math.inf
        self._connection = KafkaConnection(address)
        """Not shared: a fetch that waits for records delays all requests after it."""
        self._topics = Topics(self._connection, create=False)
        self._fetches: dict[int, _Fetch] = {}
        """By the id of the broker."""
        self._next: dict[int, int] = {}
        """By partition: the next offset."""
        self._lost: set[int] = set()

    async def start(self) -> None:
        self._next, self._lost = {}, set()
        self._connection = KafkaConnection(self._address, limits.PATIENT_SECONDS)
        self._topics = Topics(self._connection, create=False)
        await self._topics.open()
        consumer = make_client(
            AIOKafkaConsumer,
            self._connection.settings,
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            session_timeout_ms=round(SESSION_SECONDS * 1000),
            heartbeat_interval_ms=round(HEARTBEAT_SECONDS * 1000),
            # A partition whose views are being built is not polled for as long as that takes.
            max_poll_interval_ms=round(_IDLE_SECONDS_MAX * 1000),
            retry_backoff_ms=100,
        )
        consumer.subscribe([self._address.topic], listener=_Pausing(consumer))
        try:
            # It waits for the group without a limit. After an outage the group has its former members until their
            # sessions end; a process that gave up earlier would be one more.
            async with asyncio.timeout(self._address.timeout_seconds + 2 * SESSION_SECONDS):
                await consumer.start()
        except BaseException as error:
            await stop_consumer(consumer, _STOP_SECONDS)
            if isinstance(error, kafka.KafkaError | OSError):  # TimeoutError is an OSError
                raise self._unavailable(error) from error
            raise
        self._consumer = consumer

    async def stop(self) -> None:
        fetches, self._fetches = self._fetches, {}
        await cancel_all(*(fetch.answer for fetch in fetches.values()))
        await self._topics.close()
        await self._connection.close()
        if self._consumer is not None:
            consumer, self._consumer = self._consumer, None
            await stop_consumer(consumer, _STOP_SECONDS)

    def list_assigned(self) -> frozenset[int]:
        return frozenset(topic_partition.partition for topic_partition in self._start_consumer().assignment())

    def seek(self, partition: int, offset: int) -> bool:
        if self._consumer is None or partition not in self.list_assigned():
            return False
        self._next[partition] = offset
        return True

    async def poll(self, partitions: Collection[int], wait_seconds: float) -> list[Batch]:
        await self._check_group()
        if not partitions:
            await asyncio.sleep(wait_seconds)
            return []
        answers = await self._connection.ask(
            "fetching the newest records", lambda client: self._fetch(client, partitions, wait_seconds)
        )
        batches = [
            self._batch(partition, found)
            for partition, start, found in answers
            if partition in partitions and self._next[partition] == start  # otherwise `seek` was called meanwhile
        ]
        return [batch for batch in batches if batch is not None]

    def take_lost(self) -> frozenset[int]:
        lost, self._lost = frozenset(self._lost), set()
        return lost

    async def _check_group(self) -> None:
        """Raise an error of the group. The consumer recovers from errors only when it is polled."""
        now = asyncio.get_running_loop().time()
        if now < self._group_checked_at + HEARTBEAT_SECONDS:
            return
        self._group_checked_at = now
        try:
            async with asyncio.timeout(_REBALANCE_SECONDS):
                await self._start_consumer().getmany()
        except TimeoutError:
            pass
        except kafka.KafkaError as error:
            raise self._unavailable(error) from error

    async def _fetch(
        self, client: KafkaClient, partitions: Collection[int], wait_seconds: float
    ) -> list[tuple[int, int, FetchedPartition]]:
        """The first answers: partition, first offset, and what was fetched. Fetches from other brokers go on."""
        topic = await self._topics.open()
        for node, starts in self._plan_fetches(client, partitions).items():
            answer = client.fetch(node, topic.id_bytes, starts, bytes_max=FETCH_BYTES, wait_seconds=wait_seconds)
            self._fetches[node] = _Fetch(starts, asyncio.create_task(answer))
        if not self._fetches:  # no partition has a leader now
            await asyncio.sleep(RETRY_WAIT_SECONDS)
            return []
        await asyncio.wait([fetch.answer for fetch in self._fetches.values()], return_when=asyncio.FIRST_COMPLETED)
        found = []
        for node, fetch in [*self._fetches.items()]:
            if fetch.answer.done():
                del self._fetches[node]
                found += [(each, fetch.starts[each], answer) for each, answer in fetch.answer.result().items()]
        if any(answer.error is not kafka.NoError for _, _, answer in found):
            client.refresh_metadata()
            await asyncio.sleep(RETRY_WAIT_SECONDS)
        return found

    def _plan_fetches(self, client: KafkaClient, partitions: Collection[int]) -> dict[int, dict[int, int]]:
        """What to fetch from each broker without a fetch in progress: the next offsets by partition.

        In random order, since a large answer may leave no room for the partitions that are named last.
        """
        wanted: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for partition in random.sample([*partitions], len(partitions)):
            try:
                node = client.leader(self._address.topic, partition)
            except kafka.LeaderNotAvailableError:
                client.refresh_metadata()
                continue
            if node not in self._fetches:
                wanted[node][partition] = self._next[partition]
        return wanted

    def _batch(self, partition: int, found: FetchedPartition) -> Batch | None:
        fetched: Fetched | None = None
        if found.error is kafka.OffsetOutOfRangeError:
            self._lost.add(partition)
        try:
            fetched = select_committed(found, math.inf, f"{self._address.topic}-{partition}")
        except kafka.CorruptRecordException as error:
            _log.warning("a fetch from %s is repeated: %r", self._address, error)
            self._lost.add(partition)
        if fetched is None:
            return None
        start, self._next[partition] = self._next[partition], fetched.next
        records = [
            each
            for batch in fetched.batches
            for each in batch.records()
            if each.offset >= start and not (each.key is None and markers.is_marker(each.value))
        ]
        return Batch(
            partition,
            start,
            fetched.next,
            [(record.offset, record.value or b"") for record in records],
            [record.key for record in records],
            [traceparent_of(record.headers) for record in records] if self._traced else None,
            appended=[max(0, record.timestamp) for record in records],
        )

    def _start_consumer(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            raise StorageUnavailable("the consumer is not started")
        return self._consumer

    def _unavailable(self, error: Exception) -> StorageUnavailable:
        return StorageUnavailable(
            f"cannot join or poll the group of workers at {self._address} ({error!r}). Is Kafka running?"
        )


class _Pausing(ConsumerRebalanceListener):
    """Pauses all partitions that are assigned, so that the consumer fetches nothing."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        pass

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        for partition in assigned:
            self._consumer.seek(partition, 0)  # without a position it asks for the committed one, and there is none
            self._consumer.pause(partition)
