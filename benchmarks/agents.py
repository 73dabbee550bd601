"""The cost of an event in a space of ten thousand agents, compared with a space of ten."""

from pathlib import Path
from statistics import median

from benchmarks.homes import grow, opened, restore_views
from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, seconds, without_garbage_collection
from benchmarks.workload import crowd
from recallog_streams import generations

FEW, MANY = 10, 10_000

_RATIO = Goal("≤", 1.2)


BEFORE = 60_000
"""Events that the views contain before the measurement starts; all but 25 of 10,000 agents have acted in them."""


async def measure(setup: Setup) -> list[Measure]:
    events = setup.size(100_000, 20_000)
    for agents in (FEW, MANY):
        setup.report(f"agents: appending {BEFORE + events:,} events of {agents:,} agents")
        await grow(_folder(setup, agents), crowd(BEFORE + events, agents), BEFORE)
    with without_garbage_collection():
        taken = await interleaved(
            setup,
            f"agents: folding a space of {FEW:,}, then of {MANY:,}",
            {FEW: lambda: _live(_folder(setup, FEW)), MANY: lambda: _live(_folder(setup, MANY))},
        )
    return [
        *(
            Measure(f"agents: fold with {agents:,}", median(events / run for run in taken[agents]), "events/s")
            for agents in (FEW, MANY)
        ),
        Measure(f"agents: cost with {MANY:,} ÷ with {FEW:,}", ratio(taken[MANY], taken[FEW]), "", _RATIO),
    ]


def _folder(setup: Setup, agents: int) -> Path:
    return setup.folder / f"agents-{agents}"


async def _live(folder: Path) -> float:
    restore_views(folder)
    async with opened(folder) as home:
        return await seconds(generations.current(home.projector, 0))
