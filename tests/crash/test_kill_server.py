"""Event streams of a server process: two hundred clients, some of which do not read, and kill -9 of the server.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import asyncio
import json
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
from deploy.local.ports import HOST, free_port

from recallog import Memory
from support.cli import environment_of
from support.events import event, run
from support.waiting import until

CLIENTS = 200
BATCH = 50
EVENTS = 1_200
TEXT = "x" * 4_000
"""So that the events before the kill do not fit into what the kernel buffers for a client that does not read."""
STREAMS_MB_MAX = 100
"""How much more memory the server may use while 200 streams deliver: 0.5 MB a stream."""
SILENT_CLIENTS = 100
SILENT_MB_MAX = 150
"""How much more memory the server may use for clients that do not read: their events take 18 MB for each of them."""
PATH = "/v1/spaces/village/events"

Batch = Sequence[dict[str, Any]]

_EVENT = re.compile(rb'^id: 0:(\d+)\ndata: .*?"turn":(\d+)', re.MULTILINE)
_BEGIN = re.compile(rb'^event: begin\ndata: {"start":"(0:\d+)"}', re.MULTILINE)
_END = re.compile(rb'^event: end\ndata: {"reason":"(\w+)"', re.MULTILINE)


class Server:
    """A server process."""

    def __init__(self, home: Path, port: int) -> None:
        command = [sys.executable, "-m", "recallog_service", "serve", "--home", str(home), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, "--index", "off", "--log-level", "error"], env=environment_of(), stdout=subprocess.DEVNULL
        )
        self.resident_mb_max = 0.0

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)

    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024

    async def watch(self) -> None:
        """Note the most memory that it uses."""
        while True:
            self.resident_mb_max = max(self.resident_mb_max, self.resident_mb())
            await asyncio.sleep(0.02)


@asynccontextmanager
async def serving(home: Path, port: int) -> AsyncIterator[Server]:
    """A server process that has started. It is killed at the end."""
    server = Server(home, port)
    try:
        async with httpx.AsyncClient(timeout=60) as client, asyncio.timeout(60):
            while True:
                with suppress(httpx.TransportError):
                    await client.get(f"http://{HOST}:{port}/healthz")
                    break
                assert server.process.poll() is None
                await asyncio.sleep(0.05)
        yield server
    finally:
        server.kill()


def request(where: str, last: str = "") -> bytes:
    resume = f"Last-Event-ID: {last}\r\n" if last else ""
    return f"GET {PATH}{where} HTTP/1.1\r\nHost: {HOST}\r\nAccept: text/event-stream\r\n{resume}\r\n".encode()


class Reader:
    """A client of a tail from now on. When its stream ends, it resumes after its last event."""

    def __init__(self, port: int) -> None:
        self.turns: list[int] = []
        self.ends: list[str] = []
        """Why the server has ended its streams."""
        self.opened = asyncio.Event()
        self._port = port
        self._where = ""
        self._last = ""

    async def read(self, until: int) -> None:
        """Read until there are so many events."""
        while len(self.turns) < until:
            with suppress(OSError):
                await self._follow(until)
            await asyncio.sleep(0.05)

    async def _follow(self, until: int) -> None:
        reader, writer = await asyncio.open_connection(HOST, self._port, limit=1 << 18)
        try:
            writer.write(request(self._where, self._last))
            rest = b""
            while len(self.turns) < until and (data := await reader.read(1 << 18)):
                whole, _, rest = (rest + data).rpartition(b"\n\n")
                self._take(whole)
        finally:
            writer.close()

    def _take(self, frames: bytes) -> None:
        for start in _BEGIN.findall(frames):
            self._where = f"?start={start.decode()}"
            self.opened.set()
        for offset, turn in _EVENT.findall(frames):
            self.turns.append(int(turn))
            self._last = f"0:{offset.decode()}"
        self.ends += [reason.decode() for reason in _END.findall(frames)]


def silent(port: int, where: str = "") -> socket.socket:
    """The connection of a client that asks for a tail and reads nothing."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    found.connect((HOST, port))
    found.sendall(request(where))
    return found


def batch(first: int, size: int = BATCH, text: str = TEXT) -> Batch:
    common = {"agent": "baker", "kind": "agent.spoke", "payload": {"text": text}}
    return [{**common, "id": f"e-{turn}", "turn": turn} for turn in range(first, first + size)]


def noted(batches: Iterable[Batch], number: int, reached: asyncio.Event) -> Iterator[Batch]:
    """The batches; `reached` is set when that of `number` is taken."""
    for at, each in enumerate(batches):
        if at == number:
            reached.set()
        yield each


async def publish(port: int, batches: Iterable[Batch]) -> int:
    """Publish in order; each batch is sent until it is acknowledged. Returns how often one was sent again."""
    repeated = 0
    async with httpx.AsyncClient(base_url=f"http://{HOST}:{port}", timeout=60) as client:
        for each in batches:
            content = json.dumps(each).encode()
            while True:
                with suppress(httpx.TransportError):
                    answer = await client.post(PATH, content=content, headers={"Content-Type": "application/json"})
                    if answer.status_code != 503:
                        assert answer.status_code == 201, answer.text
                        break
                repeated += 1
                await asyncio.sleep(0.05)
    return repeated


async def metrics(port: int) -> dict[str, float]:
    """The metrics without labels."""
    # This process is busy with two hundred streams: an answer may wait in it for some seconds.
    async with httpx.AsyncClient(timeout=60) as client:
        text = (await client.get(f"http://{HOST}:{port}/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^(\w+) ([\d.]+)$", text, re.MULTILINE)}


async def until_streams(port: int, count: int) -> dict[str, float]:
    """The metrics, once `count` streams follow."""
    async with asyncio.timeout(60):
        while (found := await metrics(port))["recallog_http_streams_now"] != count:
            await asyncio.sleep(0.1)
    return found


def test_two_hundred_streams_one_of_which_is_stalled_and_a_killed_server_lose_and_repeat_nothing(
    tmp_path: Path, chance: random.Random
) -> None:
    port = free_port()
    readers = [Reader(port) for _ in range(CLIENTS - 1)]
    first = [batch(begin) for begin in range(0, EVENTS, BATCH)]
    second = [batch(begin, text="y" * 200) for begin in range(EVENTS, 3 * EVENTS, BATCH)]

    async def all_have(count: int) -> bool:
        return {len(each.turns) for each in readers} == {count}

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            async with serving(tmp_path, port) as server:
                with silent(port):
                    reading = [group.create_task(each.read(3 * EVENTS)) for each in readers]
                    await asyncio.gather(*(each.opened.wait() for each in readers))
                    await until_streams(port, CLIENTS)
                    watching = group.create_task(server.watch())
                    before_mb = server.resident_mb()
                    await publish(port, first)
                    assert (await until_streams(port, CLIENTS - 1))["recallog_http_streams_dropped_total"] == 1
                    await until(lambda: all_have(EVENTS), "all streams have delivered")
                    reached = asyncio.Event()
                    publishing = group.create_task(publish(port, noted(second, chance.randint(5, 40), reached)))
                    await reached.wait()
                    await asyncio.sleep(chance.uniform(0.0, 0.02))
                    watching.cancel()
            print(f"memory: {before_mb:.0f} MB, then {server.resident_mb_max:.0f} MB at most")
            assert server.resident_mb_max - before_mb < STREAMS_MB_MAX
            async with serving(tmp_path, port):
                async with asyncio.timeout(60):
                    assert await publishing
                    await asyncio.gather(*reading)
        assert [each.turns for each in readers] == [list(range(3 * EVENTS))] * len(readers)
        assert {reason for each in readers for reason in each.ends} == set()

    run(work())


def test_clients_that_do_not_read_do_not_fill_the_memory_of_the_server(tmp_path: Path) -> None:
    """Half of them follow what comes, half come back from far behind; large batches end no stream that is read."""
    port = free_port()
    reader = Reader(port)
    large = [event(id=f"old-{turn}", turn=turn, payload={"text": "x" * 60_000}) for turn in range(300)]
    batches = [batch(begin, 25, "x" * 240_000) for begin in (0, 25, 50)]

    async def fill() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(large)

    async def work() -> None:
        await fill()
        async with serving(tmp_path, port) as server, asyncio.TaskGroup() as group:
            reading = group.create_task(reader.read(75))
            await reader.opened.wait()
            watching = group.create_task(server.watch())
            before_mb = server.resident_mb()
            with ExitStack() as connections:
                for number in range(SILENT_CLIENTS):
                    connections.enter_context(silent(port, "?start=0:0" if number % 2 else ""))
                await until_streams(port, SILENT_CLIENTS // 2 + 1)
                await publish(port, batches)
                async with asyncio.timeout(60):
                    await reading
                await until_streams(port, 0)
                watching.cancel()
        print(f"memory: {before_mb:.0f} MB, then {server.resident_mb_max:.0f} MB at most")
        assert server.resident_mb_max - before_mb < SILENT_MB_MAX
        assert (reader.turns, reader.ends) == (list(range(75)), [])

    run(work())
