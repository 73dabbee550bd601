"""What a page of a million items costs, one item, a change of it, and the working memory of an agent beside them."""

import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import quantiles

from benchmarks.measure import Goal, Measure, Setup
from benchmarks.workload import batches
from recallog import Event, Memory

SPACE, AGENT = "village", "baker"
BLOCKS = 16
PAGE = 50

_APPENDED_AT_ONCE = 4_000
_NAMESPACES = 1_000
_LISTED = Goal("≤", 5.0)
_RENDERED = Goal("≤", 3.0)


async def measure(setup: Setup) -> list[Measure]:
    count, calls = setup.size(1_000_000, 20_000), setup.size(2_000, 300)
    folder = setup.folder / "items"
    setup.report(f"items: writing {count:,}")
    await _prepare(folder, count)
    random_numbers = random.Random(7)

    def namespace() -> list[str]:
        return ["notes", f"n-{random_numbers.randrange(_NAMESPACES):04}"]

    async with Memory.open(folder) as memory:
        items, working = memory.items, memory.working

        async def in_middle() -> object:
            cursor = f"notes/n-{random_numbers.randrange(_NAMESPACES):04}/"
            return await items.list(SPACE, AGENT, "notes", cursor=cursor, limit=PAGE)

        subjects: dict[str, tuple[Callable[[], Awaitable[object]], Goal | None]] = {
            f"list of {PAGE} of {count:,}, newest first": (
                lambda: items.list(SPACE, AGENT, newest_first=True, limit=PAGE),
                _LISTED,
            ),
            f"list of {PAGE} of {count:,}, from the middle": (in_middle, _LISTED),
            f"list of {PAGE} of a namespace, newest first": (
                lambda: items.list(SPACE, AGENT, namespace(), newest_first=True, limit=PAGE),
                _LISTED,
            ),
            "get": (lambda: items.get(SPACE, AGENT, namespace(), "k-000003"), _RENDERED),
            f"working.render of {BLOCKS} blocks": (lambda: working.render(SPACE, AGENT), _RENDERED),
            "put, durable and visible": (lambda: items.put(SPACE, AGENT, namespace(), "k-000003", "nine sacks"), None),
        }
        found: list[Measure] = []
        for name, (call, goal) in subjects.items():
            setup.report(f"items: {calls} times {name}")
            found += await _percentiles(f"items: {name}", call, calls, goal)
    return found


async def _prepare(folder: Path, count: int) -> None:
    def put(namespace: list[str], key: str, value: str) -> Event:
        payload = {"namespace": namespace, "key": key, "value": value}
        return Event(space=SPACE, agent=AGENT, kind="item.put", payload=payload)

    notes = (
        put(
            ["notes", f"n-{number % _NAMESPACES:04}"],
            f"k-{number // _NAMESPACES:06}",
            f"The miller owes {number} sacks.",
        )
        for number in range(count)
    )
    async with Memory.open(folder) as memory:
        for batch in batches(notes, _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.publish_many(
            [put(["working"], f"block {n}", "What the agent has in mind. " * 20) for n in range(BLOCKS)]
        )
        await memory.catch_up()


async def _percentiles(
    name: str, call: Callable[[], Awaitable[object]], calls: int, goal: Goal | None
) -> list[Measure]:
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    cuts = quantiles(taken, n=100)
    return [Measure(f"{name} p50", cuts[49] * 1e3, "ms"), Measure(f"{name} p99", cuts[98] * 1e3, "ms", goal)]
