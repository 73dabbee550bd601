"""Retires a topic: its brokers refuse the events of all producers, and its last records name the new topic.

1. `max.message.bytes` becomes so small that markers fit and events do not.
2. Each broker applies this a moment later, and could become the leader of a partition before. It shows a setting before
   it applies it, and applies one change after the other. So the setting is changed again when all brokers with replicas
   show the first change: a broker that shows the second one has applied the first one.
3. A marker of the size of an event is appended to each partition until the leader refuses it.
4. A small marker is appended, which all replicas in sync acknowledge. All events that the partition has accepted are
   before it, and are visible to readers once it is.
5. When the events are in the new topic, another marker names it.

Each step can be repeated, so an interrupted retirement continues when it is called again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError, NoError, NotEnoughReplicasError

from recallog_projections.concurrency import gather_limited
from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.aiokafka_internals import KafkaClient, end_without_flushing
from recallog_streams.ledgers.kafka.connection import NO_ANSWER, RETRY_WAIT_SECONDS, KafkaConnection
from recallog_streams.ledgers.kafka.reading import Reader
from recallog_streams.ledgers.kafka.topic_settings import RETIRED_BYTES

_RECORDS = 100
"""Offsets of one read in the search for the last marker."""


class Retirement:
    """Retires the topic of a connection."""

    def __init__(self, connection: KafkaConnection, reader: Reader) -> None:
        self._connection, self._reader, self._topic = connection, reader, connection.address.topic
        self._patience_seconds = connection.address.timeout_seconds

    async def retire(self, partitions: int) -> list[int]:
        """Refuse further events, and return the end of each partition, after which no event can be.

        Raises `StorageUnavailable`, or `StorageError` if the user may not alter the topic. Nothing is changed while a
        broker that has replicas of the topic does not answer.
        """
        await self._await_brokers()
        for size in (str(RETIRED_BYTES - 1), str(RETIRED_BYTES)):
            change = partial(KafkaClient.change_setting, topic=self._topic, name="max.message.bytes", value=size)
            await self._connection.ask("retiring the topic", change)
            await self._await_brokers(size)
        ends = await self._mark(partitions, self._close)
        while any(seen < end for seen, end in zip(await self._reader.ends(partitions), ends, strict=True)):
            await asyncio.sleep(RETRY_WAIT_SECONDS)  # a transaction of another program is open
        return ends

    async def _await_brokers(self, size: str = "") -> None:
        """Wait until each broker with replicas of the topic shows `size` as `max.message.bytes`; "" for any size."""

        async def check(client: KafkaClient) -> None:
            described = await client.describe(self._topic)
            if described.error is not NoError:
                raise described.error(self._topic)
            for node in described.nodes:
                shown = None
                with suppress(*NO_ANSWER):
                    shown = (await client.settings(self._topic, node))["max.message.bytes"]
                if shown is None or shown != (size or shown):
                    raise NotEnoughReplicasError(f"broker {node} does not confirm it. Start it, or move its replicas")

        await self._connection.ask("retiring the topic", check, patience_seconds=self._patience_seconds)

    async def name_successor(self, topic: str, partitions: int) -> None:
        """Name the topic that has all events, at the end of each partition."""
        await self._mark(partitions, lambda producer, partition: self._append(producer, partition, topic))

    async def successor(self) -> str:
        """The topic that the markers after the last event of the first partition name; "" if they name none yet."""
        [end] = await self._reader.ends(1)
        while end > 0:
            # Control records of aborted transactions may follow the markers.
            start = max(0, end - _RECORDS)
            for record in reversed(await self._reader.records(0, start, end)):
                if record.key is not None or not markers.is_marker(record.value):
                    return ""
                if topic := markers.topic_of(record.value):
                    return topic
            end = start
        return ""

    async def _mark(self, partitions: int, work: Callable[[AIOKafkaProducer, int], Awaitable[int]]) -> list[int]:
        """Append markers to all partitions by `work`, and return the ends after them."""

        async def mark(_: KafkaClient) -> list[int]:
            producer = await self._connection.start_producer(acks="all")
            try:
                return await gather_limited(partial(work, producer), range(partitions), partitions)
            finally:
                await end_without_flushing(producer)

        return await self._connection.ask("writing to it", mark, patience_seconds=self._patience_seconds)

    async def _close(self, producer: AIOKafkaProducer, partition: int) -> int:
        with suppress(MessageSizeTooLargeError):
            while True:
                await self._append(producer, partition, " " * RETIRED_BYTES)
                await asyncio.sleep(RETRY_WAIT_SECONDS)
        return await self._append(producer, partition)

    async def _append(self, producer: AIOKafkaProducer, partition: int, topic: str = "") -> int:
        written = await producer.send_and_wait(self._topic, markers.marker(topic), partition=partition)
        return int(written.offset) + 1
