"""A copy of a ledger answers every question about a space as the ledger does, wherever its events lie."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Memory
from recallog_schemas import Event
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.migration import copy
from support.copied import ScatteredLedger, answers_of, memory_of
from support.events import run
from support.random_entries import AGENTS, WorldEvents
from support.random_events import SPACES

pytestmark = pytest.mark.models("all")

SEEDS = st.integers(0, 2**32)


async def live(memory: Memory, rng: random.Random) -> None:
    """A history of two spaces, with plans, reactions, and episodes of a foreign space in between."""
    world = WorldEvents(rng, offsets=False)
    # Most of the last ones keep entries with tiers, which plans move.
    world.kept, world.entries.optional, world.entries.unique_texts = rng.choice((0.0, 0.2, 0.9)), 0.6, 0.7
    now = datetime(2026, 3, 1, tzinfo=UTC)
    for _ in range(rng.randrange(1, 5)):
        await memory.publish_many([world.event() for _ in range(rng.randrange(1, 60))])
        await memory.publish(Event(space="elsewhere", agent="a", kind="agent.spoke", payload={"text": "Words."}))
        now += timedelta(hours=rng.choice((1, 30)))
        for agent in AGENTS:
            if rng.random() < 0.5:
                await memory.tiers.consolidate(rng.choice(SPACES), agent, now=now)
        if rng.random() < 0.3:
            await memory.react()


@pytest.mark.parametrize("partitions", [1, 3, 7])
@settings(max_examples=4, deadline=None)
@given(seed=SEEDS)
def test_a_copy_answers_as_its_source(partitions: int, seed: int) -> None:
    """Copied to another number of partitions, behind and between the events of foreign spaces."""
    rng = random.Random(seed)

    async def work() -> None:
        source, target = MemoryLedger(), ScatteredLedger(partitions, rng)
        async with memory_of(source) as memory, memory_of(target) as copied:
            await live(memory, rng)
            report = await copy(source, target)
            assert report.ok
            spaces = {row.space for row in (await memory.spaces()).items}
            assert spaces
            for space in spaces:
                assert await answers_of(copied, space) == await answers_of(memory, space)

    run(work())


def test_a_copy_of_a_ledger_with_plans_has_the_same_tiers() -> None:
    """Plans named an offset, so that each was void in a copy whose events had larger ones."""
    rng = random.Random(3)
    start = datetime(2026, 3, 1, tzinfo=UTC)

    async def work() -> None:
        source, target = MemoryLedger(), ScatteredLedger(3, rng)
        async with memory_of(source) as memory, memory_of(target) as copied:
            for number in range(12):
                payload = {"text": f"Fact {number}.", "tier": ("fast", "glacial")[number % 2]}
                kept = Event(space="village", agent="baker", kind="memory.retained", at=start, payload=payload)
                await memory.publish(kept)
            made = await memory.tiers.consolidate("village", "baker", now=start + timedelta(days=9))
            assert (made.demoted, len(made.archived)) == (6, 6)
            assert (await copy(source, target)).ok
            assert await answers_of(copied, "village") == await answers_of(memory, "village")

    run(work())
