"""Retires a topic: its brokers refuse further events, whoever appends them, and its last records name the new topic.

1. `max.message.bytes` becomes so small that markers fit and events do not.
2. The leader of a partition applies this a moment later. A marker of the size of an event is appended until the leader
   refuses it: from then on it refuses events.
3. A small marker is appended, which all replicas in sync acknowledge. All events that the partition has accepted are
   before it, and are visible to readers once it is.
4. When the events are in the new topic, another marker names it.

Each step can be repeated, so an interrupted retirement continues when it is called again.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from recallog_streams.ledgers.kafka import markers
from recallog_streams.ledgers.kafka.connection import RETRY_WAIT_SECONDS, KafkaConnection
from recallog_streams.ledgers.kafka.failures import name_error
from recallog_streams.ledgers.kafka.reading import Reader
from recallog_streams.ledgers.kafka.topic_settings import RETIRED_BYTES


class Retirement:
    """Retires the topic of a connection."""

    def __init__(self, connection: KafkaConnection, reader: Reader) -> None:
        self._connection = connection
        self._reader = reader
        self._topic = connection.address.topic

    async def retire(self, partitions: int) -> list[int]:
        """Refuse further events, and return the end of each partition, after which no event can be.

        Raises `StorageUnavailable`, or `StorageError` if the user may not alter the topic.
        """
        await self._connection.ask(
            "retiring the topic",
            lambda client: client.change_setting(self._topic, "max.message.bytes", str(RETIRED_BYTES)),
        )
        async with self._producer() as producer:
            ends = await asyncio.gather(*(self._close(producer, partition) for partition in range(partitions)))
        while any(seen < end for seen, end in zip(await self._reader.ends(partitions), ends, strict=True)):
            await asyncio.sleep(RETRY_WAIT_SECONDS)  # a transaction of another program is open
        return [*ends]

    async def name_successor(self, topic: str, partitions: int) -> None:
        """Name the topic that has all events, at the end of each partition."""
        async with self._producer() as producer:
            await asyncio.gather(
                *(self._append(producer, partition, markers.marker(topic)) for partition in range(partitions))
            )

    async def successor(self) -> str:
        """The topic that the last record of the first partition names; "" while events are being moved to it."""
        end, *_ = await self._reader.ends(1)
        value = await self._reader.value_at(0, end - 1)
        return markers.topic_of(value) if markers.is_marker(value) else ""

    async def _close(self, producer: AIOKafkaProducer, partition: int) -> int:
        """The offset after the marker that follows the last event."""
        as_an_event = markers.marker(" " * RETIRED_BYTES)
        with suppress(MessageSizeTooLargeError):
            while True:
                await self._append(producer, partition, as_an_event)
                await asyncio.sleep(RETRY_WAIT_SECONDS)
        return 1 + await self._append(producer, partition, markers.marker())

    async def _append(self, producer: AIOKafkaProducer, partition: int, value: bytes) -> int:
        written = await producer.send_and_wait(self._topic, value, partition=partition)
        return int(written.offset)

    @asynccontextmanager
    async def _producer(self) -> AsyncIterator[AIOKafkaProducer]:
        producer = AIOKafkaProducer(**self._connection.settings, acks="all")
        try:
            await producer.start()
            yield producer
        except KafkaError as error:
            raise name_error(error, self._connection.address, "retiring the topic") from error
        finally:
            await producer.stop()
