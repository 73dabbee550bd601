"""A rebuild by one process and by several: wall time, and the CPU time of the process that commits and of its workers.

On a machine without as many free cores as processes, only the CPU times say what the wall time would be with them: that
of the busiest process.
"""

import resource
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.homes import delete_views, fill, opened
from benchmarks.measure import Goal, Measure, Setup, without_garbage_collection
from benchmarks.workload import villages
from recallog.composition import compose
from recallog.settings import Settings
from recallog_streams import rebuild

_SIDES = (1, 2)
_RATIO = Goal("≥", 1.7)


class _Taken(NamedTuple):
    """Seconds."""

    wall: float
    committing: float
    folding: float
    """Of each worker."""

    @property
    def busiest(self) -> float:
        return max(self.committing, self.folding)


async def measure(setup: Setup) -> list[Measure]:
    events = setup.size(100_000, 60_000)
    folder = setup.folder / "parallel"
    setup.report(f"parallel: appending {events:,} events")
    async with opened(folder) as home:
        await fill(home, villages(events))
    taken: dict[int, list[_Taken]] = {workers: [] for workers in _SIDES}
    with without_garbage_collection():
        for repetition in range(setup.repetitions):
            setup.report(f"parallel: rebuild: {repetition + 1} of {setup.repetitions}")
            for workers in _SIDES:
                taken[workers].append(await _rebuild(folder, workers))
    measures = []
    for workers, runs in taken.items():
        name = f"parallel: rebuild, --workers {workers}"
        for what in ("wall", "committing", "folding")[: 2 if workers == 1 else 3]:
            value = median(getattr(run, what) for run in runs) / events * 1e6
            label = {"wall": "wall", "committing": "CPU of this process", "folding": "CPU of each worker"}[what]
            measures.append(Measure(f"{name}, {label}", value, "µs/event"))
    one, two = (median(run.busiest for run in taken[workers]) for workers in _SIDES)
    return [*measures, Measure("parallel: CPU of the busiest process, one ÷ two workers", one / two, "", _RATIO)]


async def _rebuild(folder: Path, workers: int) -> _Taken:
    delete_views(folder)
    made = compose(Settings(home=folder, ledger=None, views=None))
    children, began, wall = _cpu_of_children(), time.process_time(), time.perf_counter()
    try:
        async with made.views.catching_up(workers, 0.0) as catch_up:
            await rebuild.rebuild(made.views.name, made.views.builder, None, accept=False, catch_up=catch_up)
    finally:
        await made.close()
    folding = (_cpu_of_children() - children) / workers
    return _Taken(time.perf_counter() - wall, time.process_time() - began, folding)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
