"""What a call of the synchronous memory costs beside the same call of the asynchronous one."""

import time
from collections.abc import Awaitable, Callable
from itertools import count
from statistics import median

from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio
from recallog import Event, Memory, Settings, sync

_US = 1e6
_TEXT = "The miller owes me nine sacks."


async def measure(setup: Setup) -> list[Measure]:
    settings = Settings(home=setup.folder / "synchronous", index="off")
    found: list[Measure] = []
    async with Memory.open(settings) as memory:
        with sync.Memory.open(settings) as blocking:
            await memory.publish_many([_event(f"first-{turn}", turn) for turn in range(1_000)])
            ids = (f"e-{number}" for number in count())
            found += await _compared(
                setup,
                "reading recent events",
                setup.size(2_000, 200),
                lambda: memory.episodic("village", "baker"),
                lambda: blocking.episodic("village", "baker"),
            )
            found += await _compared(
                setup,
                "recall by words",
                setup.size(200, 20),
                lambda: memory.recall("village", "baker", "who owes sacks?"),
                lambda: blocking.recall("village", "baker", "who owes sacks?"),
            )
            found += await _compared(
                setup,
                "publish",
                setup.size(500, 50),
                lambda: memory.publish(_event(next(ids), 0)),
                lambda: blocking.publish(_event(next(ids), 0)),
            )
    return found


async def _compared(
    setup: Setup, what: str, calls: int, asked: Callable[[], Awaitable[object]], blocking: Callable[[], object]
) -> list[Measure]:
    async def asynchronous() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            await asked()
        return time.perf_counter() - began

    async def synchronous() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            blocking()
        return time.perf_counter() - began

    sides = {"asynchronous": asynchronous, "synchronous": synchronous}
    taken = await interleaved(setup, f"synchronous: {what}, {calls:,} calls each", sides)
    asynchronous_us, synchronous_us = (median(taken[side]) / calls * _US for side in sides)
    return [
        Measure(f"synchronous: {what}, asynchronous call", asynchronous_us, "µs"),
        Measure(f"synchronous: {what}, more for a synchronous call", synchronous_us - asynchronous_us, "µs"),
        Measure(
            f"synchronous: {what}, ratio", ratio(taken["synchronous"], taken["asynchronous"]), "times", Goal("≤", 1.5)
        ),
    ]


def _event(id_: str, turn: int) -> Event:
    return Event(id=id_, space="village", agent="baker", kind="agent.spoke", turn=turn, payload={"text": _TEXT})
