"""Servers of the doors on a cluster, and clients of their streams, for the live tests."""

import asyncio
import json
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from itertools import cycle

import httpx
from deploy.local.ports import HOST, free_port

from live.support import SECONDS, Cluster, wait_until
from support.cli import Result, spawn
from support.http import Stream


class Server:
    """`recallog serve` as a process, on the ledger and the views of a cluster."""

    def __init__(self, cluster: Cluster, *options: str) -> None:
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        program = ["-m", "recallog_service", "serve", "--port", str(port), "--log-level", "warning", *options]
        self._worker = cluster.worker(program, RECALLOG_AFTER_WAIT_SECONDS=str(SECONDS))
        wait_until(self._answers, "the server answers", 2 * SECONDS)

    @property
    def log(self) -> str:
        return self._worker.log.read_text()

    def kill(self) -> None:
        self._worker.kill()

    def terminate(self) -> int:
        """Send SIGTERM and wait; its exit code."""
        return self._worker.terminate()

    def _answers(self) -> bool:
        assert self._worker.process.poll() is None, self.log
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz", timeout=5):
            return True
        return False


def recallog(cluster: Cluster, *arguments: str) -> Result:
    """Run a command with the settings of a cluster."""
    settings = {"RECALLOG_LEDGER": str(cluster.settings.ledger), "RECALLOG_VIEWS": str(cluster.settings.views)}
    return spawn(*arguments, cwd=cluster.folder, **settings)


def created_key(cluster: Cluster, *verbs: str, space: str = "*", agent: str = "*") -> str:
    """A key that `recallog keys create` has made."""
    chosen = [word for verb in verbs for word in ("--verb", verb)]
    made = recallog(cluster, "keys", "create", "test", "--space", space, "--agent", agent, *chosen)
    assert made.code == 0, made.err
    return made.out.strip()


def client_of(server: Server, key: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=server.url, headers={"Authorization": f"Bearer {key}"}, timeout=SECONDS)


class Reader:
    """A client of an event stream. When the stream ends, it resumes at the next of its servers, after its
    last event."""

    def __init__(self, servers: Sequence[Server], key: str, path: str, start: str) -> None:
        self.positions: list[tuple[int, int]] = []
        self.ids: list[str] = []
        """Of the events, in the order in which they came."""
        self.visits = 0
        """How many streams it has opened."""
        self._servers = servers
        self._key = key
        self._path = f"{path}?start={start}"

    async def read_until(self, last: str) -> None:
        """Read until there was an event with the id `last`."""
        for server in cycle(self._servers):
            async with client_of(server, self._key) as client:
                # A broken connection, the end of a stream, or a long silence.
                with suppress(httpx.TransportError, StopAsyncIteration, TimeoutError):
                    async with client.stream("GET", self._path, headers=self._headers()) as response:
                        if response.status_code == 200:
                            self.visits += 1
                            await self._take(Stream(response), last)
                        else:
                            assert response.status_code == 503, await response.aread()
            if last in self.ids:
                return
            await asyncio.sleep(0.1)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": "text/event-stream"}
        if self.positions:
            partition, offset = self.positions[-1]
            headers["Last-Event-ID"] = f"{partition}:{offset}"
        return headers

    async def _take(self, stream: Stream, last: str) -> None:
        while last not in self.ids:
            frame = await stream.next()
            if "id" in frame:
                partition, _, offset = frame["id"].partition(":")
                self.positions.append((int(partition), int(offset)))
                found = json.loads(frame["data"])
                self.ids.append(found.get("event", found)["id"])
