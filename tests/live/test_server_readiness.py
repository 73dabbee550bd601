"""When a server of the doors answers: it waits for Redis, and says which partitions cannot be served."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import redis as redis_client

from live.conftest import NewRedis
from live.servers import Server, created_key
from live.support import DEADLINE_SECONDS, PARTITIONS, SECONDS, Cluster, wait_until
from recallog_projections.stores.redis import RedisStore
from recallog_projections.stores.redis_server import breaker_of
from support.events import event, run


@pytest.fixture
def cluster(kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        yield cluster


def asked(server: Server, path: str, key: str | None = None, host: str = "127.0.0.1") -> httpx.Response:
    headers = {"Host": host} | ({} if key is None else {"Authorization": f"Bearer {key}"})
    return httpx.get(f"{server.url}{path}", headers=headers, timeout=SECONDS)


def test_a_server_that_starts_while_redis_is_down_waits_and_then_serves(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    redis = own_redis()
    with Cluster(kafka, topic, redis.url, tmp_path) as cluster:
        cluster.live_worker()
        key = created_key(cluster, "read", "publish")
        cluster.publish([event(space="village")])
        redis.kill()
        server = Server(cluster)
        assert asked(server, "/healthz").status_code == 200
        for path in ("/readyz", "/v1/spaces", "/openapi.json"):
            answer = asked(server, path, key)
            assert (answer.status_code, answer.json()["title"]) == (503, "StorageUnavailable")
        redis.start()
        wait_until(lambda: asked(server, "/readyz").status_code == 200, "the server is ready")
        assert asked(server, "/v1/spaces", key, host="memory.example.org").status_code == 200
        assert asked(server, "/v1/spaces").status_code == 401


def test_readyz_names_the_partitions_whose_views_cannot_be_read(cluster: Cluster) -> None:
    worker, server = cluster.live_worker(), Server(cluster)
    cluster.publish([event(space=f"space-{number}") for number in range(24)])
    wait_until(lambda: asked(server, "/readyz").status_code == 200, "the server is ready")
    worker.kill()

    async def without_views(*partitions: int) -> None:
        store = RedisStore(cluster.redis_url, breaker=breaker_of(cluster.redis_url, DEADLINE_SECONDS))
        try:
            for partition in partitions:
                active = (await store.pointer(partition)).active
                assert active is not None
                with redis_client.Redis.from_url(cluster.redis_url) as client:
                    client.delete(*client.scan_iter(f"*{active.id}:checkpoint"))
        finally:
            await store.close()

    run(without_views(2, 5))
    answer = asked(server, "/readyz")
    assert answer.status_code == 503
    assert f"2 of {PARTITIONS} partitions cannot be read: 2 (Rebuilding), 5 (Rebuilding)" in answer.json()["detail"]
    assert asked(server, "/healthz").status_code == 200
    cluster.worker()
    wait_until(lambda: asked(server, "/readyz").status_code == 200, "a worker has built the views again", 3 * SECONDS)
