"""What a request over HTTP costs beside the same call in process, and how soon a stream delivers."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import quantiles

import httpx

from benchmarks.measure import Goal, Measure, Setup
from recallog import Event, Memory, Settings

_MS = 1e3
_TEXT = "The miller owes me nine sacks."
_BATCH = 100
_RATE = 1_000
"""Events a second that a stream has to deliver."""
_PATH = "/v1/spaces/village"
_JSON = {"Content-Type": "application/json"}


async def measure(setup: Setup) -> list[Measure]:
    home = setup.folder / "http"
    found: list[Measure] = []
    async with Memory.open(Settings(home=home, index="off")) as memory:
        await memory.publish_many([_event(f"first-{turn}", turn) for turn in range(1_000)])
        await memory.episodic("village", "baker")
        async with served(home) as client:
            numbers = count()

            def fields(size: int) -> list[Event]:
                return [_event(f"e-{next(numbers)}", 0) for _ in range(size)]

            async def posted(events: list[Event]) -> None:
                sent = b"[" + b",".join(each.model_dump_json(exclude_none=True).encode() for each in events) + b"]"
                (await client.post(f"{_PATH}/events", content=sent, headers=_JSON)).raise_for_status()

            async def asked() -> None:
                (await client.get(f"{_PATH}/agents/baker/episodic")).raise_for_status()

            for what, calls, http, here in (
                ("publish", setup.size(500, 50), lambda: posted(fields(1)), lambda: memory.publish_many(fields(1))),
                (
                    f"publish {_BATCH}",
                    setup.size(100, 10),
                    lambda: posted(fields(_BATCH)),
                    lambda: memory.publish_many(fields(_BATCH)),
                ),
                ("episodic", setup.size(1_000, 100), asked, lambda: memory.episodic("village", "baker")),
            ):
                found += await _compared(setup, what, calls, http, here)
            found += await _delivered(setup, client)
    return found


async def _compared(
    setup: Setup, what: str, calls: int, http: Callable[[], Awaitable[object]], here: Callable[[], Awaitable[object]]
) -> list[Measure]:
    taken: dict[str, list[float]] = {"http": [], "here": []}
    for part in range(setup.repetitions):
        setup.report(f"http: {what}, {calls:,} calls: {part + 1} of {setup.repetitions}")
        for side, call in (("http", http), ("here", here)):
            for _ in range(calls):
                began = time.perf_counter()
                await call()
                taken[side].append(time.perf_counter() - began)
    cuts = {side: quantiles(times, n=100) for side, times in taken.items()}
    rate = {side: len(times) / sum(times) for side, times in taken.items()}
    return [
        Measure(f"http: {what}, p50", cuts["http"][49] * _MS, "ms"),
        Measure(f"http: {what}, p99", cuts["http"][98] * _MS, "ms"),
        Measure(f"http: {what}, in process, p50", cuts["here"][49] * _MS, "ms"),
        Measure(f"http: {what}, in process, p99", cuts["here"][98] * _MS, "ms"),
        Measure(f"http: {what}, requests of one client", rate["http"], "per s"),
        Measure(f"http: {what}, requests ÷ calls in process", rate["http"] / rate["here"], "times"),
    ]


async def _delivered(setup: Setup, client: httpx.AsyncClient) -> list[Measure]:
    """How long an event takes from the request that publishes it to a stream."""
    events = setup.size(10_000, 1_000)
    sent: dict[int, float] = {}
    late: list[float] = []

    async def read(opened: asyncio.Event) -> None:
        headers = {"Accept": "text/event-stream"}
        async with client.stream("GET", f"{_PATH}/events", headers=headers) as response:
            rest = b""
            async for data in response.aiter_bytes():
                opened.set()
                *frames, rest = (rest + data).split(b"\n\n")
                now = time.perf_counter()
                turns = [json.loads(each.partition(b"data: ")[2])["turn"] for each in frames if b"id: " in each]
                late.extend(now - sent[turn] for turn in turns)
                if len(late) == events:
                    return

    setup.report(f"http: a stream of {events:,} events, {_RATE:,} a second")
    opened = asyncio.Event()
    reading = asyncio.create_task(read(opened))
    await opened.wait()
    began, size = time.perf_counter(), 20
    for first in range(1, events + 1, size):
        await asyncio.sleep(max(0.0, began + first / _RATE - time.perf_counter()))
        batch = [_event(f"s-{turn}", turn) for turn in range(first, first + size)]
        sent.update(dict.fromkeys(range(first, first + size), time.perf_counter()))
        content = b"[" + b",".join(each.model_dump_json(exclude_none=True).encode() for each in batch) + b"]"
        await client.post(f"{_PATH}/events", content=content, headers=_JSON)
    rate = events / (time.perf_counter() - began)
    async with asyncio.timeout(60):
        await reading
    cuts = quantiles(late, n=100)
    return [
        Measure(f"http: published for a stream, of {_RATE:,} events/s", rate, "events/s"),
        Measure(f"http: delivery to a stream at {_RATE:,} events/s, p50", cuts[49] * _MS, "ms"),
        Measure(f"http: delivery to a stream at {_RATE:,} events/s, p99", cuts[98] * _MS, "ms", Goal("≤", 100)),
    ]


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "recallog_service", "serve", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen([*command, "--index", "off", "--log-level", "warning"], stderr=subprocess.DEVNULL)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while True:
                try:
                    await client.get("/healthz")
                    break
                except httpx.TransportError:
                    if process.poll() is not None:
                        raise
                    await asyncio.sleep(0.05)
            yield client
    finally:
        process.terminate()
        process.wait()


def _event(id_: str, turn: int) -> Event:
    return Event(id=id_, space="village", agent="baker", kind="agent.spoke", turn=turn, payload={"text": _TEXT})
