"""Time travel in a space of 10,000 events, with and without snapshots, and verification of all views."""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from statistics import median

from benchmarks.measure import Goal, Measure, Setup, interleaved, seconds, without_garbage_collection
from benchmarks.workload import BEGAN, batches, crowd, villages
from recallog import Event, Memory, Position
from recallog.settings import Settings
from recallog_schemas import limits

_SPACE = "crowd"
_AGENTS = 10
_SIZES = {"without snapshots": 0, "with snapshots": limits.SNAPSHOT_RECORDS}


async def measure(setup: Setup) -> list[Measure]:
    own, others = setup.size(10_000, 2_000), setup.size(40_000, 8_000)
    async with Memory.open(setup.folder / "past") as memory:
        setup.report(f"past: appending {own:,} events of one space among {others:,} of others")
        middle = await _mix(memory, own, others)
        await memory.episodic(_SPACE, "agent-0")
        travels, checks = [], []
        with without_garbage_collection():
            for repetition in range(setup.repetitions):
                setup.report(f"past: {repetition + 1} of {setup.repetitions}")
                travels.append(await seconds(memory.episodic(_SPACE, "agent-0", as_of=middle)))
                checks.append(await seconds(memory.admin.verify()))
    return [
        Measure(f"past: episodic(as_of=middle of {own:,})", median(travels) * 1e3, "ms"),
        Measure("past: verify", (own + others) / median(checks), "events/s"),
        *await _snapshots(setup),
    ]


async def _snapshots(setup: Setup) -> list[Measure]:
    """Queries of the past in new processes, in CPU time, by turns."""
    events = setup.size(100_000, 10_000)
    of_size = {
        name: Settings.of_folder(setup.folder / name).model_copy(update={"snapshot_records": size})
        for name, size in _SIZES.items()
    }
    for name, settings in of_size.items():
        async with Memory.open(settings) as memory:
            setup.report(f"past: appending {events:,} events {name}")
            for batch in batches(crowd(events, _AGENTS, space=_SPACE), 500):
                await memory.publish_many(batch)
            await memory.episodic(_SPACE, "agent-0")

    def opened(settings: Settings, ask: Callable[[Memory], Awaitable[object]]) -> Callable[[], Awaitable[float]]:
        async def work() -> float:
            async with Memory.open(settings) as memory:
                await memory.diff(_SPACE, "agent-0", "0:0", until="0:1")  # imports, and connections
                began = time.process_time()
                await ask(memory)
                return time.process_time() - began

        return work

    def travel(memory: Memory) -> Awaitable[object]:
        return memory.episodic(_SPACE, "agent-0", as_of=f"0:{events - 500}")

    def travel_to_time(memory: Memory) -> Awaitable[object]:
        return memory.episodic(_SPACE, "agent-0", as_of=(BEGAN + timedelta(seconds=events // 2)).isoformat())

    def differ(memory: Memory) -> Awaitable[object]:
        return memory.diff(_SPACE, "agent-0", f"0:{events // 2}", until=f"0:{events - 500}")

    first = {name: await opened(settings, travel)() for name, settings in of_size.items()}
    measures = [Measure("past: first as_of, with snapshots to write", _ratio(first), "x")]
    for what, ask, goal in (("as_of", travel, 300), ("as_of a time", travel_to_time, 300), ("diff", differ, 200)):
        found = await interleaved(
            setup, f"past: {what}", {name: opened(settings, ask) for name, settings in of_size.items()}
        )
        taken = {name: median(each) for name, each in found.items()}
        measures += [
            Measure(f"past: {what} of {events:,} events, CPU", taken["with snapshots"] * 1e3, "ms", Goal("≤", goal)),
            Measure(f"past: {what}, time with snapshots to without", _ratio(taken), "x"),
        ]
    return measures


def _ratio(taken: dict[str, float]) -> float:
    return taken["with snapshots"] / taken["without snapshots"]


async def _mix(memory: Memory, own: int, others: int) -> Position:
    """The position of the middle event of the space."""
    neighbours = villages(others)
    of_space: list[Position] = []
    for batch in batches(crowd(own, _AGENTS, space=_SPACE), 200):
        mixed: list[Event] = [*batch, *next(batches(neighbours, 200 * others // own))]
        of_space += (await memory.publish_many(mixed)).items[: len(batch)]
    return of_space[len(of_space) // 2]
