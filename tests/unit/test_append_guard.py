"""How often appends are compared with the views."""

import asyncio
import time
from typing import Any, cast

import pytest

from recallog_streams.append_guard import AppendGuard
from recallog_streams.projector import Projector
from support.events import run


class Views:
    """Views whose comparison takes time, and that know how many comparisons were made."""

    def __init__(self) -> None:
        self.compared: list[int] = []

    async def verify_not_ahead(self, partition: int) -> None:
        self.compared.append(partition)
        await asyncio.sleep(0)


def test_appends_that_come_together_are_compared_with_the_views_once_in_each_partition() -> None:
    # Each compared for itself. At 1,000 appends per second their requests kept a cluster busy for minutes.
    views = Views()
    guard = AppendGuard([cast("Projector", views)])

    async def work() -> None:
        await asyncio.gather(*(guard.check([number % 2], "opening") for number in range(100)))

    run(work())
    assert sorted(views.compared) == [0, 1]


def test_another_opening_of_the_ledger_is_compared_again() -> None:
    views: Any = Views()
    guard = AppendGuard([views])

    async def work() -> None:
        for opening in ("first", "first", "second"):
            await guard.check([0], opening)

    run(work())
    assert views.compared == [0, 0]


def test_the_first_append_after_boot_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock of a machine that was just restored from a copy shows a few seconds, and Kafka's ledger has no opening.
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    views: Any = Views()
    run(AppendGuard([views]).check([0], None))
    assert views.compared == [0]
