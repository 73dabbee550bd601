"""A server whose keys cannot be read when it starts: it answers its probes alone, then all, or ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from recallog import Memory
from recallog_schemas.errors import SettingsError, StorageUnavailable
from recallog_service.access import Access
from recallog_service.access.grants import Grant
from recallog_service.access.keys import Key, KeyStore, make
from recallog_service.http import server as servers
from recallog_service.http.server import Server, server_of
from support.events import run
from support.waiting import WAIT_SECONDS, until

PATHS = ("/readyz", "/v1/spaces", "/openapi.json", "/metrics", "/nowhere")


class Away(KeyStore):
    """A store of keys that cannot be reached until `is_back`."""

    def __init__(self, *keys: Key) -> None:
        self.is_back = False
        self._keys = {key.id: key for key in keys}

    async def get(self, id_: str) -> Key | None:
        return {key.id: key for key in await self.all()}.get(id_)

    async def all(self) -> Sequence[Key]:
        if not self.is_back:
            raise StorageUnavailable("the store of the keys cannot be reached")
        return list(self._keys.values())

    async def put(self, key: Key) -> None:
        self._keys[key.id] = key

    async def close(self) -> None:
        """Holds nothing."""


@pytest.fixture(autouse=True)
def tried_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "KEYS_SECONDS", 0.01)


@asynccontextmanager
async def running(store: Away, home: Path, host: str = "127.0.0.1") -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    async with Memory.open(home) as memory, server_of(memory, Access(store), host, 0) as server:
        task = asyncio.create_task(server._serve())
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=WAIT_SECONDS) as client:
            try:
                yield server, client
            finally:
                server.should_exit = True
                await task


def until_ready(client: httpx.AsyncClient, host: str = "127.0.0.1") -> "asyncio.Future[None]":
    async def is_ready() -> bool:
        return (await client.get("/readyz", headers={"Host": host})).status_code == 200

    return asyncio.ensure_future(until(is_ready, "the server is ready"))


def test_until_its_keys_can_be_read_it_lives_and_is_not_ready(tmp_path: Path) -> None:
    async def work() -> None:
        token, key = make("test", Grant.everything())
        store = Away(key)
        async with running(store, tmp_path) as (_, client):
            authorized = {"Authorization": f"Bearer {token}"}
            assert (await client.get("/healthz", headers={"Host": "10.0.0.1"})).status_code == 200
            for path in PATHS:
                answer = await client.get(path, headers=authorized)
                assert (answer.status_code, answer.json()["title"]) == (503, "StorageUnavailable")
            store.is_back = True
            await until_ready(client, "memory.example.org")
            everywhere = authorized | {"Host": "memory.example.org"}
            assert (await client.get("/v1/spaces", headers=everywhere)).status_code == 200
            assert (await client.get("/v1/spaces")).status_code == 401

    run(work())


def test_without_keys_it_then_answers_under_the_names_of_its_machine_alone(tmp_path: Path) -> None:
    async def work() -> None:
        store = Away()
        async with running(store, tmp_path) as (_, client):
            store.is_back = True
            await until_ready(client)
            assert (await client.get("/v1/spaces")).status_code == 200
            assert (await client.get("/v1/spaces", headers={"Host": "attacker.example.org"})).status_code == 421

    run(work())


async def ended_by_its_keys(home: Path) -> None:
    """Run a server that others can reach until it ends by itself."""
    store = Away()
    async with running(store, home, host="0.0.0.0") as (server, client):
        assert (await client.get("/v1/spaces")).status_code == 503
        store.is_back = True

        async def is_ending() -> bool:
            return server.should_exit

        await until(is_ending, "the server ends")


def test_without_keys_one_that_others_can_reach_then_ends_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="make a key first"):
        run(ended_by_its_keys(tmp_path))
