"""A topic whose settings change while it is in use, or whose records are deleted: it is noticed, and named."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.structs import TopicPartition

from live.conftest import NewRedis
from live.servers import Server, client_of, recallog
from live.support import SECONDS, Cluster
from recallog import Memory
from recallog_schemas.errors import StorageForeign
from recallog_streams.ledgers.kafka import topic as topics
from support.events import event, numbered, run

NOTICED_SECONDS = topics.SETTINGS_SECONDS + SECONDS
KEPT = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete", "min.insync.replicas": "1"}


def alter(bootstrap: str, topic: str, **changed: str) -> None:
    """Change settings of a topic; Kafka replaces all of them."""

    async def work() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            settings = KEPT | {name.replace("_", "."): value for name, value in changed.items()}
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=settings)])
        finally:
            await admin.close()

    run(work())


async def publish_until_refused(memory: Memory) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            await memory.publish(event(id="while"))


def delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    async def work() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            await admin.delete_records({TopicPartition(topic, partition): RecordsToDelete(before)})
        finally:
            await admin.close()

    run(work())


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


def test_a_worker_is_red_while_a_setting_loses_events_and_green_once_it_is_corrected(cluster: Cluster) -> None:
    worker, reacting = cluster.live_worker(), cluster.worker(only="reactors")
    reacting.wait_until(lambda health: health["healthy"], "it answers triggers")
    alter(cluster.bootstrap, cluster.topic, retention_ms="60000")
    for each in (worker, reacting):
        each.wait_until_red("retention.ms=60000", NOTICED_SECONDS)
        assert f"--alter --topic {cluster.topic} --add-config retention.ms=-1" in each.problems()
    assert worker.log.read_text().count("has retention.ms=60000") == 1
    alter(cluster.bootstrap, cluster.topic)
    for each in (worker, reacting):
        each.wait_until(lambda health: health["healthy"], "it is healthy again", NOTICED_SECONDS)
    cluster.publish(numbered(3))
    cluster.assert_views_are_the_fold(3)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"cleanup_policy": "compact"}, "cleanup.policy=compact"),
        ({"retention_bytes": "1000000"}, "retention.bytes=1000000"),
        ({"unclean_leader_election_enable": "true"}, "unclean.leader.election.enable=true"),
    ],
)
def test_nothing_more_is_acknowledged_by_a_topic_that_would_lose_it(
    cluster: Cluster, changed: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "SETTINGS_SECONDS", 0.0)
    monkeypatch.setattr(topics, "FAULTY_SECONDS", 0.0)

    async def scenario(memory: Memory) -> None:
        await memory.publish(event(id="before"))
        await asyncio.to_thread(alter, cluster.bootstrap, cluster.topic, **changed)
        with pytest.raises(StorageForeign, match=f"nothing was written: .* has {named}.*--add-config"):
            await publish_until_refused(memory)
        assert [fault.severe for fault in (await memory.admin.status()).faults] == [True]
        assert sum(await memory.admin.ledger_ends()) >= 1  # what is there can be read
        await asyncio.to_thread(alter, cluster.bootstrap, cluster.topic)
        async with asyncio.timeout(SECONDS):
            while (await memory.admin.status()).faults:
                await asyncio.sleep(0.05)
        await memory.publish(event(id="after"))

    cluster.ask(scenario)


def test_settings_that_refuse_events_and_deleted_records_are_named_in_health_readyz_and_status(
    cluster: Cluster,
) -> None:
    worker = cluster.live_worker()
    server = Server(cluster)
    (position, *_) = cluster.publish(numbered(5))

    async def ready() -> None:
        async with client_of(server, "no key") as client, asyncio.timeout(SECONDS):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.2)

    run(ready())  # it has opened the topic: one that refuses events is not opened
    alter(cluster.bootstrap, cluster.topic, min_insync_replicas="2")
    delete_records(cluster.bootstrap, cluster.topic, position.partition, 3)
    lost = f"has lost the first records of partition {position.partition} (begins at 3)"
    worker.wait_until_red("min.insync.replicas=2", NOTICED_SECONDS)
    worker.wait_until_red(lost, NOTICED_SECONDS)

    async def refused() -> str:
        async with client_of(server, "no key") as client, asyncio.timeout(NOTICED_SECONDS):
            while (answer := await client.get("/readyz")).status_code != 503 or lost not in answer.text:
                await asyncio.sleep(0.2)
            assert (await client.get("/healthz")).status_code == 200
            return answer.text

    text = run(refused())
    assert "min.insync.replicas=2" in text
    assert cluster.bootstrap not in text
    refused_open = recallog(cluster, "status", "--json")
    assert refused_open.code == 3, refused_open  # a topic that refuses events is not opened
    assert "--add-config min.insync.replicas=1" in refused_open.err
    alter(cluster.bootstrap, cluster.topic)
    assert lost in recallog(cluster, "status", "--json").json["faults"][0]["problem"]
    assert lost in " ".join(recallog(cluster, "status").out.split())


def test_a_topic_with_fewer_copies_than_the_address_requires_is_a_warning(cluster: Cluster) -> None:
    cluster.publish_only(numbered(1))
    ledger = str(cluster.settings.ledger).replace("&replication=1", "")
    cluster.settings = cluster.settings.model_copy(update={"ledger": ledger})
    cluster.live_worker()
    (fault,) = cluster.ask(lambda memory: memory.admin.status()).faults
    assert (fault.severe, "replication factor of 1" in fault.problem) == (False, True)
    cluster.ask(lambda memory: memory.admin.check_ready())
