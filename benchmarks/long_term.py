"""Long-term memory: what retaining costs until it is durable and visible, and reading among 100,000 entries."""

import random
import time
from collections.abc import Awaitable, Callable, Iterator
from itertools import count
from statistics import quantiles

from benchmarks.measure import Goal, Measure, Setup, percentiles, without_garbage_collection
from benchmarks.workload import batches
from recallog import Event, Memory, Settings

_SPACE, _AGENT = "town", "keeper"
_GOAL = Goal("≤", 3.0)
_APPENDED_AT_ONCE = 1_000
_COMPARED_GOAL = Goal("≤", 40.0)
_WHO = ("miller", "smith", "ferryman", "widow", "sexton", "carter", "cooper", "innkeeper", "tanner", "bailiff")
_WHAT = ("sold", "lost", "counted", "borrowed", "paid for", "hid", "weighed", "found", "promised", "sent away")
_WHERE = ("at the bridge", "near the oven", "on the market", "behind the church", "by the river", "in the cellar")
_TYPES = ("fact", "lesson", "note", "strategy")


async def measure(setup: Setup) -> list[Measure]:
    entries, rng = setup.size(100_000, 10_000), random.Random(7)
    async with Memory.open(Settings(home=setup.folder / "long-term", index="off")) as memory:
        setup.report(f"long term: appending {entries:,} entries of one agent")
        for batch in batches(_entries(entries), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        setup.report("long term: building the views")
        await memory.catch_up()
        reads: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: memory.long_term.get(_SPACE, _AGENT, f"e-{rng.randrange(entries)}"),
            "list, 50 newest": lambda: memory.long_term.list(_SPACE, _AGENT),
            "list, 50 newest of a type": lambda: memory.long_term.list(_SPACE, _AGENT, type="lesson"),
            "stats": lambda: memory.long_term.stats(_SPACE, _AGENT),
        }
        with without_garbage_collection():
            measures: list[Measure] = []
            for name, ask in reads.items():
                setup.report(f"long term: {name}")
                p50, p99 = percentiles(f"long term: {name}", await _taken(ask, setup.size(1_000, 200)))
                goal = None if name == "stats" else _GOAL
                measures += [p50, Measure(p99.name, p99.value, p99.unit, goal)]
            setup.report("long term: list by priority")
            by_priority = await _taken(
                lambda: memory.long_term.list(_SPACE, _AGENT, order="priority"), setup.size(200, 40)
            )
            measures += percentiles("long term: list, 50 by priority of the newest 1,000", by_priority)
            numbers = iter(range(entries))
            setup.report("long term: retain")
            retained = await _taken(
                lambda: memory.long_term.retain(_SPACE, _AGENT, f"A new thought, the {next(numbers)}th."),
                setup.size(500, 100),
            )
            measures += percentiles("long term: retain, durable and visible", retained)
    return [*measures, *await _compared(setup)]


async def _compared(setup: Setup) -> list[Measure]:
    """Retaining where the index, which a process of its own serves, measures how similar the text is to others."""
    entries, rng = setup.size(10_000, 1_000), random.Random(11)
    settings = Settings(home=setup.folder / "compared", index="embedded", index_idle_seconds=0)
    async with Memory.open(settings) as memory:
        setup.report(f"long term: indexing {entries:,} facts of one agent")
        for batch in batches(_facts(entries, rng), _APPENDED_AT_ONCE):
            await memory.publish_many(batch)
        await memory.catch_up_index()
        setup.report("long term: retain, compared")
        with without_garbage_collection():
            texts = (_fact(rng, entries + number) for number in count())
            await memory.long_term.retain(_SPACE, _AGENT, next(texts))
            taken = await _taken(lambda: memory.long_term.retain(_SPACE, _AGENT, next(texts)), setup.size(300, 60))
    cuts = quantiles(taken, n=100)
    name = f"long term: retain, compared with {entries:,} facts"
    return [Measure(f"{name} p50", cuts[49] * 1e3, "ms"), Measure(f"{name} p95", cuts[94] * 1e3, "ms", _COMPARED_GOAL)]


def _facts(number_of_facts: int, rng: random.Random) -> Iterator[Event]:
    for number in range(number_of_facts):
        payload = {"text": _fact(rng, number), "type": "fact"}
        yield Event(id=f"f-{number}", space=_SPACE, agent=_AGENT, kind="memory.retained", payload=payload)


def _fact(rng: random.Random, number: int) -> str:
    who, what, where = (rng.choice(words) for words in (_WHO, _WHAT, _WHERE))
    return f"The {who} {what} {rng.randrange(2, 90)} sacks {where} in week {number}."


def _entries(number_of_entries: int) -> Iterator[Event]:
    for number in range(number_of_entries):
        payload = {"text": f"Thought {number} about the mill and its {number % 97} sacks.", "type": _TYPES[number % 4]}
        yield Event(id=f"e-{number}", space=_SPACE, agent=_AGENT, kind="memory.retained", payload=payload)


async def _taken(ask: Callable[[], Awaitable[object]], times: int) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        await ask()
        taken.append(time.perf_counter() - began)
    return taken
