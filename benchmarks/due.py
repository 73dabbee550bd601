"""Whether a look of the reactor costs the same with ten reflecting agents and with ten thousand, one of them due."""

from pathlib import Path
from statistics import median

from benchmarks.measure import Goal, Measure, Setup, interleaved, ratio, seconds
from benchmarks.workload import batches
from recallog import Event, Memory

FEW, MANY = 10, 10_000
DUE = 1
"""Agents whose reflections are due; all others have a threshold that they never reach."""

_APPENDED_AT_ONCE = 1_000
_RATIO = Goal("≤", 1.2)


async def measure(setup: Setup) -> list[Measure]:
    looks = setup.size(200, 50)
    for agents in (FEW, MANY):
        setup.report(f"due: preparing {agents:,} reflecting agents")
        await _prepare(_folder(setup, agents), agents)
    taken = await interleaved(
        setup,
        f"due: {looks} looks with {FEW:,}, then with {MANY:,}",
        {agents: lambda agents=agents: _looks(_folder(setup, agents), looks) for agents in (FEW, MANY)},  # type: ignore[misc]
    )
    return [
        *(
            Measure(f"due: a look, {DUE} of {agents:,} due", median(taken[agents]) / looks * 1e3, "ms")
            for agents in (FEW, MANY)
        ),
        Measure(f"due: cost with {MANY:,} ÷ with {FEW:,}", ratio(taken[MANY], taken[FEW]), "", _RATIO),
    ]


def _folder(setup: Setup, agents: int) -> Path:
    return setup.folder / f"due-{agents}"


async def _prepare(folder: Path, agents: int) -> None:
    settings = (
        Event(
            space="village",
            agent=f"agent-{number}",
            kind="agent.configured",
            payload={"reflection_threshold": 1 if number < DUE else 1_000_000},
        )
        for number in range(agents)
    )
    async with Memory.open(folder) as memory:
        for batch in batches(settings, _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.publish(Event(space="village", agent="narrator", kind="world.observed", payload={"text": "Dawn."}))
        await memory.catch_up()


async def _looks(folder: Path, looks: int) -> float:
    async with Memory.open(folder) as memory:
        found = await memory.pending("village")
        if len(found) != DUE:
            raise RuntimeError(f"{len(found)} reflections are due, not {DUE}")

        async def work() -> None:
            for _ in range(looks):
                await memory.pending("village")

        return await seconds(work())
