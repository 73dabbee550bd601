"""Events of a session are shown in the order of their times, whenever they were appended."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.reading.event_order import in_event_time
from recallog_schemas import Position
from recallog_schemas.views import Remembered
from support.events import run

pytestmark = pytest.mark.models("prompt")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def said(minute: int, session: str | None = "s", kind: str = "agent.spoke") -> Event:
    at = NOON + timedelta(minutes=minute)
    return Event(
        space="village", agent="baker", kind=kind, session=session, at=at, payload={"text": f"minute {minute}"}
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["a", "b", None])), max_size=8))
def test_each_session_is_in_order_and_keeps_its_places(given_: list[tuple[int, str | None]]) -> None:
    events = [Remembered(position=Position(0, place), event=said(*each), text="") for place, each in enumerate(given_)]
    shown = in_event_time(events)
    assert [each.event.session for each in shown] == [each.event.session for each in events]
    for session in ("a", "b"):
        of_session = [each for each in events if each.event.session == session]
        expected = sorted(of_session, key=lambda each: (each.at, each.position.offset))
        assert [each for each in shown if each.event.session == session] == expected
    assert [each for each in shown if each.event.session is None] == [
        each for each in events if each.event.session is None
    ]


def test_a_timeline_and_the_visitors_of_a_prompt_follow_the_time_of_events() -> None:
    async def work() -> tuple[list[str], str]:
        async with Memory.in_memory() as memory:
            for minute in (2, 1, 3):
                await memory.publish(said(minute, kind="user.injected"))
            timeline = await memory.timeline("village", "baker")
            return [each.text for each in timeline.items], (await memory.context("village", "baker")).text

    timeline, prompt = run(work())
    assert timeline == ["minute 1", "minute 2", "minute 3"]
    visitors = prompt.split("VISITOR\n")[1].split("\n\n")[0]
    assert [line.rpartition("] ")[2] for line in visitors.splitlines()] == timeline
