"""How long the pages of the console take on 100,000 events of one space, and a move through the past of an agent."""

import html
import re
import time
from collections.abc import Mapping
from statistics import quantiles
from urllib.parse import urlencode, urlsplit

import httpx

from benchmarks.doors import served
from benchmarks.measure import Goal, Measure, Setup
from benchmarks.workload import batches, town
from recallog import Memory, Settings

SPACE, AGENTS = "town", 10
GOAL, MOVE_GOAL = Goal("≤", 300), Goal("≤", 500)

_MS = 1e3
_BATCH = 1_000
_LINK = re.compile(r'<a [^>]*href="(/[^"#]*)"')
_QUESTION = "who carried a lantern past the bakery before dawn"
_AGENT = {"space": SPACE, "agent": "agent-1"}
_BEGINNINGS = (
    "/",
    f"/console/why?{urlencode({**_AGENT, 'q': _QUESTION})}",
    f"/console/agent?{urlencode(_AGENT)}",
    f"/console/space?{urlencode({'space': SPACE})}",
)


async def measure(setup: Setup) -> list[Measure]:
    events, requests = setup.size(100_000, 5_000), setup.size(40, 10)
    home = setup.folder / "console"
    setup.report(f"console: appending {events:,} events of one space")
    async with Memory.open(Settings(home=home, index="off")) as memory:
        for batch in batches(town(events, AGENTS, space=SPACE), _BATCH):
            last = (await memory.publish_many(batch)).items[-1]
        await memory.episodic(SPACE, "agent-0")
    found: list[Measure] = []
    async with served(home) as client:
        for name, address in (await _pages(client)).items():
            setup.report(f"console: {name}, {requests} requests")
            found += _measures(f"console: {name}", [await _seconds(client, address) for _ in range(requests)], GOAL)
        setup.report(f"console: {requests} moves of the slider")
        moves = [_moment(last.offset, number, requests) for number in range(requests)]
        taken = [await _seconds(client, address, {"HX-Request": "true"}) for address in moves]
        found += _measures("console: a move of the slider", taken, MOVE_GOAL)
    return found


async def _pages(client: httpx.AsyncClient) -> dict[str, str]:
    """A page of each kind that can be reached by links, by its path."""
    waiting, found = list(_BEGINNINGS), dict[str, str]()
    while waiting:
        address = waiting.pop(0)
        path = urlsplit(address).path
        if path in found:
            continue
        response = await client.get(address)
        if not response.headers["content-type"].startswith("text/html"):
            continue
        response.raise_for_status()
        found[path] = address
        waiting += [html.unescape(each) for each in _LINK.findall(response.text)]
    return found


def _moment(last: int, number: int, moves: int) -> str:
    """A moment of an agent, further and further in the past, as the slider asks for it."""
    offset = last - last * number // moves
    return f"/console/agent?{urlencode({**_AGENT, 'at': offset})}"


async def _seconds(client: httpx.AsyncClient, address: str, headers: Mapping[str, str] | None = None) -> float:
    began = time.perf_counter()
    (await client.get(address, headers=headers)).raise_for_status()
    return time.perf_counter() - began


def _measures(name: str, taken: list[float], goal: Goal) -> list[Measure]:
    cuts = quantiles(taken, n=20, method="inclusive")
    return [Measure(f"{name}, p50", cuts[9] * _MS, "ms"), Measure(f"{name}, p95", cuts[18] * _MS, "ms", goal)]
