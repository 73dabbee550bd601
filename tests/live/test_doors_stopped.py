"""Kafka or Redis stopped (SIGSTOP) or killed under a server of the doors: errors that say so, and nothing lost."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
from deploy.local import LocalKafka, LocalRedis
from deploy.local.server import LocalServer

from live.conftest import NewKafka, NewRedis
from live.servers import Reader, Server, client_of, created_key
from live.support import SECONDS, Cluster
from recallog import Remote
from support.events import event, run
from support.http import problem

ANSWER_SECONDS_MAX = 30.0
"""A publisher gives up after 3 s, and everything else after 2 s, on a machine that does not stand still."""
SPACE = "village"
EVENTS = f"/v1/spaces/{SPACE}/events"
EPISODIC = f"/v1/spaces/{SPACE}/agents/baker/episodic"


@dataclass
class Stoppable:
    """A cluster with a worker and a server."""

    kafka: LocalKafka
    redis: LocalRedis
    server: Server
    key: str


@pytest.fixture(scope="module")
def site(own_kafka: NewKafka, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stoppable]:
    kafka, redis, folder = own_kafka(), own_redis(), tmp_path_factory.mktemp("doors-stopped")
    options = "&timeout_seconds=3"
    with Cluster(kafka.bootstrap, "recallog.doors", redis.url, folder, options=options) as cluster:
        cluster.live_worker()
        server = Server(cluster)
        yield Stoppable(kafka, redis, server, created_key(cluster, "read", "publish", "tail"))


def stop(server: LocalServer) -> Callable[[], object]:
    """Stop it; the function that lets it go on."""
    server.pause()
    return server.resume


def kill(server: LocalServer) -> Callable[[], object]:
    """Kill it; the function that starts it again."""
    server.kill()
    return server.start


async def refused(answer: "asyncio.Future[httpx.Response] | asyncio.Task[httpx.Response]") -> str:
    """The title of the problem of a request that fails in time, and can succeed later."""
    async with asyncio.timeout(ANSWER_SECONDS_MAX):
        status, title, _ = problem(await answer)
    assert status == 503
    return title


@pytest.mark.parametrize("interrupt", [stop, kill])
@pytest.mark.parametrize("which", ["kafka", "redis"])
def test_a_server_says_that_it_cannot_answer_now_and_recovers(
    site: Stoppable, which: str, interrupt: Callable[[LocalServer], Callable[[], object]]
) -> None:
    def said(name: str) -> dict[str, object]:
        payload = {"text": name}
        return {
            "id": f"{which}-{interrupt.__name__}-{name}",
            "agent": "baker",
            "kind": "agent.spoke",
            "payload": payload,
        }

    async def work() -> None:
        async with client_of(site.server, site.key) as client, Remote(site.server.url, site.key) as remote:
            begin = (await client.post(EVENTS, json=said("first"))).raise_for_status().json()["items"][0]
            start = f"{begin['partition']}:{begin['offset']}"
            reader = Reader([site.server], site.key, EVENTS, start)
            seen = Reader([site.server], site.key, f"/v1/spaces/{SPACE}/agents/baker/stream", start)
            last = said("last")["id"]
            async with asyncio.timeout(2 * SECONDS), asyncio.TaskGroup() as group:
                for each in (reader, seen):
                    group.create_task(each.read_until(str(last)))
                while not (reader.ids and seen.ids):
                    await asyncio.sleep(0.05)
                go_on = interrupt(site.kafka if which == "kafka" else site.redis)
                try:
                    of_remote = group.create_task(remote.publish(event(space=SPACE, id=str(said("remote")["id"]))))
                    asked = [client.post(EVENTS, json=said("during")), client.get("/readyz")]
                    if which == "redis":  # where keys and views are
                        asked += [client.get(EPISODIC), client.get("/metrics"), client.post("/mcp", json={})]
                    titles = [await refused(group.create_task(each)) for each in asked]
                    assert set(titles[1:]) == {"StorageUnavailable"}
                    assert set(titles) <= {"StorageUnavailable", "UnknownOutcome"}
                    if which == "kafka":
                        assert (await client.get(EPISODIC)).status_code == 200
                    assert (await client.get("/healthz")).status_code == 200
                finally:
                    await asyncio.to_thread(go_on)
                began = time.monotonic()
                while (await client.get("/readyz")).status_code != 200:
                    await asyncio.sleep(0.1)
                print(f"ready again after {time.monotonic() - began:.1f} s")
                await of_remote
                answer = await client.post(EVENTS, json=[said("during"), said("last")])
                assert answer.status_code == 201, answer.text
                position = answer.json()["items"][-1]
            after = f"{position['partition']}:{position['offset']}"
            view = await client.get(EPISODIC, params={"after": after, "window": 4})
            expected = [said(name)["id"] for name in ("first", "remote", "during", "last")]
            assert {each["event"]["id"] for each in view.raise_for_status().json()["memories"]} == set(expected)
            assert reader.positions == sorted(set(reader.positions))
            assert set(reader.ids) == set(expected)
            assert sorted(seen.ids) == sorted(map(str, expected))

    run(work())
    assert "Traceback" not in site.server.log
    assert "defect" not in site.server.log
