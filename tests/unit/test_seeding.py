"""Seeding: twice is once, for each agent."""

import asyncio
from pathlib import Path

import pytest

from recallog import Memory
from recallog_projections.models.long_term import tables as entries
from recallog_schemas.models.long_term import seeding
from support.events import recorded, run

pytestmark = pytest.mark.models("long_term")

LESSONS = [f"LESSON: {number}" for number in range(5)]


def test_two_memories_that_seed_at_once_write_each_entry_once(tmp_path: Path) -> None:
    async def seed() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([seeding.event("village", "baker", text) for text in LESSONS])

    async def work() -> None:
        await asyncio.gather(seed(), seed())
        await seed()
        async with Memory.open(tmp_path) as memory:
            events = await recorded(memory)
            assert [event.text for event in events] == LESSONS
            found = await memory.row(entries.TYPES, "village", "baker", "lesson")
            assert found is not None
            assert found.entries == 5

    run(work())


def test_spaces_agents_types_and_texts_have_ids_of_their_own() -> None:
    ids = {
        seeding.event("village", "baker", "a").id,
        seeding.event("town", "baker", "a").id,
        seeding.event("village", "miller", "a").id,
        seeding.event("village", "baker", "b").id,
        seeding.event("village", "baker", "a", "strategy").id,
    }
    assert len(ids) == 5
