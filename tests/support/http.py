"""An HTTP client of the server's application, in the same process."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from recallog import Memory, Settings
from recallog.operations.routes import Route, routes
from recallog_service.access import Access
from recallog_service.http.app import Application
from recallog_service.http.server import Server
from support.events import run
from support.waiting import WAIT_SECONDS

ROUTES = routes(Memory)


class Door:
    """A client of the door of a memory. Its methods are plain functions, for tests that are."""

    def __init__(self, memory: Memory, settings: Settings, token: str | None = None, **options: Any) -> None:
        self.app = Application(memory, Access.of(settings), **options)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)

    def call(self, name: str, **arguments: Any) -> httpx.Response:
        """The answer to an operation, called as clients of the door call it."""
        path, query, body = ROUTES[name].request(arguments)
        if body is None:
            return self.get(path, query)
        return self.post(path, body)

    def get(self, path: str, query: Any = None, **headers: str) -> httpx.Response:
        return run(self.client.get(path, params=query, headers=headers))

    def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return run(self.client.post(path, json=body, headers=headers))

    def send(self, path: str, content: bytes, kind: str = "application/json", **headers: str) -> httpx.Response:
        sent = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return run(self.client.post(path, content=content, headers=sent))


def raw(app: Application, route: Route, path: str, query: bytes) -> tuple[int, bytes]:
    """The status and the body of the answer to a GET that an HTTP client would not send."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": route.method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": [],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
    }
    run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def problem(response: httpx.Response) -> tuple[int, str, Any]:
    """The status, the title and the path of an error, whose document is whole."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    found = response.json()
    assert found["status"] == response.status_code
    assert found["type"] == f"urn:recallog:{found['title']}"
    assert found["detail"]
    assert "Traceback" not in response.text
    assert found["retryable"] is (response.status_code in (429, 503))
    return response.status_code, found["title"], found.get("path", "")


@asynccontextmanager
async def served(app: Application) -> AsyncIterator[tuple[Server, str]]:
    """A server of an application on a free port of this machine, in this event loop, and its URL."""
    server = Server(app, "127.0.0.1", 0)
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        yield server, f"http://127.0.0.1:{server.port}"
    finally:
        server.should_exit = True
        await task


class Stream:
    """A client of an event stream: its frames, each a dict of its fields."""

    def __init__(self, response: httpx.Response) -> None:
        self._bytes = response.aiter_bytes()
        self._read = b""
        self.start = ""
        """Where the stream has begun, once its first frame was read."""

    async def next(self) -> dict[str, str]:
        """The next frame but `begin`. Raises `StopAsyncIteration` at the end."""
        async with asyncio.timeout(WAIT_SECONDS):
            while True:
                while b"\n\n" not in self._read:
                    self._read += await anext(self._bytes)
                frame, _, self._read = self._read.partition(b"\n\n")
                # Not at other line breaks of Unicode, which texts may have.
                fields = [line.partition(": ") for line in frame.decode().split("\n")]
                found = {name: value for name, _, value in fields if name}
                if found.get("event") == "begin":
                    self.start = json.loads(found["data"])["start"]
                elif found:
                    return found

    async def some(self, count: int) -> list[dict[str, str]]:
        """The next frames."""
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def streaming(client: httpx.AsyncClient, path: str, **headers: str) -> AsyncIterator[Stream]:
    """An open event stream."""
    sent = {"Accept": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with client.stream("GET", path, headers=sent) as response:
        assert response.status_code == 200, await response.aread()
        yield Stream(response)
