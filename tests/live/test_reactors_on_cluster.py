"""Reactors on a cluster: triggers of all kinds are answered once, whichever process dies; a rebuild triggers
nothing."""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from live.conftest import NewKafka, NewRedis
from live.support import PARTITIONS, SECONDS, Cluster, wait_until
from recallog import Event, Memory
from recallog_projections.concurrency import cancel_all
from recallog_schemas import triggers
from recallog_schemas.models.beliefs.triggers import ANSWERS, REFLECTION
from recallog_schemas.models.facts.triggers import EXTRACTION
from recallog_schemas.models.long_term.triggers import MIGRATION, RETRACTION
from recallog_schemas.models.workspace.triggers import DAILY
from recallog_streams.ledgers.kafka import agents
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.doorbells import TriggerTopic
from recallog_streams.ledgers.kafka.group import SESSION_SECONDS
from recallog_streams.ledgers.trigger_queue import Doorbell, QueueFailed
from support.chat_server import ChatServer
from support.events import event, recorded

pytestmark = pytest.mark.models("beliefs", "facts", "workspace")

ROLES = "views,reactors"
SPACES = [f"space-{number}" for number in range(12)]
CLOSING = ANSWERS | triggers.CLOSINGS


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


def making_due(space: str) -> list[Event]:
    """Events after which five triggers are due: a reflection, a migration, an extraction, a retraction and a daily
    log."""

    def retained(id_: str, *sources: str) -> Event:
        return event(
            "memory.retained", space=space, id=id_, payload={"text": f"About {id_}.", "sources": list(sources)}
        )

    def configured(**settings: object) -> Event:
        return event("agent.configured", space=space, payload=settings)

    asked = {"text": "Please remember to buy flour for Monday."}
    to_clerk: dict[str, Any] = {"agent": "user", "session": "s-2", "audience": ("clerk",), "payload": asked}
    note = {"namespace": ["working"], "key": "notes", "value": "LESSON: Bread burns after forty minutes."}
    return [
        configured(reflection_threshold=3, extract_facts=True),
        *(event("world.observed", space=space, agent="narrator") for _ in range(3)),
        event("item.put", space=space, payload=note),
        event("agent.spoke", space=space, session="s-1", payload={"text": "My favourite flour is rye."}),
        event("turn.ended", space=space, session="s-1", payload={}),
        event("session.ended", space=space, session="s-1", payload={}),
        *(event("user.injected", space=space, **to_clerk) for _ in range(6)),
        event("turn.ended", space=space, agent="clerk", session="s-2", payload={}),
        retained("e-1"),
        retained("e-2", "e-1"),
        retained("e-3", "e-2"),
        event("memory.erased", space=space, payload={"entries": ["e-1"]}),
    ]


def all_events(cluster: Cluster) -> list[Event]:
    return cluster.ask(recorded)


def pending(cluster: Cluster) -> set[str]:
    async def ask(memory: Memory) -> set[str]:
        await memory.catch_up()
        return {trigger.trigger for trigger in await memory.pending()}

    return cluster.ask(ask)


def until_answered(cluster: Cluster) -> None:
    wait_until(lambda: not pending(cluster), "every trigger is answered")


def closed(cluster: Cluster) -> Counter[str]:
    """How often each trigger was closed, by the kind of the trigger."""
    ids = {(each.space, each.id): each for each in all_events(cluster) if each.kind in CLOSING}
    return Counter(str(each.causation_id).partition("/")[0] for each in ids.values())


def test_triggers_of_all_kinds_are_answered_and_a_rebuild_triggers_nothing(cluster: Cluster) -> None:
    worker = cluster.worker(only=ROLES)
    worker.wait_until_live()
    cluster.publish([each for space in SPACES for each in making_due(space)])
    until_answered(cluster)
    expected = dict.fromkeys((REFLECTION, MIGRATION, EXTRACTION, RETRACTION, DAILY), len(SPACES))
    assert dict(closed(cluster)) == expected

    records = len(all_events(cluster))
    sent = worker.metrics()['recallog_triggers_published_total{repeated="no"}']
    cluster.ask(lambda memory: memory.admin.rebuild())
    cluster.publish([event(space="another")])
    until_answered(cluster)
    assert len(all_events(cluster)) == records + 1
    metrics = worker.metrics()
    assert metrics['recallog_triggers_published_total{repeated="no"}'] == sent
    answered = {name: value for name, value in metrics.items() if name.startswith("recallog_reactions_total")}
    assert sum(value for name, value in answered.items() if '"answered"' in name) == 5 * len(SPACES)
    assert worker.terminate() == 0


def test_an_agent_that_dies_after_the_model_s_answer_costs_a_repeat_and_no_second_answer(cluster: Cluster) -> None:
    asked = threading.Event()
    with ChatServer() as server:
        model = {"RECALLOG_MODEL": f"{server.url}#small"}
        first = cluster.worker(only=ROLES, **model)
        first.wait_until_live()
        wants = [event("agent.configured", space=space, payload={"reflection_threshold": 2}) for space in SPACES]
        seen = [event("world.observed", space=space, agent="narrator") for space in SPACES for _ in range(2)]
        cluster.publish([*wants, *seen])
        wait_until(lambda: len(server.requests) >= 3, "the model was asked")
        asked.set()
        first.kill()
        second = cluster.worker(only=ROLES, **model)
        second.wait_until_live(seconds=SESSION_SECONDS * 4)
        until_answered(cluster)
    events = [each for each in all_events(cluster) if each.kind in CLOSING]
    counted = {each.id for each in events}
    assert len(counted) == len(SPACES)

    async def beliefs(memory: Memory) -> list[int]:
        return [len((await memory.beliefs(space, "baker")).beliefs) for space in SPACES]

    assert cluster.ask(beliefs) == [1] * len(SPACES)


@pytest.mark.models("tiers")
def test_time_passes_in_a_silent_space_and_not_in_one_of_the_past(cluster: Cluster) -> None:
    hours = timedelta(hours=1)
    now = datetime.now(UTC)

    def kept(space: str, at: datetime) -> Event:
        payload = {"text": "Bread burns after forty minutes.", "tier": "fast"}
        return event("memory.retained", space=space, at=at, payload=payload)

    cluster.worker(only=ROLES).wait_until_live()
    cluster.publish([kept("silent", now - 3 * hours), kept("past", now - 24 * 90 * hours), kept("new", now)])

    def ticked() -> list[str]:
        return [each.space for each in all_events(cluster) if each.kind == "clock.ticked"]

    wait_until(ticked, "time has passed")
    until_answered(cluster)
    assert ticked() == ["silent"]
    assert [each.space for each in all_events(cluster) if each.kind == "memory.consolidated"] == ["silent"]


def test_agents_survive_an_outage_of_kafka_and_redis(
    own_kafka: NewKafka, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    kafka, redis = own_kafka(), own_redis()
    with Cluster(kafka.bootstrap, topic, redis.url, tmp_path) as cluster:
        worker = cluster.worker(only=ROLES)
        worker.wait_until_live()
        cluster.publish(making_due("village"))
        for server in (kafka, redis):
            server.kill()
            worker.wait_until(lambda health: not health["healthy"], f"/health is red without {server.name}")
            server.start()
            worker.wait_until_live()
        cluster.publish(making_due("castle"))
        until_answered(cluster)
        assert sum(closed(cluster).values()) == 10
        assert worker.terminate() == 0


def test_what_fell_due_during_repeated_faults_is_answered_soon_after_the_last_one(
    own_kafka: NewKafka, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    kafka, redis = own_kafka(), own_redis(fsync="no")
    with Cluster(kafka.bootstrap, topic, redis.url, tmp_path) as cluster:
        worker = cluster.worker(only=ROLES)
        worker.wait_until_live()
        rounds = 4
        for number in range(rounds):
            cluster.publish_only([each for space in SPACES for each in making_due(f"{space}-{number}")])
            for server in (redis, kafka):
                server.kill()
                worker.wait_until(lambda health: not health["healthy"], f"/health is red without {server.name}")
                server.start()
            worker.kill()
            worker = cluster.worker(only=ROLES)
        worker.wait_until_live(seconds=4 * SECONDS)
        until_answered(cluster)
        assert sum(closed(cluster).values()) == 5 * rounds * len(SPACES)
        sent = worker.metrics()
        # Each once at most: without Redis nothing is answered, since answers are sealed with keys that it has.
        assert sent.get('recallog_triggers_published_total{repeated="yes"}', 0.0) <= 5 * rounds * len(SPACES)
        assert worker.terminate() == 0


def test_workers_answer_with_reactors_of_ones_own_what_a_projection_makes_due(cluster: Cluster) -> None:
    own = ("--reactors", "support.own_promises:Keeping", "--projections", "support.own_promises:Promises")
    worker = cluster.worker(("-m", "recallog_service", "worker", "--only", ROLES, *own))
    worker.wait_until_live(2 * PARTITIONS)
    promises = [event(space=space, payload={"text": "I promise bread. I promise cake."}) for space in SPACES]
    cluster.publish(promises)
    wait_until(lambda: closed(cluster)["promise.due"] == 2 * len(SPACES), "every promise is kept")
    worker.kill()
    second = cluster.worker(("-m", "recallog_service", "worker", "--only", ROLES, *own))
    second.wait_until_live(2 * PARTITIONS, seconds=SESSION_SECONDS * 4)
    cluster.publish([promises[0], event(payload={"text": "I promise tarts."})])
    wait_until(lambda: closed(cluster)["promise.due"] == 2 * len(SPACES) + 1, "the new promise is kept")
    kept = {each.id: each.text for each in all_events(cluster) if each.kind == "agent.thought"}
    assert Counter(kept.values()) == {
        "I promise bread": len(SPACES),
        "I promise cake": len(SPACES),
        "I promise tarts": 1,
    }


def test_agents_that_join_before_the_broker_knows_their_topic_get_its_partitions(
    kafka: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As it is right after a broker has started. Faust's own look at the topics comes after five minutes."""
    address = KafkaAddress.parse(f"kafka://{kafka}/{topic}?replication=1")
    handled = asyncio.Event()

    async def one() -> int:
        return 1

    async def work() -> None:
        triggers_topic = TriggerTopic(address, one)
        consuming = triggers_topic.consume(f"{topic}.agents", lambda message: handled.set(), lambda: None)
        running = asyncio.create_task(consuming)
        try:
            async with asyncio.timeout(agents.START_SECONDS):
                while "Ignoring missing topic" not in caplog.text:
                    await asyncio.sleep(0.1)
            async with asyncio.timeout(6 * agents.METADATA_SECONDS):
                while not handled.is_set():
                    await triggers_topic.send([Doorbell("village", "baker", "reflection.due/x/1")])
                    await asyncio.sleep(0.5)
        finally:
            await cancel_all(running)
            await triggers_topic.close()

    asyncio.run(work())


def test_agents_that_fetch_nothing_fail_so_that_others_are_started(
    kafka: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "FETCHING_SECONDS", 3.0)
    address = KafkaAddress.parse(f"kafka://{kafka}/{topic}?replication=1")

    async def one() -> int:
        return 1

    async def work() -> None:
        triggers_topic = TriggerTopic(address, one)
        await triggers_topic.create()
        app, started = agents.app_of(address, f"{topic}.agents", triggers_topic.name, print), asyncio.Event()
        running = asyncio.create_task(agents.run(app, started.set))
        try:
            await asyncio.wait_for(started.wait(), agents.START_SECONDS)
            await asyncio.wait({running}, timeout=3 * agents.FETCHING_SECONDS)
            assert not running.done()  # an empty topic is fetched all the same
            consumer = app.consumer._thread._consumer
            assert consumer.assignment()
            consumer.pause(*consumer.assignment())
            with pytest.raises(QueueFailed, match="have not fetched partition 0"):
                await asyncio.wait_for(running, 10 * agents.FETCHING_SECONDS)
        finally:
            await cancel_all(running)
            await triggers_topic.close()

    asyncio.run(work())
