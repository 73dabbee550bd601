"""The topic: its identity, its creation, and the check that its settings do not lose history."""

import asyncio
import base64
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiokafka import errors as kafka

from recallog_projections.concurrency import cancel_all
from recallog_schemas import limits
from recallog_schemas.errors import LedgerMismatch, StorageError, StorageForeign, StorageUnavailable
from recallog_streams.ledgers.kafka.address import DEFAULT_PARTITIONS, KafkaAddress
from recallog_streams.ledgers.kafka.aiokafka_internals import EARLIEST, KafkaClient
from recallog_streams.ledgers.kafka.connection import KafkaConnection
from recallog_streams.ledgers.kafka.topic_settings import MESSAGE_BYTES, RETIRED_BYTES, Effect, TopicFault, faults_of

CHECK_SECONDS: Final = 1.0
"""How long a topic that was recreated, or was given more partitions, can go unnoticed."""
_GONE_SECONDS: Final = 3.0
"""How long brokers may take to learn of a topic that another one has created."""
SETTINGS_SECONDS: Final = 30.0
"""How long a changed setting of the topic, or the loss of its first records, can go unnoticed."""
FAULTY_SECONDS: Final = 5.0
"""How long a setting that was corrected can go unnoticed."""

_CLOCKS: Final = {"message.timestamp.after.max.ms": str(1_000 * limits.AHEAD_SECONDS_MAX)}
"""How far the clock of a writer may be ahead of the broker's. From Kafka 4.0 on, an hour is the default: a worker whose
clock is further ahead would answer no trigger."""


@dataclass(frozen=True)
class Topic:
    """The topic as the cluster describes it."""

    cluster: str
    id: str
    partitions: int
    leaderless: int
    """The number of partitions without a leader, which cannot be read or written now."""

    @property
    def id_bytes(self) -> bytes:
        """The id as requests have it."""
        return base64.urlsafe_b64decode(f"{self.id}==")


class Topics:
    """The topic as it was when the ledger was opened, and checks that it is still the same."""

    def __init__(self, connection: KafkaConnection, create: bool = True) -> None:
        """With `create`, a topic that does not exist is created when it is opened."""
        self._connection = connection
        self._address = connection.address
        self._may_create = create
        self._request: asyncio.Task[Topic] | None = None
        self.opened: Topic | None = None
        self.message_bytes = MESSAGE_BYTES
        """The largest batch that the topic takes."""
        self._checked_at = 0.0
        self._faults: Sequence[TopicFault] = ()
        self._faults_again_at = float("inf")
        """When the settings are read again; they are read for the first time when the topic is opened."""
        self._starts_are_known = False
        """Whether `_faults` were found with the first offsets of the partitions, which opening does not read."""
        self._reading_settings = asyncio.Lock()

    async def open(self) -> Topic:
        """The topic as it was at the first call, which creates it if it does not exist.

        Raises `StorageForeign` if its settings lose history, and `LedgerMismatch` if its partitions are not those of
        the address, or if it does not exist and must not be created.
        """
        self._connection.check_open()
        return self.opened or await self._share_work(self._open)

    async def now(self) -> Topic:
        """The topic as it is now. Raises `LedgerMismatch` if it is gone."""
        await self.open()
        return await self._still_there()

    async def same(self) -> Topic:
        """The topic, which is still the same; checked at most once in `CHECK_SECONDS`.

        Raises `LedgerMismatch` if it was recreated or has more partitions.
        """
        opened = await self.open()
        if time.monotonic() - self._checked_at < CHECK_SECONDS:
            return opened
        return await self._share_work(self._compare)

    async def compare(self) -> Topic:
        """The topic, which is still the same; always checked. Raises as `same` does."""
        return await self._share_work(self._compare)

    async def faults(self) -> Sequence[TopicFault]:
        """What is wrong with the topic. Its settings are read again once in `SETTINGS_SECONDS`.

        While the cluster does not answer, the last known faults are returned. Other calls report that.
        """
        await self.open()
        async with self._reading_settings:
            if not self._starts_are_known or time.monotonic() >= self._faults_again_at:
                self._read_again_after(FAULTY_SECONDS)
                with suppress(StorageUnavailable):
                    await self._connection.ask("reading the topic's settings", self._read_faults)
        return self._faults

    async def is_retired(self, *, known: bool = True) -> bool:
        """Whether the topic takes no more events. With `known`, as of when its settings were last read."""
        if not known:
            self._faults_again_at = 0.0
            await self.faults()
        return self.message_bytes <= RETIRED_BYTES

    async def check_keeps_events(self) -> None:
        """Raise `StorageForeign` if the topic would lose what is written to it now."""
        if time.monotonic() >= self._faults_again_at:
            await self.faults()
        for fault in self._faults:
            if fault.effect is Effect.LOSES:
                raise self._make_foreign(fault, "nothing was written: ", "")

    def _make_foreign(self, fault: TopicFault, begin: str, end: str) -> StorageForeign:
        what = f"the topic of {self._address} {fault.what}: {fault.consequence}"
        return StorageForeign(f"{begin}{what}. {fault.remedy}{end}")

    async def _read_faults(self, client: KafkaClient) -> None:
        name, opened = self._address.topic, await self.open()
        settings, described = await client.settings(name), await client.describe(name)
        led = [partition for partition, leader in enumerate(described.leaders[: opened.partitions]) if leader >= 0]
        starts = dict(zip(led, await client.offsets(name, led, EARLIEST), strict=True))
        self._faults = faults_of(self._address, settings, described.copies, starts, opened.partitions)
        self._take_size(settings)
        self._starts_are_known = True
        is_faulty = any(fault.effect not in (Effect.SINGLE, Effect.RETIRED) for fault in self._faults)
        self._read_again_after(FAULTY_SECONDS if is_faulty else SETTINGS_SECONDS)

    def _take_size(self, settings: Mapping[str, str | None]) -> None:
        self.message_bytes = int(settings.get("max.message.bytes") or MESSAGE_BYTES)

    def _read_again_after(self, seconds: float) -> None:
        self._faults_again_at = time.monotonic() + seconds

    async def close(self) -> None:
        """Cancel a request in progress."""
        if self._request is not None:
            await cancel_all(self._request)

    async def _share_work(self, work: Callable[[], Coroutine[Any, Any, Topic]]) -> Topic:
        """The result of `work`, which runs once for all callers that wait at the same time.

        In turn, each of them would wait for the whole time limit if the cluster is unreachable.
        """
        if self._request is None:
            self._request = asyncio.create_task(work())
            self._request.add_done_callback(self._forget_task)
        return await asyncio.shield(self._request)

    def _forget_task(self, task: asyncio.Task[Topic]) -> None:
        self._request = None
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio logs it if all callers were cancelled

    async def _open(self) -> Topic:
        # Creating a topic may take the cluster longer than an answer.
        patience = None if await self._describe_topic() else self._address.timeout_seconds
        self.opened = await self._connection.ask("looking for the topic", self._ready, patience_seconds=patience)
        self._checked_at = time.monotonic()
        return self.opened

    async def _compare(self) -> Topic:
        opened, topic = await self.open(), await self._still_there()
        if (topic.cluster, topic.id) != (opened.cluster, opened.id):
            raise LedgerMismatch(
                f"the topic of {self._address} was deleted and recreated while it was open (its id was {opened.id}, "
                f"now it is {topic.id}). Restore it, or open the memory again to continue with the new one"
            )
        if topic.partitions != opened.partitions:
            raise LedgerMismatch(
                f"the topic of {self._address} had {opened.partitions} partitions and has {topic.partitions} now: "
                "spaces would continue in other partitions, out of order. Copy it to a new topic of that size"
            )
        self._checked_at = time.monotonic()
        return opened

    async def _ready(self, client: KafkaClient) -> Topic:
        topic = await describe(client, self._address.topic)
        if topic is None and not self._may_create:
            raise LedgerMismatch(
                f"the topic of {self._address} is gone, or was never created, and this process does not create it. "
                "Restore it. A process that starts with RECALLOG_CREATE_LEDGER=true (the default) creates a new one"
            )
        if topic is None:
            await _create(client, self._address)
            raise kafka.LeaderNotAvailableError  # repeated until the topic exists
        if topic.leaderless:
            raise kafka.LeaderNotAvailableError(f"{topic.leaderless} of {topic.partitions} partitions have no leader")
        await self._check(client, topic)
        await self._connection.watch(client, self._address.topic)
        return topic

    async def _check(self, client: KafkaClient, topic: Topic) -> None:
        wanted = self._address.partitions
        if wanted is not None and wanted != topic.partitions:
            raise LedgerMismatch(
                f"the topic of {self._address} has {topic.partitions} partitions, the address says {wanted}: spaces "
                f"would continue in other partitions. Set partitions={topic.partitions}, or name another topic"
            )
        settings, described = await client.settings(self._address.topic), await client.describe(self._address.topic)
        self._take_size(settings)
        for fault in faults_of(self._address, settings, described.copies, {}, 0):
            if fault.effect in (Effect.LOSES, Effect.REFUSES):
                raise self._make_foreign(fault, "", ", or name another topic")
        self._read_again_after(SETTINGS_SECONDS)

    async def _still_there(self) -> Topic:
        since = time.monotonic()
        while (topic := await self._describe_topic()) is None:
            if time.monotonic() - since > _GONE_SECONDS:
                raise LedgerMismatch(
                    f"the topic of {self._address} is gone; it existed when the memory was opened. Restore it, or "
                    "open the memory again to create a new one"
                )
            await asyncio.sleep(0.1)
        return topic

    async def _describe_topic(self) -> Topic | None:
        name = self._address.topic
        return await self._connection.ask("asking for the topic", lambda client: describe(client, name))


async def describe(client: KafkaClient, name: str) -> Topic | None:
    """The topic; None if it does not exist. One request."""
    found = await client.describe(name)
    if found.error is kafka.UnknownTopicOrPartitionError:
        return None
    if found.error not in (kafka.NoError, kafka.LeaderNotAvailableError):
        raise found.error(name)
    return Topic(
        cluster=found.cluster,
        id=base64.urlsafe_b64encode(found.id).rstrip(b"=").decode(),  # as Kafka's own tools print it
        partitions=len(found.leaders),
        leaderless=sum(leader < 0 for leader in found.leaders),
    )


async def _create(client: KafkaClient, address: KafkaAddress) -> None:
    settings = {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "min.insync.replicas": str(address.insync),
        "compression.type": "producer",
        "max.message.bytes": str(MESSAGE_BYTES),
    }
    create = partial(client.create, address.topic, address.partitions or DEFAULT_PARTITIONS, address.replication)
    try:
        with suppress(kafka.InvalidConfigurationError):  # brokers before 3.6 do not have the setting of clocks
            return await create(settings | _CLOCKS, address.timeout_seconds)
        await create(settings, address.timeout_seconds)
    except kafka.InvalidReplicationFactorError as error:
        raise StorageError(
            f"the topic of {address} cannot be created with replication={address.replication}: {error} Add "
            "?replication=1 to the address for a single broker, which keeps one copy of each event"
        ) from error
