"""`recallog_testing`: testing a custom projection without files, services or an event loop."""

import asyncio
import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import msgspec
import pytest

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, Table
from recallog_schemas import Event, Position, Record, codec
from recallog_schemas.errors import IdConflict, ProjectionError
from recallog_testing import ProjectionDriver
from support.events import event


class Debt(msgspec.Struct, frozen=True):
    sacks: int


DEBTS = Table("debts", Debt)
RECEIPTS = Log("receipts", Debt, keep=2)


class Debts:
    """The number of sacks that each agent owes."""

    name: ClassVar[str] = "debts"
    version: ClassVar[int] = 1
    tables = (DEBTS, RECEIPTS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            sacks = record.event.payload["sacks"]
            row = rows.get(DEBTS, record.event.space, record.event.agent) or Debt(0)
            rows.put(DEBTS, Debt(row.sacks + sacks), record.event.space, record.event.agent)
            rows.append(RECEIPTS, Debt(sacks), record.event.space)


def owes(agent: str, sacks: int, **fields: Any) -> Event:
    return event("debt.grew", agent=agent, payload={"sacks": sacks}, **fields)


def test_given_events_are_folded_into_rows() -> None:
    driver = ProjectionDriver(Debts())
    assert driver.given(owes("miller", 9), owes("smith", 1), owes("miller", 2)) == [Position(0, n) for n in range(3)]
    assert driver.row(DEBTS, "village", "miller") == Debt(11)
    assert driver.row(DEBTS, "village", "baker") is None
    assert driver.log_entries(RECEIPTS, "village") == [Debt(1), Debt(2)]


def test_later_events_are_folded_into_the_same_rows() -> None:
    driver = ProjectionDriver(Debts())
    driver.given(owes("miller", 9))
    driver.given(owes("miller", 1))
    assert driver.row(DEBTS, "village", "miller") == Debt(10)


def test_a_record_that_cannot_be_applied_raises_an_error_with_position_and_reason() -> None:
    with pytest.raises(ProjectionError, match=r"0:1.*projection_failed.*KeyError"):
        ProjectionDriver(Debts()).given(owes("miller", 9), event())


def test_dead_letters_can_be_allowed_and_inspected() -> None:
    driver = ProjectionDriver(Debts(), dead_letters_allowed=True)
    driver.given(owes("miller", 9), event(), owes("miller", 1))
    (letter,) = driver.dead_letters()
    assert (letter.offset, letter.reason) == (1, "projection_failed")
    assert driver.row(DEBTS, "village", "miller") == Debt(10)


def test_bytes_of_other_producers_can_be_folded() -> None:
    driver = ProjectionDriver(Debts(), dead_letters_allowed=True)
    driver.ledger.append_bytes(codec.encode(owes("miller", 4)))
    driver.ledger.append_bytes(b"rubbish")
    driver.fold()
    assert driver.row(DEBTS, "village", "miller") == Debt(4)
    assert [letter.reason for letter in driver.dead_letters()] == ["unparsable"]


def test_an_id_counts_once_as_in_the_embedded_ledger() -> None:
    driver = ProjectionDriver(Debts())
    driver.given(owes("miller", 9, id="d-1"))
    with pytest.raises(IdConflict):
        driver.given(owes("miller", 8, id="d-1"))


def test_with_repeated_ids_in_the_ledger_the_view_counts_an_id_once() -> None:
    driver = ProjectionDriver(Debts(), unique_ids=False, dead_letters_allowed=True)
    same, other = owes("miller", 9, id="d-1"), owes("miller", 8, id="d-1")
    assert driver.given(same, same, other) == [Position(0, n) for n in range(3)]
    assert driver.row(DEBTS, "village", "miller") == Debt(9)
    assert [letter.reason for letter in driver.dead_letters()] == ["conflict"]


def test_a_pure_projection_passes_the_check() -> None:
    driver = ProjectionDriver(Debts())
    driver.given(*(owes(f"agent-{n % 3}", n) for n in range(10)))
    driver.check()


def test_the_check_finds_state_between_records() -> None:
    class Counting(Debts):
        calls = itertools.count(1)

        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.put(DEBTS, Debt(next(self.calls)), record.event.space, record.event.agent)

    driver = ProjectionDriver(Counting())
    driver.given(*(owes("miller", 1) for _ in range(5)))
    with pytest.raises(ProjectionError, match=r"debts.*state of its own"):
        driver.check()


def test_a_projection_cannot_write_to_undeclared_tables() -> None:
    class Meddling(Debts):
        def apply(self, rows: Rows, run: Sequence[Record]) -> None:
            for record in run:
                rows.put(Table("others", Debt), Debt(1), record.event.space)

    with pytest.raises(ProjectionError, match="others"):
        ProjectionDriver(Meddling()).given(owes("miller", 9))


def test_rows_must_be_immutable() -> None:
    class Loose(msgspec.Struct):
        sacks: int

    with pytest.raises(ProjectionError, match="frozen"):
        Table("loose", Loose)


def test_it_works_inside_a_running_event_loop() -> None:
    async def work() -> Debt | None:
        driver = ProjectionDriver(Debts())
        driver.given(owes("miller", 9))
        return driver.row(DEBTS, "village", "miller")

    assert asyncio.run(work()) == Debt(9)


class Moment(msgspec.Struct, frozen=True):
    at: int


TIMES = Table("times", Moment)


class Times:
    """When the last event of each agent was, by the time of its record if it is dated ahead."""

    name: ClassVar[str] = "times"
    version: ClassVar[int] = 1
    tables = (TIMES,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            rows.put(TIMES, Moment(record.time), record.event.space, record.event.agent)


def test_a_projection_that_asks_for_the_time_of_records_depends_on_the_records_alone() -> None:
    driver = ProjectionDriver(Times())
    driver.given(event(at=datetime.now(UTC) + timedelta(days=3)))
    driver.check()
