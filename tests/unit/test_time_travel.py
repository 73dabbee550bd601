"""Time travel: memory as of a position and as of a time."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from recallog import Event, Memory, Position
from recallog.reading.time_travel import AsOf
from recallog_schemas.errors import InvalidArgument, OutOfRange
from support.events import event, run

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def minute(n: int) -> datetime:
    return NOON + timedelta(minutes=n)


def spoke(n: int, **fields: object) -> Event:
    return event(id=f"e-{n}", turn=n, at=minute(n), **fields)


def remembered(home: Path, events: list[Event], as_of: AsOf | None, agent: str = "baker") -> list[int]:
    """The turns that `agent` remembered."""

    async def work() -> list[int]:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            view = await memory.episodic("village", agent, as_of=as_of, window=100)
            page = await memory.timeline("village", agent, as_of=as_of, limit=100)
            assert [each.event for each in view.memories] == [each.event for each in page.items]
            return [memory.event.turn for memory in view.memories]

    return run(work())


# As of a position.


def test_memory_as_of_a_position_is_that_right_after_it(tmp_path: Path) -> None:
    events = [spoke(n) for n in range(5)]
    for n in range(5):
        assert remembered(tmp_path, events, Position(0, n)) == list(range(n + 1))


def test_every_past_answer_equals_the_original_one(tmp_path: Path) -> None:
    shared = event("space.configured", agent="narrator", payload={"shared_kinds": ["agent.spoke"]})
    window = event("agent.configured", payload={"window": 2})
    thought = spoke(3, agent="miller", audience=["baker"])
    run_of_events = [spoke(1), spoke(2, agent="miller"), thought, shared, spoke(4, agent="miller"), window, spoke(5)]

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            then = []
            for each in run_of_events:
                position = await memory.publish(each)
                then.append((position, await memory.episodic("village", "baker")))
            for position, view in then:
                past = await memory.episodic("village", "baker", as_of=position)
                assert (past.memories, past.window) == (view.memories, view.window)
                assert past.checkpoint == view.checkpoint == position

    run(work())


def test_a_past_answer_uses_the_window_of_that_position(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            positions = await memory.publish_many([spoke(n) for n in range(20)])
            await memory.publish(event("agent.configured", payload={"window": 3}))
            assert (await memory.episodic("village", "baker")).window == 3
            assert (await memory.episodic("village", "baker", as_of=positions[-1])).window == 8

    run(work())


def test_a_position_of_another_space_is_a_valid_as_of(tmp_path: Path) -> None:
    events = [spoke(0), event(space="town"), spoke(1), event(space="town"), spoke(2)]
    assert remembered(tmp_path, events, Position(0, 1)) == [0]
    assert remembered(tmp_path, events, Position(0, 3)) == [0, 1]


def test_time_travel_reaches_further_back_than_the_views(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([spoke(n) for n in range(2100)])
            view = await memory.episodic("village", "baker", as_of=Position(0, 4))
            assert [memory.event.turn for memory in view.memories] == [0, 1, 2, 3, 4]

    run(work())


@pytest.mark.parametrize("position", [Position(0, 3), Position(0, 10**12), Position(1, 0)])
def test_a_missing_position_is_an_error(tmp_path: Path, position: Position) -> None:
    with pytest.raises(OutOfRange) as raised:
        remembered(tmp_path, [spoke(n) for n in range(3)], position)
    assert raised.value.path == "as_of"


def test_an_empty_ledger_has_no_positions(tmp_path: Path) -> None:
    with pytest.raises(OutOfRange, match="empty"):
        remembered(tmp_path, [], Position(0, 0))


def test_the_past_of_an_unknown_space_or_agent_is_empty(tmp_path: Path) -> None:
    assert remembered(tmp_path, [spoke(0)], Position(0, 0), agent="nobody") == []

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            assert (await memory.episodic("nowhere", "baker", as_of=Position(0, 0))).memories == ()
            assert (await memory.episodic("nowhere", "baker", as_of=NOON)).memories == ()

    run(work())


# As of a time.


def test_memory_as_of_a_time_contains_no_later_events(tmp_path: Path) -> None:
    events = [spoke(n) for n in range(5)]
    assert remembered(tmp_path, events, minute(2)) == [0, 1, 2]
    assert remembered(tmp_path, events, minute(-1)) == []
    assert remembered(tmp_path, events, minute(99)) == [0, 1, 2, 3, 4]


def test_a_time_is_accepted_in_any_zone(tmp_path: Path) -> None:
    moment = minute(2).astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert remembered(tmp_path, [spoke(n) for n in range(5)], moment) == [0, 1, 2]


def test_an_event_published_late_counts_from_the_time_it_happened(tmp_path: Path) -> None:
    events = [spoke(5), spoke(1), spoke(3)]
    assert remembered(tmp_path, events, minute(3)) == [1, 3]


def test_an_answer_as_of_a_time_uses_later_settings(tmp_path: Path) -> None:
    sharing = event("space.configured", agent="narrator", at=minute(9), payload={"shared_kinds": ["agent.spoke"]})
    assert remembered(tmp_path, [sharing, spoke(1, agent="miller")], minute(2)) == [1]


def test_a_time_without_its_zone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"^as_of: a time needs its zone"):
        remembered(tmp_path, [spoke(0)], NOON.replace(tzinfo=None))


def test_time_travel_does_not_change_the_views(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many([spoke(n) for n in range(5)])
            before, status = await memory.episodic("village", "baker"), await memory.admin.status()
            await memory.episodic("village", "baker", as_of=Position(0, 1))
            assert await memory.episodic("village", "baker") == before
            assert await memory.admin.status() == status

    run(work())
