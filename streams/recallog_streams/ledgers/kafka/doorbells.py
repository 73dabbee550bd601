"""The topic of triggers: short messages that say that a trigger is due, for the agents that answer it.

They are neither events nor history, and are kept for an hour: the views have what is due. This topic has the space as
its key and as many partitions as the ledger's topic, so that one agent process at a time has the triggers of a space.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

from recallog_schemas.errors import StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import KafkaClient, end_without_flushing, key_hash
from recallog_streams.ledgers.kafka.connection import KafkaConnection
from recallog_streams.ledgers.kafka.failures import name_error
from recallog_streams.ledgers.kafka.topic import describe
from recallog_streams.ledgers.trigger_queue import Doorbell, TriggerQueue

SEND_SECONDS: Final = 10.0
"""How long messages may take to be written. They are sent again later."""
_KEPT_SECONDS: Final = 3_600
_EVENTS: Final = ".events"


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Doorbell).decode


def decode(data: bytes | None) -> Doorbell | None:
    """The message; None if it is not one."""
    try:
        return None if data is None else _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def name_of(address: KafkaAddress) -> str:
    """The name of the topic of triggers beside a ledger's: `recallog.triggers` beside `recallog.events`."""
    return f"{address.topic.removesuffix(_EVENTS)}.triggers"


class TriggerTopic(TriggerQueue):
    """Writes to the topic of triggers beside the ledger at `address`, which has as many partitions as the ledger."""

    def __init__(self, address: KafkaAddress, partitions: Callable[[], Awaitable[int]]) -> None:
        """`partitions` returns how many partitions the ledger has."""
        self.name = name_of(address)
        self._address = address
        self._partitions = partitions
        self._connection = KafkaConnection(address, SEND_SECONDS)
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def create(self) -> None:
        partitions = await self._partitions()
        await self._connection.ask("looking for the topic of triggers", lambda client: self._ready(client, partitions))

    async def _ready(self, client: KafkaClient, partitions: int) -> None:
        topic = await describe(client, self.name)
        if topic is None:
            settings = {
                "cleanup.policy": "delete",
                "retention.ms": str(_KEPT_SECONDS * 1_000),
                "message.timestamp.type": "LogAppendTime",  # whatever the clock of the writer says
            }
            await client.create(self.name, partitions, self._address.replication, settings, SEND_SECONDS)
            raise kafka.LeaderNotAvailableError  # repeated until the topic exists
        if topic.leaderless:
            raise kafka.LeaderNotAvailableError(f"{topic.leaderless} of {topic.partitions} partitions have no leader")

    async def send(self, messages: Sequence[Doorbell]) -> None:
        futures: list[asyncio.Future[object]] = []
        producer: AIOKafkaProducer | None = None
        try:
            async with asyncio.timeout(SEND_SECONDS):
                partitions, producer = await self._partitions(), await self._start_producer()
                for message in messages:
                    key = message.space.encode()
                    partition = key_hash(key) % partitions
                    futures.append(await producer.send(self.name, _encode(message), key, partition))
                await asyncio.gather(*futures)
        except (kafka.KafkaError, OSError) as error:  # TimeoutError is an OSError
            await self._end(producer)
            why = name_error(error, self._address, "writing them")
            raise StorageUnavailable(f"triggers cannot be written to {self.name}: {why}") from error
        finally:
            for future in futures:
                if future.done() and not future.cancelled():
                    future.exception()  # retrieved, or asyncio logs it
                future.cancel()

    async def _start_producer(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                await self.create()
                self._producer = await self._connection.start_producer(linger_ms=2)
            return self._producer

    async def _end(self, producer: AIOKafkaProducer | None) -> None:
        """End a producer that has failed, unless another call has done so: the next call starts a new one."""
        if producer is not None and producer is self._producer:
            self._producer = None
            await end_without_flushing(producer)

    async def consume(self, group: str, handle: Callable[[Doorbell | None], None], started: Callable[[], None]) -> None:
        from recallog_streams.ledgers.kafka import agents  # processes that only publish need no Faust

        await agents.run(agents.app_of(self._address, group, self.name, lambda data: handle(decode(data))), started)

    async def close(self) -> None:
        await self._connection.close()
        await self._end(self._producer)
