"""`memory.admin.activity`: how many events a ledger has taken, minute by minute."""

import time
from typing import Any

import pytest

from recallog import Memory
from recallog_schemas import limits
from support.events import event, run


def counted(ages_minutes: list[float], minutes: int = 5) -> Any:
    """The activity of a ledger whose events were appended so many minutes ago."""

    async def work() -> Any:
        async with Memory.in_memory() as memory:
            now = time.time_ns() // 1_000_000
            events = [event(id=f"e-{number}") for number in range(len(ages_minutes))]
            await memory.admin.restore_events(events, [int(now - age * 60_000) for age in ages_minutes])
            return await memory.admin.activity(minutes=minutes)

    return run(work())


def test_every_minute_is_shown_also_one_without_events() -> None:
    found = counted([])
    assert [each.events for each in found.minutes] == [0] * 5
    assert found.complete


def test_events_count_in_the_minute_in_which_they_were_appended() -> None:
    found = counted([30, 29, 2, 2, 2])
    assert sum(each.events for each in found.minutes) == 3
    assert max(each.events for each in found.minutes[:-1]) == 3


def test_an_answer_says_if_the_newest_records_do_not_reach_back_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ACTIVITY_RECORDS", 3)
    found = counted([1] * 5)
    assert (sum(each.events for each in found.minutes), found.complete) == (3, False)
