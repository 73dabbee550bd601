"""A server that stops: its streams and jobs end with a message, and the process exits with code 0."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from deploy.local.ports import HOST, free_port

from recallog import Memory, Settings
from recallog_service.access import Access, Guarded
from recallog_service.http import sse, tailing
from recallog_service.http.app import Application
from support.cli import environment_of
from support.events import run
from support.http import served, streaming
from support.waiting import WAIT_SECONDS

EVENTS = "/v1/spaces/village/events"


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_streams_with_their_reason_and_the_process_with_its_code(
    tmp_path: Path, how: signal.Signals, code: int
) -> None:
    port = free_port()
    command = [sys.executable, "-m", "recallog_service", "serve", "--home", str(tmp_path), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--index", "off", "--log-level", "error"],
        env=environment_of(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    async def work() -> None:
        transport = httpx.AsyncHTTPTransport(retries=8)
        async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", transport=transport, timeout=60) as client:
            async with streaming(client, EVENTS) as stream:
                process.send_signal(how)
                assert await stream.next() == {"event": "end", "data": '{"reason":"stopping"}'}

    try:
        run(work())
        _, written = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, written) == (code, "")


def test_a_job_that_is_cut_off_says_that_the_server_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(*_: object, **__: Any) -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            app = Application(memory, Access.of(Settings(home=tmp_path)))
            async with served(app) as (server, url), httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
                monkeypatch.setattr(Guarded, "call", endless)
                begun = await client.post("/v1/admin/verify", json={})
                async with streaming(client, begun.headers["location"]) as stream:
                    assert (await stream.next())["event"] == "progress"
                    server.should_exit = True
                    failed = await stream.next()
                problem = json.loads(failed["data"])["problem"]
                assert (failed["event"], problem["title"], problem["retryable"]) == ("failed", "UnknownOutcome", True)
                assert problem["detail"] == "the server ended during admin.verify; start it again"

    run(work())


def test_a_stream_that_begins_while_the_server_stops_ends_with_its_reason(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            tails = tailing.Tails(memory)
            tails.close()
            frames = tails.frames("village", await tails.begin("village", None))
            assert [data async for data in frames] == [sse.make_end(sse.End.STOPPING)]

    run(work())
