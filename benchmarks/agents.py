"""Whether an event costs the same in a space of ten agents and in one of ten thousand."""

from pathlib import Path
from statistics import median

from benchmarks.homes import fill, forget_views, opened
from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, seconds, set_aside
from benchmarks.workload import crowd
from recallog_streams import generations

FEW, MANY = 10, 10_000

_RATIO = Goal("≤", 1.2)


async def measure(setup: Setup) -> list[Measure]:
    events = setup.size(100_000, 20_000)
    for agents in (FEW, MANY):
        setup.say(f"agents: appending {events:,} events of {agents:,} agents")
        async with opened(_folder(setup, agents)) as home:
            await fill(home, crowd(events, agents))
    with set_aside():
        taken = await interleaved(
            setup,
            f"agents: folding a space of {FEW:,}, then of {MANY:,}",
            {FEW: lambda: _build(_folder(setup, FEW)), MANY: lambda: _build(_folder(setup, MANY))},
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


async def _build(folder: Path) -> float:
    forget_views(folder)
    async with opened(folder) as home:
        return await seconds(generations.current(home.projector, 0))
