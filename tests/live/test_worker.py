"""Workers join, leave, crash, pause, and lose Kafka or Redis: others take over, and the views equal a fold."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pytest

from live.conftest import NewKafka, NewRedis
from live.support import PARTITIONS, Cluster, Worker, wait_until
from recallog import Memory
from recallog_schemas.errors import StorageUnavailable, UnknownOutcome
from recallog_streams.ledgers.kafka.group import SESSION_SECONDS
from support.events import event, numbered

SPACES = [f"space-{number}" for number in range(24)]
"""Enough for every partition."""


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


class Producing(threading.Thread):
    """Publishes to all spaces until it is stopped. Calls with an unknown outcome are repeated."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._enough = threading.Event()
        self._error: BaseException | None = None
        self.published = 0

    def run(self) -> None:
        try:
            self._cluster.ask(self._publish)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self._error = error

    async def _publish(self, memory: Memory) -> None:
        turn = 0
        while not self._enough.is_set():
            turn += 1
            events = [event(space=space, turn=turn) for space in SPACES]
            while True:
                try:
                    await memory.publish_many(events)
                    break
                except (UnknownOutcome, StorageUnavailable):
                    continue
            self.published += len(events)
            await asyncio.sleep(0.02)

    def stop(self) -> int:
        self._enough.set()
        self.join()
        if self._error is not None:
            raise self._error
        return self.published


@contextmanager
def producing(cluster: Cluster) -> Iterator[Producing]:
    thread = Producing(cluster)
    thread.start()
    try:
        yield thread
    finally:
        thread.stop()


def wait_until_shared(*workers: Worker) -> None:
    """Wait until all partitions are live, each in one of `workers`, and each worker has some."""

    def shared() -> bool:
        kept = [sorted(worker.partitions()) for worker in workers]
        return all(kept) and sorted(chain.from_iterable(kept)) == list(range(PARTITIONS))

    wait_until(shared, f"{len(workers)} workers share the partitions")


def records_of(cluster: Cluster) -> int:
    async def total(memory: Memory) -> int:
        return sum(await memory.admin.ledger_ends())

    return cluster.ask(total)


def test_workers_share_the_partitions_and_take_over_from_those_that_stop_crash_or_freeze(cluster: Cluster) -> None:
    first = cluster.live_worker()
    second = cluster.worker()
    wait_until_shared(first, second)
    with producing(cluster):
        leaving = threading.Thread(target=first.terminate)
        leaving.start()
        assert second.wait_until_live() < SESSION_SECONDS - 2  # it left the group
        leaving.join()
        assert first.process.returncode == 0

        third = cluster.worker()
        wait_until_shared(second, third)
        third.kill()
        second.wait_until_live()

        fourth = cluster.worker()
        wait_until_shared(second, fourth)
        second.pause()
        fourth.wait_until_live()
        moved = records_of(cluster)
        wait_until(lambda: records_of(cluster) > moved + 200, "the others have gone on")
        second.resume()
        wait_until_shared(second, fourth)
    wait_until(lambda: second.health().get("healthy", False), "the worker that was paused is healthy")
    cluster.assert_views_are_the_fold(records_of(cluster))


def test_a_worker_survives_an_outage_of_kafka_or_redis_and_names_it(
    own_kafka: NewKafka, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    kafka, redis = own_kafka(), own_redis()
    kafka.kill()
    redis.kill()
    with Cluster(kafka.bootstrap, topic, redis.url, tmp_path) as cluster:
        worker = cluster.worker()
        worker.wait_until_red("cannot be reached")
        kafka.start()
        worker.wait_until_red(f"the Redis at {redis.address} cannot be reached")
        redis.start()
        worker.wait_until_live()

        with producing(cluster) as producer:
            published = producer.published
            redis.kill()
            worker.wait_until_red("cannot be reached")
            wait_until(lambda: producer.published > published + 500, "producers go on without Redis")
            redis.start()
            worker.wait_until_live()

            redis.pause()
            worker.wait_until_red("has not answered")
            redis.resume()
            worker.wait_until_live()

            kafka.kill()
            worker.wait_until_red("the ledger has not answered")
            kafka.start()
            worker.wait_until_live()
        cluster.assert_views_are_the_fold(records_of(cluster))

        kafka.kill()
        redis.kill()
        worker.wait_until_red("answer")
        assert worker.terminate() == 0


def test_unusable_settings_end_the_process(cluster: Cluster) -> None:
    cluster.publish_only(numbered(3))
    cluster.settings = cluster.settings.model_copy(
        update={"ledger": str(cluster.settings.ledger).replace(f"partitions={PARTITIONS}", "partitions=3")}
    )
    worker = cluster.worker()
    assert worker.process.wait(60) == 1
    assert f"has {PARTITIONS} partitions, the address says 3" in worker.log.read_text()
