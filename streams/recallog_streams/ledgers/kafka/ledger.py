"""The ledger on Apache Kafka: one topic in which the space is the key, so that its events are in one partition."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any, ClassVar, Final

import msgspec

from recallog_projections.plugins import AdapterSettings
from recallog_schemas import Event, Position, codec, limits
from recallog_schemas.errors import (
    InvalidEvent,
    InvariantViolation,
    LedgerMismatch,
    LedgerMoved,
    SettingsError,
    StorageError,
    StorageUnavailable,
)
from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import key_hash
from recallog_streams.ledgers.kafka.connection import RETRY_WAIT_SECONDS, KafkaConnection
from recallog_streams.ledgers.kafka.doorbells import TriggerTopic
from recallog_streams.ledgers.kafka.group import ConsumerGroupSource
from recallog_streams.ledgers.kafka.reading import Reader
from recallog_streams.ledgers.kafka.retirement import Retirement
from recallog_streams.ledgers.kafka.topic import Topic, Topics
from recallog_streams.ledgers.kafka.topic_settings import RECORD_OVERHEAD_BYTES
from recallog_streams.ledgers.kafka.writing import Message, Writer
from recallog_streams.ledgers.ledger import Batch, Ledger, LedgerGuard, Manifest, StorageFault, Times
from recallog_streams.tracing import Tracing

PARTITIONER: Final = "murmur2"


class KafkaLedger(Ledger):
    """A ledger on one topic. It may store an event twice; the views count it once. Use it in one event loop.

    The first call connects, and creates the topic if it does not exist. From then on the ledger is bound to this topic.
    If the topic is recreated or gets more partitions, `manifest` returns its new identity, and all other calls raise
    `LedgerMismatch` within `topic.CHECK_SECONDS`.

    A cluster that does not answer a request within `deadline_seconds` is unavailable: calls then fail at once, and
    calls try again every few seconds. `append` keeps trying, up to the address's `timeout_seconds` in all.
    """

    unique_ids: ClassVar[bool] = False
    folded_by_workers: ClassVar[bool] = True

    def __init__(
        self,
        address: KafkaAddress,
        *,
        batch_records: int = limits.READ_BATCH_RECORDS,
        deadline_seconds: float = limits.DEADLINE_SECONDS,
        tracing: Tracing | None = None,
        create: bool = True,
    ) -> None:
        """With `tracing`, a record's header `traceparent` names the span that has published it. Without `create`, a
        topic that does not exist is an error.

        Raises `SettingsError` if the certificates of `address` cannot be read.
        """
        self.address = address
        self._connection = KafkaConnection(address, deadline_seconds)
        self._topics = Topics(self._connection, create)
        self._reader = Reader(self._connection, self._topics, batch_records)
        self._writer = Writer(self._connection)
        self._retirement = Retirement(self._connection, self._reader)
        self._tracing = tracing
        self._ends: dict[int, int] = {}
        """By partition: the end after the last event that was acknowledged here."""

    @property
    def location(self) -> str:
        return str(self.address)

    async def open(self) -> None:
        """Connect, and create the topic if it does not exist.

        Raises `StorageForeign` if its settings lose history, and `LedgerMismatch` if it must not be created.
        """
        await self._topics.open()

    async def manifest(self) -> Manifest:
        """The present identity of the topic, by one request. Raises `LedgerMismatch` if it is gone."""
        topic = await self._topics.now()
        return Manifest(
            ledger=f"kafka:{topic.cluster}/{self.address.topic}/{topic.id}",
            partitions=topic.partitions,
            partitioner=PARTITIONER,
        )

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        return await self._append(events, appended, None)

    async def append_guarded(
        self, events: Sequence[Event], guard: LedgerGuard, appended: Times = None
    ) -> list[Position]:
        return await self._append(events, appended, guard)

    async def _append(self, events: Sequence[Event], appended: Times, guard: LedgerGuard | None) -> list[Position]:
        values = await self.encode(events, appended)
        if not events:
            return []
        give_up = asyncio.get_running_loop().time() + self.address.timeout_seconds
        topic = await self._same_until(give_up)
        await self._topics.check_keeps_events()
        await self._check_not_retired()
        batch_bytes = self._topics.message_bytes - RECORD_OVERHEAD_BYTES  # before another call sees that it is retired
        traceparent = None if self._tracing is None else self._tracing.traceparent()
        messages = [
            Message(partition_of(event.space, topic.partitions), event, value, time, traceparent)
            for event, (value, time) in zip(events, values, strict=True)
        ]
        partitions = {message.partition for message in messages}
        if guard is not None:
            await guard.check(partitions, topic.id)
        ends = {partition: self._ends.get(partition, 0) for partition in partitions}
        try:
            positions = await self._writer.append(messages, batch_bytes, give_up)
        except StorageError as error:
            if not isinstance(error, StorageUnavailable):  # a broker has refused: perhaps the topic was just retired
                await self._check_not_retired(known=False)
            raise
        await self._check_after(positions, ends)
        return positions

    async def _check_not_retired(self, *, known: bool = True) -> None:
        if not await self._topics.is_retired(known=known):
            return
        await self._check_not_moved()
        raise StorageUnavailable(f"the last events of {self.address} are being moved to another topic. Try again")

    async def _check_not_moved(self, target: str = "") -> None:
        """Raise `LedgerMoved` if the topic names a successor other than `target`."""
        if (topic := await self._retirement.successor()) not in ("", target):
            raise LedgerMoved(
                f"the events of {self.address} were moved to the topic {topic}. Set RECALLOG_LEDGER to that topic, and "
                "send events there, refused ones with the same ids",
                ledger=topic,
            )

    async def check_successor(self, target: Ledger) -> None:
        if not isinstance(target, KafkaLedger) or len(target.address.topic) > markers.TOPIC_CHARS_MAX:
            return await super().check_successor(target)
        return await self._check_not_moved(target.address.topic)

    async def retire(self) -> list[int]:
        """As in `Ledger.retire`. The user needs AlterConfigs on the topic, and Write."""
        return await self._retirement.retire(await self.partitions())

    async def name_successor(self, target: Ledger) -> None:
        _, _, topic = target.location.rpartition("/")
        await self._check_not_moved(topic)
        await self._retirement.name_successor(topic, await self.partitions())

    async def _check_after(self, positions: Sequence[Position], ends: Mapping[int, int]) -> None:
        """Refuse to acknowledge events that were written before the `ends` that the partitions had before the call.

        A topic can be recreated or truncated between two checks. Raises `LedgerMismatch`.
        """
        for position in positions:
            partition, offset = position.partition, position.offset
            if offset < ends[partition]:
                await self._topics.compare()
                raise LedgerMismatch(
                    f"partition {partition} of {self.address} has lost its end: the events of this call were written "
                    f"at offset {offset}, and it had reached {ends[partition]} before. They are not acknowledged. Was "
                    "the topic recreated, or truncated by an unclean leader election? Restore it from a copy"
                )
            self._ends[partition] = max(self._ends.get(partition, 0), offset + 1)

    async def _same_until(self, give_up: float) -> Topic:
        """As `Topics.same`. Once connected, it keeps trying until `give_up`, a time of the event loop."""
        while True:
            try:
                return await self._topics.same()
            except StorageUnavailable as error:
                if self._topics.opened is None or asyncio.get_running_loop().time() > give_up:
                    raise StorageUnavailable(f"nothing was written: {error}") from error
            await asyncio.sleep(RETRY_WAIT_SECONDS)

    async def faults(self) -> Sequence[StorageFault]:
        """As in `Ledger`: settings of the topic that lose or refuse events, and records that were deleted.

        They are read again once in `topic.SETTINGS_SECONDS`, also by `append`, which refuses to write to a topic that
        would lose events.
        """
        return [fault.describe() for fault in await self._topics.faults()]

    async def partitions(self) -> int:
        """As in `Ledger`. Asks the cluster only once."""
        return (await self._topics.open()).partitions

    async def ends(self) -> list[int]:
        topic = await self._topics.same()
        return await self._reader.ends(topic.partitions)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        """As in `Ledger.read`. Raises `LedgerMismatch` if records from `start` on were deleted."""
        found = self._reader.read(partition, start, until, None if space is None else space.encode())
        async with aclosing(found) as batches:  # type: ignore[type-var]
            async for batch in batches:
                yield await self.unseal(batch)

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        """As in `Ledger.find`. Kafka has no index: it reads the space's partition up to the event."""
        topic = await self._topics.same()
        partition = partition_of(space, topic.partitions)
        until = (await self._reader.ends(topic.partitions))[partition]
        async with aclosing(self._reader.read(partition, 0, until, space.encode())) as batches:  # type: ignore[type-var]
            async for batch in batches:
                for offset, data in batch.records:
                    if _id_of(data) == id:
                        return Position(partition, offset)
        return None

    def record_source(self, group: str) -> ConsumerGroupSource:
        return ConsumerGroupSource(self.address, group, traced=self._tracing is not None)

    def trigger_queue(self) -> TriggerTopic:
        return TriggerTopic(self.address, self.partitions)

    def partition_of(self, space: str) -> int:
        """The partition of the events of `space`. Await `open` before."""
        if self._topics.opened is None:
            raise InvariantViolation("the topic's partitions are not known yet: await open() first")
        return partition_of(space, self._topics.opened.partitions)

    async def size_bytes(self) -> int:
        """The size of the first replica of each partition on the brokers' disks, compressed, without its indexes.

        The user needs Describe on the cluster.
        """
        topic = await self._topics.same()
        largest = await self._connection.ask(
            "asking for sizes", lambda client: client.sizes_bytes(self.address.topic, range(topic.partitions))
        )
        return sum(largest.values())

    async def close(self) -> None:
        """As in `Ledger`. Takes at most twice the deadline, also if the cluster does not answer."""
        await asyncio.gather(self._connection.close(), self._writer.close(), self.sealing.close())
        await self._topics.close()


def open_ledger(url: str, settings: AdapterSettings) -> KafkaLedger:
    """The ledger at a URL. Raises `SettingsError`."""
    try:
        address = KafkaAddress.parse(url)
    except ValueError as error:
        raise SettingsError(f"RECALLOG_LEDGER: {error}") from None
    return KafkaLedger(
        address,
        batch_records=limits.CLUSTER_BATCH_RECORDS,
        deadline_seconds=settings.deadline_seconds,
        tracing=Tracing() if settings.telemetry else None,
        create=settings.create_ledger,
    )


def partition_of(space: str, partitions: int) -> int:
    """The partition that Java's default partitioner picks for the key `space`."""
    return _hash(space) % partitions


@lru_cache(65_536)
def _hash(space: str) -> int:
    return key_hash(space.encode())


class _Identified(msgspec.Struct):
    id: Any = None


_decode_id = msgspec.json.Decoder(_Identified).decode


def _id_of(data: bytes) -> object:
    """The id in any version of the envelope; None if there is none, or if it is not an event."""
    try:
        return _decode_id(data).id
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return codec.decode(data).id  # it accepts a little more, such as an Infinity under a key that occurs twice
    except InvalidEvent:
        return None
