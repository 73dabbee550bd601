"""Clients that want to do harm: connections that they hold, and bodies that no program sends by accident."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from recallog import Memory, Settings
from recallog_service.access import Access, Grant, keys
from recallog_service.access.stores import store_of
from recallog_service.http import documents, server, sse
from recallog_service.http.app import Application
from recallog_service.http.metrics import METHODS, OTHER
from recallog_service.http.mounting import MCP, list_mounted
from recallog_service.mcp import transports
from support.events import event, run
from support.http import Door, problem, served
from support.waiting import WAIT_SECONDS

EVENTS = "/v1/spaces/village/events"


class Client:
    """A connection to a server, and the bytes that it sends and receives."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, text: str) -> None:
        self.writer.write(text.replace("\n", "\r\n").encode())

    async def drip(self) -> None:
        """Send a byte now and then, as long as the server takes it."""
        while not self.writer.is_closing():
            self.writer.write(b"a")
            await asyncio.sleep(0.02)

    async def is_ended(self) -> bool:
        """Whether the server ends the connection."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self.reader.read(-1)
        except TimeoutError:
            return False
        except ConnectionResetError:
            pass
        return True


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


@asynccontextmanager
async def site(home: Path) -> AsyncIterator[tuple[str, str]]:
    """A server of a memory in a folder, and a key for it."""
    token, stored = keys.make("test", Grant.everything())
    settings = Settings(home=home, index="off")
    await store_of(settings).put(stored)
    async with Memory.open(settings) as memory:
        app = Application(memory, Access.of(settings), mounted=list_mounted(memory))
        async with served(app) as (_, url):
            yield url, token


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.2)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "GET /healthz HTTP/1.1\n",
        f"POST {EVENTS} HTTP/1.1\nHost: x\nContent-Type: application/json\nContent-Length: 100000\n\n",
        "POST /nowhere HTTP/1.1\nHost: x\nContent-Length: 100000\n\n",
    ],
    ids=["no request", "half of a head", "a body that is not read", "a body for nothing"],
)
@pytest.mark.parametrize("drips", [False, True])
def test_a_connection_without_a_request_to_answer_is_ended(tmp_path: Path, sent: str, drips: bool) -> None:
    """Nobody needs a key for it, and 2,000 of them would lock all others out."""

    async def work() -> None:
        async with site(tmp_path) as (url, _), connected(url) as client:
            client.send(sent)
            dripping = asyncio.create_task(client.drip()) if drips else None
            assert await client.is_ended()
            if dripping is not None:
                dripping.cancel()

    run(work())


def test_an_answer_that_is_not_read_does_not_hold_a_connection(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(Settings(home=tmp_path, index="off")) as memory:
            await memory.publish_many([event(payload={"text": "x" * 240_000}) for _ in range(25)])
            async with served(Application(memory, Access.of(Settings(home=tmp_path)))) as (found, url):
                _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(url).port, limit=1_000)
                writer.write(f"GET {EVENTS}?limit=1000 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                async with asyncio.timeout(WAIT_SECONDS):
                    while not found.server_state.total_requests:
                        await asyncio.sleep(0.01)
                    while found.server_state.connections:
                        await asyncio.sleep(0.01)
                writer.close()

    run(work())


def test_a_stream_is_no_connection_without_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 5.0)

    async def work() -> None:
        async with site(tmp_path) as (url, token), connected(url) as client:
            client.send(f"GET {EVENTS} HTTP/1.1\nHost: x\nAccept: text/event-stream\nAuthorization: Bearer {token}\n\n")
            await client.reader.readuntil(b"event: begin")
            await asyncio.sleep(1)
            assert not client.reader.at_eof()

    run(work())


def test_a_request_of_mcp_is_limited_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "ANSWER_SECONDS", 0.3)

    async def work() -> None:
        async with site(tmp_path) as (url, token), connected(url) as client:
            client.send(f"POST {MCP} HTTP/1.1\nHost: x\nAuthorization: Bearer {token}\n")
            client.send("Accept: application/json, text/event-stream\nContent-Type: application/json\n")
            client.send("Content-Length: 1000\n\n{")
            async with asyncio.timeout(WAIT_SECONDS):
                assert b" 503 " in await client.reader.readline()

    run(work())


DEEP = '{"a":' + "[" * 100_000


@pytest.mark.models("conversations", "working")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("long_term.retain", {"text": "Bread needs salt.", "metadata": DEEP}),
        ("conversation.add", {"session": "s-1", "messages": DEEP}),
        ("items.put", {"namespace": "notes", "key": "deep", "value": DEEP, "json_text": True}),
        ("working.set", {"label": "deep", "content": DEEP, "json_text": True}),
        ("working.write_document", {"text": DEEP}),
        ("conversation.add", {"session": "s-1", "messages": json.dumps({"role": "user", "content": "x"})[:-1]}),
        ("conversation.add", {"session": "s-1", "messages": [{"role": [None], "content": "x"}]}),
    ],
)
def test_what_no_program_sends_by_accident_is_a_mistake_of_the_client(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async def opened() -> Memory:
        return Memory.open(tmp_path)

    memory = run(opened())
    answer = Door(memory, Settings(home=tmp_path)).call(name, space="village", agent="baker", **arguments)
    assert problem(answer)[0] == 422
    run(memory.close())


LABEL = re.compile(r'([a-z]+)="([^"]*)"')


def test_no_request_of_any_sort_adds_a_label_to_the_metrics(tmp_path: Path) -> None:
    """Each value of a label is kept as long as the server lives, and no key is needed to send a request."""
    odd = [f"odd{number}" for number in range(3)]

    async def labels(client: httpx.AsyncClient) -> set[tuple[str, str]]:
        text = (await client.get("/metrics")).text
        return {found for found in LABEL.findall(text) if found[0] != "le"}

    async def attack(client: httpx.AsyncClient) -> None:
        """Methods, paths, names, tools, kinds, error codes and reasons that only this client has."""
        for word in odd:
            for path in ("/v1/spaces", "/healthz", "/metrics", MCP, EVENTS, f"/{word}", f"/v1/spaces/{word}/{word}"):
                for method in (word, word.upper(), "PATCH", "OPTIONS", "TRACE"):
                    await client.request(method, path)
            await client.get(f"/v1/spaces/{word}/agents/{word}/episodic", params={word: word, "window": word})
            await client.get(f"/v1/spaces/{word}/agents", headers={"Host": f"{word}@x", "X-Request-Id": word})
            await client.get(f"/v1/spaces/{word}/agents", headers={"Origin": word})
            await client.get(f"/v1/admin/jobs/{word}", headers={"Authorization": f"Bearer {word}"})
            await client.post(f"/v1/spaces/{word}/events", json={"agent": word, "kind": f"{word}.kind", "id": word})
            await client.post(f"/v1/spaces/{word}/events", content=word, headers={"Content-Type": f"a/{word}"})
            called = {"name": word, "arguments": {word: word}}
            for method in (word, "tools/call", "resources/read"):
                asked = {"jsonrpc": "2.0", "id": word, "method": method, "params": {**called, "uri": f"x://{word}"}}
                headers = {"Accept": "application/json, text/event-stream"}
                await client.post(f"{MCP}?space={word}&agent={word}", json=asked, headers=headers)

    async def work() -> None:
        async with site(tmp_path) as (url, token):
            with_key = httpx.AsyncClient(
                base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=WAIT_SECONDS
            )
            async with httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as stranger, with_key as client:
                await attack(stranger)
                await attack(client)
                found = await labels(client)
                assert {name for name, _ in found} == {"method", "route", "status"}
                assert {value for name, value in found if name == "method"} <= {*METHODS, OTHER}
                assert not [value for _, value in found if any(word in value.lower() for word in odd)]
                routes = {value for name, value in found if name == "route"}
                assert routes <= {"", MCP, "/healthz", "/metrics", *documents.openapi()["paths"]}

    run(work())
