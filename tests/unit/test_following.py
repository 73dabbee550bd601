"""Following a space: entries, due reflections and answers come in ledger order, each once."""

from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.following.entries import LedgerEntry, check_partition, newest, newest_in_space
from recallog.models.beliefs import following as reflections
from recallog.models.beliefs.following import ReflectionAnswered, ReflectionDue, SpaceFollower
from recallog_schemas.errors import OutOfRange
from support.events import event, run

pytestmark = pytest.mark.models("beliefs")

BEGIN = Position(0, 0)


def spoke(text: str, **fields: Any) -> Event:
    return event("agent.spoke", agent="widow", payload={"text": text}, **fields)


def threshold(events: int) -> Event:
    return event("agent.configured", agent="widow", payload={"reflection_threshold": events})


async def answer(memory: Memory, belief: str) -> None:
    await memory.publish((await memory.reflection("village", "widow")).answer(belief))


async def step(follower: SpaceFollower) -> list[str]:
    """One line for each item of a step: the offset of an entry, or what happened to a reflection."""
    found = []
    async for item in follower.step():
        match item:
            case LedgerEntry():
                found.append(str(item.position.offset))
            case ReflectionDue():
                found.append(f"due: {item.events} since {item.since}")
            case ReflectionAnswered():
                found.append(f"answered at {item.position}")
    return found


def test_a_reflection_is_reported_after_the_event_that_made_it_due_and_only_once() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            follower = SpaceFollower(memory, "village", BEGIN)
            await memory.publish_many([threshold(2), spoke("a"), spoke("b"), spoke("c")])
            assert await step(follower) == ["0", "1", "2", "due: 2 since 0:2", "3"]
            assert await step(follower) == []
            await memory.publish(spoke("d"))
            assert await step(follower) == ["4"]
            await answer(memory, "So it is.")
            assert await step(follower) == ["5", "answered at 0:5"]

    run(work())


def test_the_first_step_reports_reflections_that_were_due_before_it() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([threshold(1), spoke("a"), spoke("b")])
            follower = SpaceFollower(memory, "village", Position(0, 3))
            assert await step(follower) == ["due: 1 since 0:1"]
            assert await step(follower) == []

    run(work())


def test_a_reflection_that_was_answered_between_two_steps_is_reported_as_due_and_answered() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            follower = SpaceFollower(memory, "village", BEGIN)
            await memory.publish(threshold(1))
            assert await step(follower) == ["0"]
            await memory.publish(spoke("a"))
            await answer(memory, "So it is.")
            assert await step(follower) == ["1", "due: 1 since 0:1", "2", "answered at 0:2"]

    run(work())


def test_past_the_limit_of_refolded_events_a_missed_reflection_has_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([threshold(1), spoke("a")])
            await answer(memory, "So it is.")
            assert await step(SpaceFollower(memory, "village", BEGIN)) == [
                "0", "1", "due: None since None", "2", "answered at 0:2",
            ]  # fmt: skip

    monkeypatch.setattr(reflections, "EVENTS_REFOLDED_MAX", 0)
    run(work())


def test_events_of_other_spaces_are_not_entries() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            follower = SpaceFollower(memory, "village", BEGIN)
            await memory.publish_many([event(space="town"), spoke("a"), event(space="town")])
            assert await step(follower) == ["1"]

    run(work())


def test_the_newest_records_of_the_ledger_and_of_a_space() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            await memory.publish_many([spoke("a"), spoke("b"), *(event(space="town") for _ in range(5)), spoke("c")])
            assert await newest(memory, 3) == {0: 5}
            assert await newest(memory, 100) == {0: 0}
            assert await newest_in_space(memory, "village", 2) == Position(0, 1)
            assert await newest_in_space(memory, "village", 9) == BEGIN

    run(work())


def test_a_position_of_a_partition_that_the_ledger_does_not_have_is_refused() -> None:
    async def work() -> None:
        async with Memory.in_memory() as memory:
            assert await check_partition(memory, Position(0, 7)) == Position(0, 7)
            with pytest.raises(OutOfRange, match="no partition 1"):
                await check_partition(memory, Position(1, 0))

    run(work())
