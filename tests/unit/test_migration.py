"""Copying a ledger: every event is copied once and in order; records that cannot be copied are listed."""

import pytest

from recallog_schemas import Position, codec
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.migration import copy
from support.events import event, numbered, run
from support.folding import ledger_at


def values_of(ledger: Ledger) -> list[bytes]:
    assert isinstance(ledger, MemoryLedger)
    return ledger.values()


@pytest.mark.parametrize("unique_ids", [True, False])
def test_a_copy_holds_the_same_events_in_the_same_order(unique_ids: bool) -> None:
    values = [codec.encode(each) for each in [*numbered(2_500), *numbered(3, space="city")]]
    source, target = ledger_at(values), MemoryLedger(unique_ids=unique_ids)
    report = run(copy(source, target))
    assert (report.records, report.copied, report.left_out) == (2_503, 2_503, 0)
    assert values_of(target) == values


def test_a_repeated_copy_adds_nothing_if_ids_are_unique() -> None:
    source, target = ledger_at([codec.encode(each) for each in numbered(5)]), MemoryLedger()
    run(copy(source, target))
    assert run(copy(source, target)).copied == 5
    assert values_of(target) == values_of(source)


def test_invalid_records_are_skipped_and_listed() -> None:
    first, last = (codec.encode(each) for each in numbered(2))
    source, target = ledger_at([first, b"{broken", last]), MemoryLedger()
    report = run(copy(source, target))
    assert (report.copied, report.left_out) == (2, 1)
    assert [problem.position for problem in report.problems] == [Position(0, 1)]
    assert "not JSON" in report.problems[0].why
    assert values_of(target) == [first, last]


def test_of_two_contents_of_an_id_the_first_is_copied_if_ids_are_unique() -> None:
    values = [*numbered(3), event(id="debt", payload={"text": "nine sacks"}), event(id="debt", payload={"text": "ten"})]
    source = ledger_at([codec.encode(each) for each in [*values, *numbered(2, first=3)]], unique_ids=False)
    target = MemoryLedger()
    report = run(copy(source, target))
    assert (report.copied, report.left_out) == (6, 1)
    assert values_of(target) == [data for offset, data in enumerate(values_of(source)) if offset != 4]


def test_progress_ends_with_all_records_of_the_source() -> None:
    seen: list[tuple[int, int]] = []
    source = ledger_at([codec.encode(each) for each in numbered(7)], batch_records=3)
    run(copy(source, MemoryLedger(), lambda done, total: seen.append((done, total))))
    assert seen == [(3, 7), (6, 7), (7, 7)]
