"""A replaced ledger or store is detected and repaired or refused; its content never appears in an answer."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from live.conftest import NewKafka, NewRedis
from live.support import DEADLINE_SECONDS, PARTITIONS, SECONDS, Cluster, wait_until
from recallog import Event, Memory
from recallog_projections.rows import Changes
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_server import breaker_of
from recallog_projections.stores.store import Checkpoint
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_schemas.errors import LedgerMismatch, Rebuilding, RecallogError, StorageUnavailable
from recallog_streams.ledgers.kafka.address import KafkaAddress
from recallog_streams.ledgers.kafka.ledger import KafkaLedger
from support.events import event, numbered

SPACES = [f"space-{number}" for number in range(12)]


class Admin:
    """An operator with Kafka's own tools."""

    def __init__(self, cluster: Cluster) -> None:
        self._client = AdminClient({"bootstrap.servers": cluster.bootstrap})
        self._topic = cluster.topic

    def delete(self) -> None:
        self._client.delete_topics([self._topic])[self._topic].result(SECONDS)

    def create(self) -> None:
        def created() -> bool:
            try:
                new = NewTopic(self._topic, PARTITIONS, 1, config={"retention.ms": "-1", "retention.bytes": "-1"})
                self._client.create_topics([new])[self._topic].result(SECONDS)
            except KafkaException:  # the deletion is not over yet
                return False
            return True

        wait_until(created, "the topic is there again")

    def exists(self) -> bool:
        return self._topic in self._client.list_topics(timeout=SECONDS).topics

    def add_partitions(self) -> None:
        self._client.create_partitions([NewPartitions(self._topic, PARTITIONS + 4)])[self._topic].result(SECONDS)


class ReadSession(threading.Thread):
    """Repeats one query; `answers` collects the numbers of events in its answers."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._enough = threading.Event()
        self.answers: set[int] = set()
        self.answered = self.refused = 0
        self.unexpected: list[BaseException] = []

    def run(self) -> None:
        self._cluster.ask(self._ask)

    async def _ask(self, memory: Memory) -> None:
        while not self._enough.is_set():
            try:
                self.answers.add(len((await memory.episodic(SPACES[0], "baker", window=1_000)).memories))
                self.answered += 1
            except (Rebuilding, StorageUnavailable):
                self.refused += 1
            except RecallogError as error:
                self.unexpected.append(error)

    def stop(self) -> None:
        self._enough.set()
        self.join()


@contextmanager
def reading(cluster: Cluster) -> Iterator[ReadSession]:
    thread = ReadSession(cluster)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()
        assert thread.unexpected == []


def flush(cluster: Cluster) -> None:
    with closing(redis.Redis.from_url(cluster.redis_url)) as client:
        client.flushall()


def counts(cluster: Cluster) -> dict[str, int]:
    """Events by space in the present views, read directly from the store."""

    async def work() -> dict[str, int]:
        store, found = RedisStore(cluster.redis_url, breaker=breaker_of(cluster.redis_url, DEADLINE_SECONDS)), {}
        try:
            for partition in range(PARTITIONS):
                active = (await store.pointer(partition)).active
                for item in (await store.scan(active, activity.SPACES.name, limit=100)).items if active else ():
                    (span,) = (await store.read(partition, [RowKey(activity.SPACES.name, item.space)])).rows
                    found[item.space] = activity.SPACES.decode(span or b"").events
        finally:
            await store.close()
        return found

    return asyncio.run(work())


def events_of_turns(turns: range) -> list[Event]:
    return [event(space=space, turn=turn) for turn in turns for space in SPACES]


def test_flushed_or_restored_views_are_repaired_without_new_events(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    server = own_redis()
    with Cluster(kafka, topic, server.url, tmp_path) as cluster:
        worker = cluster.live_worker()
        cluster.publish(events_of_turns(range(20)))
        with reading(cluster) as readers:
            wait_until(lambda: readers.answers, "the readers have answers")
            flush(cluster)
            wait_until(lambda: readers.refused, "the loss shows")
            wait_until(lambda: counts_or_none(cluster) == dict.fromkeys(SPACES, 20), "the views are whole again")
            answered = readers.answered
            wait_until(lambda: readers.answered > answered, "readers are answered again")
        assert readers.answers == {20}
        cluster.assert_views_are_the_fold(20 * len(SPACES))

        server.copy_data(tmp_path / "older")
        cluster.publish(events_of_turns(range(20, 30)))
        with reading(cluster) as readers:
            wait_until(lambda: readers.answers, "the readers have answers")
            server.kill()
            server.restore_data(tmp_path / "older")
            server.start()
            wait_until(lambda: counts_or_none(cluster) == dict.fromkeys(SPACES, 30), "the views are whole again")
        assert readers.answers <= {20, 30}
        worker.wait_until_live()
        cluster.assert_views_are_the_fold(30 * len(SPACES))


def append(cluster: Cluster, events: Sequence[Event]) -> None:
    """Append as a producer does that knows nothing of the views."""

    async def work() -> None:
        ledger = KafkaLedger(KafkaAddress.parse(str(cluster.settings.ledger)), deadline_seconds=DEADLINE_SECONDS)
        try:
            await ledger.append(events)
        finally:
            await ledger.close()

    asyncio.run(work())


def test_an_open_memory_appends_nothing_to_a_topic_that_was_recreated(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        cluster.live_worker()
        cluster.publish(events_of_turns(range(10)))
        admin = Admin(cluster)

        async def refused(memory: Memory) -> list[RecallogError]:
            await memory.publish_many(events_of_turns(range(10, 11)))
            admin.delete()
            admin.create()
            errors = []
            for turn in range(20, 23):
                with pytest.raises(RecallogError) as raised:
                    await memory.publish_many(events_of_turns(range(turn, turn + 1)))
                errors.append(raised.value)
            return errors

        assert isinstance(cluster.ask(refused)[-1], LedgerMismatch)


def test_records_that_a_topic_has_lost_are_missed_before_an_append(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    """As after an unclean leader election: the views are ahead of the same topic."""
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        worker = cluster.live_worker()
        cluster.publish(events_of_turns(range(10)))
        worker.terminate()

        async def ahead() -> None:
            store = RedisStore(cluster.redis_url, breaker=breaker_of(cluster.redis_url, DEADLINE_SECONDS))
            try:
                for partition in range(PARTITIONS):
                    active = (await store.pointer(partition)).active
                    done = await store.checkpoint(active) if active else None
                    if active is not None and done is not None:
                        later = Checkpoint(done.offset + 5, done.record + 5, done.digest, done.chain)
                        await store.commit(active, done, later, Changes())
            finally:
                await store.close()

        asyncio.run(ahead())
        error = cluster.refusal(lambda memory: memory.publish(event(space=SPACES[0])))
        assert isinstance(error, LedgerMismatch)
        assert "is missing" in str(error)


def flip_rows(cluster: Cluster) -> None:
    """Flip one bit in every row of the table of spaces."""
    with closing(redis.Redis.from_url(cluster.redis_url)) as client:
        for key in client.scan_iter(f"*:rows:{activity.SPACES.name}"):
            for field, value in client.hgetall(key).items():
                client.hset(key, field, value[:-1] + bytes([value[-1] ^ 4]))


def flip_pointers(cluster: Cluster) -> None:
    with closing(redis.Redis.from_url(cluster.redis_url)) as client:
        for key in client.scan_iter("*:pointer"):
            value = client.hget(key, "active-generation")
            client.hset(key, "active-generation", value.replace(b'"id"', b'"ie"'))


@pytest.mark.parametrize("damage", [flip_rows, flip_pointers])
def test_damaged_views_are_repaired_without_new_events(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path, damage: Callable[[Cluster], None]
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        worker = cluster.live_worker()
        cluster.publish(events_of_turns(range(20)))
        assert counts(cluster) == dict.fromkeys(SPACES, 20)
        damage(cluster)
        wait_until(lambda: counts_or_none(cluster) == dict.fromkeys(SPACES, 20), "the views are whole again")
        worker.wait_until_live()
        cluster.assert_views_are_the_fold(20 * len(SPACES))


def counts_or_none(cluster: Cluster) -> dict[str, int] | None:
    try:
        return counts(cluster)
    except (Rebuilding, StorageUnavailable):
        return None


def test_another_topic_of_the_same_name_is_refused_until_the_views_are_deleted(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        worker, admin = cluster.live_worker(), Admin(cluster)
        cluster.publish(events_of_turns(range(10)))
        before = counts(cluster)

        admin.delete()
        admin.create()
        error = cluster.refusal(lambda memory: memory.publish_many(events_of_turns(range(30))))
        assert isinstance(error, LedgerMismatch)
        assert "recallog rebuild --drop" in str(error)
        append(cluster, events_of_turns(range(30)))
        worker.wait_until_red("the views were computed from another ledger")
        assert counts(cluster) == before  # nothing of the new topic is in them

        cluster.ask(lambda memory: memory.admin.rebuild(drop=True))
        worker.wait_until_live()
        cluster.assert_views_are_the_fold(30 * len(SPACES))
        assert counts(cluster) == dict.fromkeys(SPACES, 30)

        admin.delete()
        worker.wait_until_red("is gone")
        assert not admin.exists()  # an operator who restores it finds its name free
        assert counts(cluster) == dict.fromkeys(SPACES, 30)


def test_added_partitions_are_refused_by_name(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        worker = cluster.live_worker()
        cluster.publish(events_of_turns(range(10)))
        Admin(cluster).add_partitions()
        worker.wait_until_red(f"has {PARTITIONS + 4} partitions, the address says {PARTITIONS}")
        error = cluster.refusal(lambda memory: memory.publish_many(numbered(1)))
        assert isinstance(error, LedgerMismatch)
        assert worker.process.poll() is None


def test_the_ledger_of_another_cluster_is_refused_under_the_same_views(
    kafka: str, topic: str, own_kafka: NewKafka, own_redis: NewRedis, tmp_path: Path
) -> None:
    url = own_redis().url
    with Cluster(kafka, topic, url, tmp_path) as cluster:
        worker = cluster.live_worker()
        cluster.publish(events_of_turns(range(10)))
        with Cluster(own_kafka().bootstrap, topic, url, tmp_path) as other:
            append(other, events_of_turns(range(20)))
            stranger = other.worker()
            stranger.wait_until_red("the views were computed from another ledger")
            worker.wait_until_live()
            cluster.assert_views_are_the_fold(10 * len(SPACES))
