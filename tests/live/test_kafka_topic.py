"""The topic of a ledger: creation, refused topics, and detection of a recreated one."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from live.support import DEADLINE_SECONDS
from recallog_schemas.errors import LedgerMismatch, StorageError, StorageForeign
from recallog_streams.ledgers.kafka import topic as topics
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from recallog_streams.ledgers.trigger_queue import Doorbell
from support.events import numbered, run


@asynccontextmanager
async def administrator(kafka: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


@asynccontextmanager
async def opened(kafka: str, topic: str, options: str = "replication=1&partitions=1") -> AsyncIterator[KafkaLedger]:
    ledger = KafkaLedger(KafkaAddress.parse(f"kafka://{kafka}/{topic}?{options}"), deadline_seconds=DEADLINE_SECONDS)
    try:
        await ledger.open()
        yield ledger
    finally:
        await ledger.close()


async def create(kafka: str, topic: str, settings: Mapping[str, str] | None = None, partitions: int = 1) -> None:
    async with administrator(kafka) as admin:
        made = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dict(settings or {}))])
        assert made.topic_errors[0][1] == 0, made


async def delete(kafka: str, topic: str) -> None:
    async with administrator(kafka) as admin:
        await admin.delete_topics([topic])
        while topic in await admin.list_topics():
            await asyncio.sleep(0.02)


def shift_clock(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """Put the clock of this process, not that of the broker, ahead."""
    seconds, nanoseconds = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: seconds() + 3_600 * hours)
    monkeypatch.setattr(time, "time_ns", lambda: nanoseconds() + round(3_600e9 * hours))


KEPT = {"retention.ms": "-1"}


# Creation.


def test_a_missing_topic_is_created_with_unlimited_retention(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(kafka, topic, "replication=1") as ledger:
            assert (await ledger.manifest()).partitions == 32
        async with administrator(kafka) as admin:
            (response,) = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
        settings = {name: value for name, value, *_ in response.resources[0][4]}
        assert settings["cleanup.policy"] == "delete"
        assert settings["retention.ms"] == settings["retention.bytes"] == "-1"
        assert settings["min.insync.replicas"] == "1"
        assert settings["compression.type"] == "producer"
        assert int(settings["max.message.bytes"] or 0) > 256 * 1024

    run(scenario())


def test_a_writer_whose_clock_is_up_to_a_day_ahead_writes_events_and_triggers(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default of Kafka 4 is an hour: a worker whose clock had jumped answered no trigger until it was restarted."""

    async def scenario() -> None:
        async with opened(kafka, topic) as ledger:
            shift_clock(monkeypatch, hours=23)
            await ledger.append(numbered(1))
            queue = ledger.trigger_queue()
            try:
                await queue.create()
                await queue.send([Doorbell("village", "baker", "a trigger")])
            finally:
                await queue.close()
            monkeypatch.undo()
            shift_clock(monkeypatch, hours=25)
            with pytest.raises(StorageError, match=r"nothing was written: the clock of this machine.*Correct it"):
                await ledger.append(numbered(2)[1:])

    run(scenario())


def test_concurrent_creators_create_one_topic(kafka: str, topic: str) -> None:
    async def manifest() -> object:
        async with opened(kafka, topic, "replication=1&partitions=5") as ledger:
            await ledger.append(numbered(1))
            return await ledger.manifest()

    async def scenario() -> None:
        first, *others = await asyncio.gather(*(manifest() for _ in range(8)))
        assert others == [first] * 7

    run(scenario())


def test_an_error_about_too_few_brokers_says_what_to_add(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        with pytest.raises(StorageError, match=r"replication=3.*\?replication=1"):
            async with opened(kafka, topic, "partitions=1"):
                pass

    run(scenario())


def test_a_missing_topic_is_not_created_where_that_is_off(kafka: str, topic: str) -> None:
    address = KafkaAddress.parse(f"kafka://{kafka}/{topic}?replication=1&partitions=1")

    async def scenario() -> None:
        ledger, source = (
            KafkaLedger(address, create=False, deadline_seconds=DEADLINE_SECONDS),
            KafkaLedger(address).record_source("workers"),
        )
        try:
            for opening in (ledger.open, source.start):
                with pytest.raises(LedgerMismatch, match="RECALLOG_CREATE_LEDGER"):
                    await opening()
        finally:
            await source.stop()
            await ledger.close()
        async with administrator(kafka) as admin:
            assert topic not in await admin.list_topics()
            await create(kafka, topic, KEPT)
        async with opened(kafka, topic) as ledger:
            await ledger.append(numbered(1))

    run(scenario())


# Refused topics.


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({**KEPT, "cleanup.policy": "compact"}, "cleanup.policy=compact.*cleanup.policy=delete"),
        ({**KEPT, "cleanup.policy": "compact,delete"}, "cleanup.policy=compact,delete"),
        ({"retention.ms": "604800000"}, "retention.ms=604800000.*--add-config retention.ms=-1"),
        ({}, "retention.ms=604800000"),
        ({**KEPT, "retention.bytes": "1000000"}, "retention.bytes=1000000.*retention.bytes=-1"),
        ({**KEPT, "max.message.bytes": "100000"}, "max.message.bytes=100000"),
    ],
)
def test_a_topic_that_would_lose_history_is_refused_with_the_name_of_the_setting(
    kafka: str, topic: str, settings: Mapping[str, str], named: str
) -> None:
    async def scenario() -> None:
        await create(kafka, topic, settings)
        with pytest.raises(StorageForeign, match=named):
            async with opened(kafka, topic):
                pass

    run(scenario())


def test_a_topic_whose_number_of_partitions_differs_from_the_address_is_refused(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        await create(kafka, topic, KEPT, partitions=3)
        with pytest.raises(LedgerMismatch, match="has 3 partitions, the address says 4"):
            async with opened(kafka, topic, "partitions=4"):
                pass
        async with opened(kafka, topic, "replication=1") as ledger:
            assert (await ledger.manifest()).partitions == 3

    run(scenario())


# Recreated and deleted topics.


def test_a_manifest_names_cluster_topic_and_its_id(kafka: str, topic: str) -> None:
    async def scenario() -> None:
        async with opened(kafka, topic) as ledger:
            manifest = await ledger.manifest()
        assert manifest.ledger.startswith("kafka:")
        cluster, name, id_ = manifest.ledger.removeprefix("kafka:").split("/")
        assert (name, len(cluster), len(id_), manifest.partitioner) == (topic, 22, 22, "murmur2")

    run(scenario())


def test_added_partitions_are_detected(kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "CHECK_SECONDS", 0.0)

    async def scenario() -> None:
        async with opened(kafka, topic) as ledger, administrator(kafka) as admin:
            before = await ledger.manifest()
            await admin.create_partitions({topic: NewPartitions(total_count=3)})
            while (after := await ledger.manifest()) == before:
                await asyncio.sleep(0.02)
            assert (after.partitions, after.ledger) == (3, before.ledger)
            for call in (ledger.ends, lambda: ledger.append(numbered(1))):
                with pytest.raises(LedgerMismatch, match="had 1 partitions and has 3 now"):
                    await call()

    run(scenario())


def test_a_recreated_topic_is_detected_and_not_written_to(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "CHECK_SECONDS", 0.0)

    async def scenario() -> None:
        async with opened(kafka, topic) as ledger:
            before = await ledger.manifest()
            await ledger.append(numbered(3))
            await delete(kafka, topic)
            await create(kafka, topic, KEPT)
            after = await ledger.manifest()
            assert after.ledger != before.ledger
            with pytest.raises(LedgerMismatch, match="deleted and recreated"):
                await ledger.append(numbered(1))
            with pytest.raises(LedgerMismatch, match="deleted and recreated"):
                await anext(ledger.read(0, 0, 3))
        async with opened(kafka, topic) as again:
            assert await again.manifest() == after
            assert await again.ends() == [0]

    run(scenario())


def test_a_deleted_topic_is_detected_and_not_recreated(kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_GONE_SECONDS", 0.2)

    async def scenario() -> None:
        async with opened(kafka, topic) as ledger, administrator(kafka) as admin:
            await ledger.append(numbered(1))
            await delete(kafka, topic)
            with pytest.raises(LedgerMismatch, match="is gone"):
                await ledger.manifest()
            assert topic not in await admin.list_topics()

    run(scenario())
