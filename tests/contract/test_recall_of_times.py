"""Recall of a time from an index in which many other memories have the words of the question."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recallog import Event
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas import limits
from support.events import run
from support.indexing import indexed, indexing_of, memory_with

DAYS = 4 * limits.RECALL_CANDIDATES
FIRST = datetime(2023, 1, 1, 12, tzinfo=UTC)


def baked(day: int) -> Event:
    """What the baker says on a day, in a session of its own."""
    return Event(
        id=f"day-{day}", space="village", agent="baker", kind="agent.spoke", session=f"s-{day}",
        at=FIRST + timedelta(days=day), payload={"text": f"Today I baked bread number {day + 1000}."},
    )  # fmt: skip


def test_memories_of_the_time_are_candidates_however_many_others_match(tmp_path: Path) -> None:
    async def work() -> None:
        engine = EdgeEngine(tmp_path / "engine")
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many([baked(day) for day in range(DAYS)])
            await indexed(memory)
            for question, day in (
                ("Which bread was baked on 2 February 2023?", 32),
                ("Which bread was baked yesterday?", DAYS - 2),
                ("Which bread was baked in our first conversation?", 0),
                ("2023年2月2日 baked bread", 32),
            ):
                view = await memory.recall("village", "baker", question, channels=["keyword", "structure"])
                assert (view.degraded, view.hits[0].event.id) == (None, f"day-{day}"), question
                assert view.hits[0].parts["when"] == pytest.approx(0.1)
                assert view.considered < DAYS

    run(work())
