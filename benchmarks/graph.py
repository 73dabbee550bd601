"""The entity graph: two hops among 10,000 entities of one agent, and what entries that name entities cost the fold."""

import random
import time
from collections.abc import Iterator
from statistics import quantiles

from benchmarks.homes import fill, opened
from benchmarks.measure import Goal, Measure, Setup, seconds, without_garbage_collection
from recallog import Event
from recallog.models.facts import by_entities
from recallog.reading.read_session import ReadSession
from recallog_streams import generations

_SPACE, _AGENT = "town", "keeper"
_HUBS = 50
"""Entities that every fifth entry names: they have more entries and links than a row holds."""
_LIMITS = (50, 1_000)
"""As many as recall asks for, which are often found before the second hop, and about as many as two hops reach."""
_GOAL = Goal("≤", 20.0)


async def measure(setup: Setup) -> list[Measure]:
    entities, rng = setup.size(10_000, 2_000), random.Random(9)
    entries = 5 * entities
    async with opened(setup.folder / "graph") as home:
        setup.report(f"graph: appending {entries:,} entries that name {entities:,} entities")
        await fill(home, _entries(entries, entities))
        setup.report("graph: building the views")
        folded = await seconds(generations.current(home.projector, 0))
        generation = await generations.current(home.projector, 0)
        queries = setup.size(1_000, 200)
        measures = [Measure("graph: fold of entries that name entities", entries / folded, "events/s")]
        for limit in _LIMITS:
            name = f"graph: the best {limit:,} within two hops among {entities:,} entities"
            setup.report(f"{name}: {queries:,} queries")
            taken = []
            with without_garbage_collection():
                for number in range(queries):
                    asked = _name(rng.randrange(_HUBS if number % 5 == 0 else entities))
                    began = time.perf_counter()
                    reading = ReadSession(home.store, 0, generation)
                    await by_entities.rank_entries(reading, _SPACE, _AGENT, f"what do we know of {asked}?", limit=limit)
                    taken.append(time.perf_counter() - began)
            cuts = quantiles(taken, n=100)
            measures += [
                Measure(f"{name} p50", cuts[49] * 1e3, "ms"),
                Measure(f"{name} p95", cuts[94] * 1e3, "ms", _GOAL),
            ]
    return measures


def _entries(count: int, entities: int) -> Iterator[Event]:
    """Entries of two to four entities; each fifth names a hub, and each tenth belongs to a neighbour too."""
    rng = random.Random(8)
    for number in range(count):
        named = [number % entities, *(rng.randrange(entities) for _ in range(rng.randint(1, 2)))]
        if number % 5 == 0:
            named.append(rng.randrange(_HUBS))
        text = f"{_name(named[0])} trades with {' and '.join(_name(each) for each in named[1:])}, the {number}th time."
        payload = {"text": text, "type": "fact"}
        audience = ("neighbour",) if number % 10 == 0 else None
        yield Event(
            id=f"e-{number}",
            space=_SPACE,
            agent=_AGENT,
            kind="memory.retained",
            payload=payload,
            audience=audience,
        )


def _name(number: int) -> str:
    """The name of an entity: two words, the second of which 100 entities share."""
    return f"Trader{number} House{number // 100}"
