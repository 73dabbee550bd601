"""MCP over Streamable HTTP: clients of the SDK at a real server, each with a key of its own."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent

from recallog import Memory
from recallog_service.access import Access, Grant, Verb, keys
from recallog_service.access.key_file import KeyFile
from recallog_service.http.app import Application
from recallog_service.http.mounting import list_mounted
from support import guarded_world as world
from support.events import run
from support.http import served
from support.waiting import WAIT_SECONDS

VERBS = frozenset({Verb.READ, Verb.PUBLISH, Verb.FORGET})
ANNA = Grant(spaces=(world.SPACE,), agent=world.ANNA, verbs=VERBS)
BERT = Grant(spaces=(world.SPACE,), agent=world.BERT, verbs=VERBS)
SEVERAL = Grant(spaces=("acme/*",), agent="*", verbs=VERBS)


class Site:
    """A server of a memory, and the keys of its callers."""

    def __init__(self, url: str, memory: Memory, store: KeyFile) -> None:
        self.url, self.memory, self.store = url, memory, store

    async def key(self, grant: Grant, **more: Any) -> str:
        text, key = keys.make("test", grant, **more)
        await self.store.put(key)
        return text

    @asynccontextmanager
    async def client(self, token: str, query: str = "", **options: Any) -> AsyncIterator[Client]:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_SECONDS) as http:
            transport = streamable_http_client(f"{self.url}/mcp{query}", http_client=http)
            async with Client(transport, **options) as client:
                yield client


def at_site(home: Path, use: Callable[[Site], Awaitable[None]]) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            store = KeyFile(home)
            app = Application(memory, Access(store), mounted=list_mounted(memory))
            async with served(app) as (_, url):
                await use(Site(url, memory, store))

    run(work())


async def call(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.models("long_term")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_second_client_sees_at_once_what_the_first_one_has_stored(tmp_path: Path, mode: str) -> None:
    async def use(site: Site) -> None:
        token = await site.key(ANNA)
        async with site.client(token, mode=mode) as first, site.client(token, mode=mode) as second:
            stored = await call(first, "retain_memory", content="Acme prefers React.")
            id_ = stored.removeprefix("Stored memory ").partition(":")[0]
            assert id_ in await call(second, "recall_memory", query="What does Acme prefer?")
            assert await call(second, "forget_memory", memory_id=id_) == f"Memory {id_} forgotten"
            assert await call(first, "recall_memory", query="What does Acme prefer?") == "No relevant memories found."

    at_site(tmp_path, use)


@pytest.mark.models("all")
def test_the_key_says_whose_memory_it_is(tmp_path: Path) -> None:
    async def use(site: Site) -> None:
        await world.populate(site.memory)
        async with site.client(await site.key(ANNA)) as anna, site.client(await site.key(BERT)) as bert:
            assert world.HIDDEN not in await call(anna, "recall_memory", query="recipe of bread", top_k=20)
            assert world.HIDDEN in await call(bert, "recall_memory", query="recipe of bread", top_k=20)
            assert await call(anna, "forget_memory", memory_id="secret-entry") == "Memory secret-entry not found"
            assert await call(bert, "forget_memory", memory_id="secret-entry") == "Memory secret-entry forgotten"

    at_site(tmp_path, use)


@pytest.mark.models("prompt")
def test_where_a_key_allows_several_spaces_the_address_names_one(tmp_path: Path) -> None:
    async def use(site: Site) -> None:
        token = await site.key(SEVERAL)
        async with site.client(token) as client:
            assert (await client.list_tools()).tools
            assert "/mcp?space=" in await call(client, "context")
        async with site.client(token, f"?space={world.SPACE}&agent=dora") as client:
            assert (await call(client, "retain_memory", content="Flour is dear.")).startswith("Stored memory ")
        async with site.client(token, f"?space={world.OTHER_SPACE}&agent=dora") as client:
            assert "not permitted by this key" in await call(client, "context")
        async with site.client(await site.key(ANNA), f"?agent={world.BERT}") as client:
            assert "not permitted by this key" in await call(client, "context")

    at_site(tmp_path, use)


def test_without_a_valid_key_nothing_is_answered(tmp_path: Path) -> None:
    async def use(site: Site) -> None:
        token = await site.key(ANNA)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx.AsyncClient(timeout=WAIT_SECONDS) as http:
            for headers in ({}, {"Authorization": f"Bearer {token}x"}, {"Authorization": "Bearer rl_no_key"}):
                answer = await http.post(f"{site.url}/mcp", json=body, headers=headers)
                assert answer.status_code == 401
                assert "recall_memory" not in answer.text

    at_site(tmp_path, use)


def test_a_revoked_key_ends_a_client_that_is_connected(tmp_path: Path) -> None:
    async def use(site: Site) -> None:
        token = await site.key(ANNA)
        async with site.client(token) as client:
            assert "No relevant" in await call(client, "recall_memory", query="bread")
            await site.store.revoke(token.split("_")[1])
            with pytest.raises(MCPError, match="error response"):
                await call(client, "recall_memory", query="bread")

    at_site(tmp_path, use)


def test_only_posts_are_answered(tmp_path: Path) -> None:
    async def use(site: Site) -> None:
        headers = {"Authorization": f"Bearer {await site.key(ANNA)}", "Accept": "text/event-stream"}
        async with httpx.AsyncClient(headers=headers, timeout=WAIT_SECONDS) as http:
            for method in ("GET", "DELETE", "PUT"):
                answer = await http.request(method, f"{site.url}/mcp")
                assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
                assert answer.json()["detail"] == "this path takes POST"

    at_site(tmp_path, use)
