"""A client that does not read the stream that it asked for is disconnected, and holds nothing of the server."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from recallog import Memory, Settings
from recallog_service.access import Access
from recallog_service.http import sse, tailing
from recallog_service.http.app import Application
from support.events import event, run
from support.http import served
from support.waiting import WAIT_SECONDS

REQUEST = b"GET /v1/spaces/village/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
LARGE = [event(turn=turn, payload={"text": "x" * 240_000}) for turn in range(25)]
"""Somewhat more than the kernel buffers for a connection."""


@pytest.mark.parametrize("backlog_bytes", [4 * 1024 * 1024, 500_000], ids=["stalled", "slow, then stalled"])
def test_the_connection_of_a_client_that_does_not_read_is_aborted_and_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, backlog_bytes: int
) -> None:
    monkeypatch.setattr(tailing, "BACKLOG_BYTES_MAX", backlog_bytes)
    monkeypatch.setattr(sse, "STALLED_SECONDS", 1.0)
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.1)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (server, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:

                async def figure(name: str) -> float:
                    lines = (await client.get("/metrics", headers={"Connection": "close"})).text.splitlines()
                    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))

                with socket.socket() as silent:
                    silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                    silent.connect(("127.0.0.1", urlsplit(url).port))
                    silent.sendall(REQUEST)
                    async with asyncio.timeout(WAIT_SECONDS):
                        while await figure("recallog_http_streams_now") != 1:
                            await asyncio.sleep(0.01)
                        for each in LARGE:  # one at a time: what comes together waits until it is sent
                            await memory.publish(each)
                            await asyncio.sleep(0.01)
                        while server.server_state.connections:
                            await asyncio.sleep(0.01)
                    assert await figure("recallog_http_streams_now") == 0
                    assert await figure("recallog_http_streams_dropped_total") == 1

    run(work())
    assert "Exception in ASGI application" not in caplog.text
