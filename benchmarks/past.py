"""Time travel in a space of 10,000 events, and verification of all views against a new fold."""

from statistics import median

from benchmarks.measure import Measure, Setup, seconds, without_garbage_collection
from benchmarks.workload import batches, crowd, villages
from recallog import Event, Memory, Position

_SPACE = "crowd"
_AGENTS = 10


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
    ]


async def _mix(memory: Memory, own: int, others: int) -> Position:
    """The position of the middle event of the space."""
    neighbours = villages(others)
    of_space: list[Position] = []
    for batch in batches(crowd(own, _AGENTS, space=_SPACE), 200):
        mixed: list[Event] = [*batch, *next(batches(neighbours, 200 * others // own))]
        of_space += (await memory.publish_many(mixed)).items[: len(batch)]
    return of_space[len(of_space) // 2]
