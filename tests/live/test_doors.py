"""Servers of the doors on a cluster: several processes answer alike, and one may be killed at any moment."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from live.conftest import NewRedis
from live.servers import Reader, Server, client_of, created_key, recallog
from live.support import SECONDS, Cluster, wait_until
from recallog import Event, Remote
from support.events import event, run
from support.http import streaming

SPACES = [f"acme/{name}" for name in ("shop", "farm", "mill", "dock", "mine", "yard")]
REVOKED_SECONDS = 1.0


@dataclass
class Site:
    """A cluster with a worker, two servers, and the key of an operator."""

    cluster: Cluster
    servers: tuple[Server, Server]
    key: str

    def clients(self) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        first, second = self.servers
        return client_of(first, self.key), client_of(second, self.key)


@pytest.fixture(scope="module")
def site(kafka: str, own_redis: NewRedis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("doors")
    with Cluster(kafka, f"recallog.{folder.name}", own_redis().url, folder) as cluster:
        cluster.live_worker()
        servers = Server(cluster), Server(cluster)
        key = created_key(cluster, "read", "publish", "tail", "forget", "operate")
        yield Site(cluster, servers, key)


def events_of(space: str) -> str:
    return f"/v1/spaces/{space.replace('/', '%2F')}/events"


def stream_of(space: str, agent: str) -> str:
    return f"/v1/spaces/{space.replace('/', '%2F')}/agents/{agent}/stream"


def status_of(url: str) -> int:
    return httpx.get(url, timeout=SECONDS).status_code


def spoken(id_: str, text: str = "Bread!") -> dict[str, Any]:
    return {"id": id_, "agent": "baker", "kind": "agent.spoke", "payload": {"text": text}}


async def published(client: httpx.AsyncClient, space: str, *events: dict[str, Any]) -> str:
    """The position of the last event."""
    answer = await client.post(events_of(space), json=list(events))
    assert answer.status_code == 201, answer.text
    last = answer.json()["items"][-1]
    return f"{last['partition']}:{last['offset']}"


def test_both_servers_show_what_one_has_acknowledged(site: Site) -> None:
    async def work() -> None:
        first, second = site.clients()
        async with first, second:
            for turn, space in enumerate(SPACES * 3):
                position = await published(first, space, spoken(f"own-{turn}", f"turn {turn}"))
                for client in (first, second):
                    path = f"/v1/spaces/{space.replace('/', '%2F')}/agents/baker/episodic"
                    answer = await client.get(path, params={"after": position, "window": 1})
                    assert [each["event"]["id"] for each in answer.json()["memories"]] == [f"own-{turn}"]

    run(work())


def test_streams_of_several_partitions_go_on_at_another_server_after_one_was_killed(site: Site) -> None:
    """Tails show what the ledger has, an event that was sent twice too; what an agent sees has each event once."""
    batches = [[f"{number}-{each}" for each in range(10)] for number in range(30)]
    ids = [each for batch in batches for each in batch]
    killed = Server(site.cluster)
    servers = (killed, site.servers[1])

    async def publish(space: str, reached: asyncio.Event) -> int:
        """How many batches were sent again."""
        repeated, server = 0, iter(cycle(servers))
        client = client_of(next(server), site.key)
        for number, batch in enumerate(batches):
            while True:
                try:
                    await published(client, space, *map(spoken, batch))
                    break
                except httpx.TransportError:
                    repeated += 1
                    await client.aclose()
                    client = client_of(next(server), site.key)
            if number == len(batches) // 3:
                reached.set()
        await client.aclose()
        return repeated

    async def work() -> None:
        spaces = [f"tail/{each}" for each in range(5)]
        first, _ = site.clients()
        starts = {space: await published(first, space, spoken("begin")) for space in spaces}
        await first.aclose()
        assert len({position.partition(":")[0] for position in starts.values()}) > 2
        tails = [Reader(servers, site.key, events_of(space), starts[space]) for space in spaces]
        seen = [Reader(servers, site.key, stream_of(space, "baker"), starts[space]) for space in spaces]
        reached = asyncio.Event()
        async with asyncio.timeout(2 * SECONDS), asyncio.TaskGroup() as group:
            for reader in (*tails, *seen):
                group.create_task(reader.read_until(ids[-1]))
            while not all(reader.ids for reader in (*tails, *seen)):
                await asyncio.sleep(0.05)
            publishing = [group.create_task(publish(space, reached)) for space in spaces]
            await reached.wait()
            killed.kill()
        for reader in (*tails, *seen):
            assert reader.visits >= 2
            assert reader.positions == sorted(set(reader.positions))
        for tail, published_ in zip(tails, publishing, strict=True):
            assert list(dict.fromkeys(tail.ids)) == ["begin", *ids]
            assert len(tail.ids) - len(ids) - 1 <= 10 * published_.result()
        assert [reader.ids for reader in seen] == [["begin", *ids]] * len(spaces)

    run(work())


def test_a_key_is_accepted_by_servers_that_run_and_refused_once_it_is_revoked(site: Site) -> None:
    key = created_key(site.cluster, "read", "publish", space="acme/*", agent="baker")
    id_ = key.split("_")[1]

    async def work() -> None:
        async with client_of(site.servers[0], key) as client, client_of(site.servers[1], key) as other:
            position = await published(client, SPACES[0], spoken("kept"))
            for space in ("rival/lab", "nowhere"):
                assert (await other.get(f"/v1/spaces/{space.replace('/', '%2F')}/scene")).status_code == 404
            path = stream_of(SPACES[0], "baker")
            async with streaming(client, f"{path}?start={position}") as stream, streaming(other, path) as silent:
                assert json.loads((await stream.next())["data"])["event"]["id"] == "kept"
                revoked = await asyncio.to_thread(recallog, site.cluster, "keys", "revoke", id_)
                assert revoked.code == 0, revoked.err
                for each in (client, other):
                    assert (await each.get("/v1/spaces")).status_code == 401
                await asyncio.sleep(REVOKED_SECONDS)
                async with client_of(site.servers[0], site.key) as operator:
                    await published(operator, SPACES[0], spoken("secret"))
                for each in (stream, silent):
                    frame = await each.next()
                    assert (frame["event"], json.loads(frame["data"])["reason"]) == ("end", "unauthorized")

    run(work())
    assert key not in recallog(site.cluster, "keys", "list", "--json").out


@pytest.mark.models("items")
def test_a_remote_memory_is_the_memory(site: Site) -> None:
    async def work() -> None:
        async with Remote(site.servers[0].url, site.key) as memory, Remote(site.servers[1].url, site.key) as other:
            said = [event(space="remote", turn=turn, payload={"text": f"turn {turn}"}) for turn in range(50)]
            positions = await memory.publish_many(said)
            assert await memory.publish(said[7]) is not None
            kept = await memory.items.put("remote", "baker", "notes", "miller", "nine sacks")
            view = await other.episodic("remote", "baker", window=100, after=kept.position)
            assert [each.event.id for each in view.memories if each.event.kind == "agent.spoke"] == [
                each.id for each in said
            ]
            assert (await other.items.get("remote", "baker", "notes", "miller")).format() == "nine sacks"
            tailed = other.tail("remote", start=str(positions[0]))
            found: list[Event] = [(await anext(tailed)).event for _ in said]
            await tailed.aclose()
            assert [each.id for each in found] == [each.id for each in said]

    run(work())


def test_what_one_server_has_forgotten_no_other_recalls(site: Site) -> None:
    async def call(client: Client, tool: str, **arguments: Any) -> str:
        (content,) = (await client.call_tool(tool, arguments)).content
        assert isinstance(content, TextContent)
        return content.text

    async def work() -> None:
        key = await asyncio.to_thread(created_key, site.cluster, space="acme/mcp", agent="anna")
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            first, second = (
                Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) for server in site.servers
            )
            async with first, second:
                stored = await call(first, "retain_memory", content="Acme prefers React.")
                id_ = stored.removeprefix("Stored memory ").partition(":")[0]
                assert id_ in await call(second, "recall_memory", query="What does Acme prefer?")
                assert await call(first, "forget_memory", memory_id=id_) == f"Memory {id_} forgotten"
                for client in (second, first):
                    answer = await call(client, "recall_memory", query="What does Acme prefer?")
                    assert answer == "No relevant memories found."

    run(work())


def test_a_job_shows_how_far_it_is_and_only_the_server_that_runs_it_knows_it(site: Site) -> None:
    async def frames(client: httpx.AsyncClient, path: str) -> Sequence[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        async with streaming(client, path) as stream:
            while not found or found[-1][0] == "progress":
                frame = await stream.next()
                if "event" in frame:
                    found.append((frame["event"], json.loads(frame["data"])))
        return found

    async def work() -> None:
        first, second = site.clients()
        async with first, second:
            for space in ("jobs-1", "jobs-2"):
                await published(first, space, *(spoken(f"e-{turn}") for turn in range(3_000)))
            before = (await first.get("/v1/status")).json()["partitions"]
            for operation in ("rebuild", "verify"):
                begun = await first.post(f"/v1/admin/{operation}", json={})
                assert begun.status_code == 202
                shown = await frames(first, begun.headers["location"])
                elsewhere = await second.get(begun.headers["location"])
                assert elsewhere.status_code == 404
                assert "only the server that started it" in elsewhere.json()["detail"]
                last = shown[-1][1]
                assert [name for name, _ in shown] == ["progress"] * (len(shown) - 1) + ["done"], last
                assert len(shown) > 1
                assert last["done"] == last["total"] >= 6_000
                answer = last["answer"]
            assert [each for each in answer["tables"] if each.get("difference")] == []
            after = (await second.get("/v1/status")).json()["partitions"]
            assert not {row["generation"] for row in before} & {row["generation"] for row in after}

    run(work())


def test_a_server_that_is_told_to_stop_ends_its_streams_and_exits(site: Site) -> None:
    server = Server(site.cluster)

    async def work() -> None:
        async with client_of(server, site.key) as client:
            async with streaming(client, events_of(SPACES[0])) as stream:
                stopping = asyncio.create_task(asyncio.to_thread(server.terminate))
                frame = await stream.next()
                assert (frame["event"], json.loads(frame["data"])["reason"]) == ("end", "stopping")
                assert await stopping == 0

    run(work())


def test_a_server_is_ready_while_workers_of_its_version_have_built_the_views(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    """So a proxy sends requests to those of the version whose views are live, during an upgrade too."""
    with Cluster(kafka, topic, own_redis().url, tmp_path) as cluster:
        server = Server(cluster)
        assert status_of(f"{server.url}/readyz") == 503
        cluster.live_worker()
        assert status_of(f"{server.url}/readyz") == 200
        cluster.worker(["-m", "live.support_upgraded"])
        wait_until(lambda: status_of(f"{server.url}/readyz") == 503, "all views are those of the newer version")
        assert status_of(f"{server.url}/healthz") == 200
