"""The rows of one batch: reads, writes, and undoing a record."""

from typing import Any

import msgspec
import pytest

from recallog_projections.rows import Changes, EndlessReads, Rows
from recallog_projections.tables import Log, LogName, RowKey, Table
from recallog_schemas import limits
from recallog_schemas.errors import ProjectionError, StorageCorrupt


class Debt(msgspec.Struct, frozen=True):
    sacks: int


class Loose(msgspec.Struct):
    sacks: int


DEBTS = Table("debts", Debt)
PAID = Log("paid", Debt, keep=3)
BAKER = RowKey("debts", "village", "baker")


@pytest.fixture
def rows() -> Rows:
    """The row of the baker is fetched and absent; that of the miller is not fetched."""
    rows = Rows([DEBTS, PAID])
    rows.load([(BAKER, None)])
    return rows


def owe(rows: Rows, sacks: int) -> None:
    rows.put(DEBTS, Debt(sacks), "village", "baker")


def owed(rows: Rows) -> Debt | None:
    return rows.get(DEBTS, "village", "baker")


def written(changes: Changes) -> dict[tuple[str, ...], Debt | None]:
    return {tuple(place): None if data is None else DEBTS.decode(data) for place, data in changes.rows.items()}


def test_a_missing_row_is_none(rows: Rows) -> None:
    assert owed(rows) is None


def test_a_row_of_the_store_is_read(rows: Rows) -> None:
    rows.load([(RowKey("debts", "village", "miller"), DEBTS.encode(Debt(9)))])
    assert rows.get(DEBTS, "village", "miller") == Debt(9)


def test_a_written_row_is_read_back_before_it_is_stored(rows: Rows) -> None:
    owe(rows, 9)
    assert owed(rows) == Debt(9)


def test_a_fetch_does_not_overwrite_a_written_row(rows: Rows) -> None:
    owe(rows, 9)
    rows.load([(BAKER, DEBTS.encode(Debt(1)))])
    assert owed(rows) == Debt(9)


def test_a_row_that_is_not_loaded_reads_as_absent_and_is_wanted(rows: Rows) -> None:
    assert rows.get(DEBTS, "village", "miller", "key") is None
    assert rows.is_wanting
    assert rows.take_wanted() == ([RowKey("debts", "village", "miller", "key")], [])
    rows.undo_run()
    assert not rows.is_wanting


def test_a_row_is_written_without_being_loaded(rows: Rows) -> None:
    rows.put(DEBTS, Debt(1), "village", "miller")
    rows.delete(DEBTS, "village", "smith")
    assert not rows.is_wanting
    assert list(rows.changes().rows.values()) == [DEBTS.encode(Debt(1)), None]


def test_what_a_row_was_before_is_wanted_if_it_was_written_without_being_loaded(rows: Rows) -> None:
    miller = RowKey("debts", "village", "miller")
    rows.put(DEBTS, Debt(1), *miller[1:])
    rows.list_written(DEBTS)
    assert rows.take_wanted() == ([miller], [])
    rows.undo_batch()
    rows.load([(miller, DEBTS.encode(Debt(9)))])
    rows.put(DEBTS, Debt(1), *miller[1:])
    assert rows.list_written(DEBTS) == [(Debt(9), Debt(1))]
    assert rows.before(DEBTS, *miller[1:]) == Debt(9)


def test_nothing_is_wanted_of_rows_that_are_complete() -> None:
    rows = Rows([DEBTS, PAID], complete=True)
    assert rows.get(DEBTS, "village", "miller") is None
    assert rows.total(PAID, "village") == 0
    assert not rows.is_wanting


def test_reads_without_end_are_stopped(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ROWS_WANTED_MAX", 10)
    with pytest.raises(EndlessReads):
        [rows.get(DEBTS, "village", "miller", str(number)) for number in range(20)]


def test_a_batch_writes_the_last_value_of_a_row(rows: Rows) -> None:
    owe(rows, 1)
    owe(rows, 2)
    assert written(rows.changes()) == {BAKER: Debt(2)}


def test_a_deleted_row_reads_as_none_and_is_deleted_by_the_commit(rows: Rows) -> None:
    owe(rows, 1)
    rows.delete(DEBTS, "village", "baker")
    assert owed(rows) is None
    assert written(rows.changes()) == {BAKER: None}


def test_changes_are_returned_once(rows: Rows) -> None:
    owe(rows, 1)
    rows.append(PAID, Debt(1), "village")
    rows.finish_run()
    rows.changes()
    assert rows.changes() == Changes()
    assert owed(rows) == Debt(1)


def test_entries_are_returned_in_order_with_the_size_of_their_log(rows: Rows) -> None:
    for sacks in range(5):
        rows.append(PAID, Debt(sacks), "village", "baker")
    changes = rows.changes()
    assert [PAID.decode(data).sacks for data in changes.logs["paid", "village", "baker"]] == [0, 1, 2, 3, 4]
    assert changes.keep == {"paid": 3}


def test_undoing_a_record_reverts_its_rows_and_entries(rows: Rows) -> None:
    owe(rows, 1)
    rows.append(PAID, Debt(1), "village")
    rows.finish_run()
    owe(rows, 2)
    owe(rows, 3)
    rows.append(PAID, Debt(3), "village")
    rows.undo_run()
    assert owed(rows) == Debt(1)
    changes = rows.changes()
    assert written(changes) == {BAKER: Debt(1)}
    assert changes.logs == {("paid", "village", ""): [PAID.encode(Debt(1))]}


def test_undoing_a_record_restores_deleted_rows(rows: Rows) -> None:
    owe(rows, 1)
    rows.finish_run()
    rows.delete(DEBTS, "village", "baker")
    rows.undo_run()
    assert owed(rows) == Debt(1)


def test_undoing_the_first_record_leaves_a_row_that_was_not_there_absent(rows: Rows) -> None:
    owe(rows, 1)
    rows.undo_run()
    assert owed(rows) is None
    assert set(written(rows.changes()).values()) <= {None}


def test_undoing_a_batch_reverts_all_its_runs(rows: Rows) -> None:
    rows.load([(RowKey("debts", "village", "miller"), DEBTS.encode(Debt(9)))])
    owe(rows, 1)
    rows.append(PAID, Debt(1), "village")
    rows.finish_run()
    owe(rows, 2)
    rows.put(DEBTS, Debt(3), "village", "miller")
    rows.undo_batch()
    assert owed(rows) is None
    assert rows.get(DEBTS, "village", "miller") == Debt(9)
    assert rows.changes() == Changes()


def test_undoing_twice_equals_undoing_once(rows: Rows) -> None:
    owe(rows, 1)
    rows.finish_run()
    owe(rows, 2)
    rows.undo_run()
    rows.undo_run()
    assert owed(rows) == Debt(1)


def test_cleared_rows_are_fetched_again(rows: Rows) -> None:
    owe(rows, 1)
    rows.clear()
    assert len(rows) == 0
    assert rows.changes() == Changes()
    assert owed(rows) is None
    assert rows.is_wanting


@pytest.mark.parametrize("row", [None, "text", Loose(1), Debt("many")])  # type: ignore[arg-type]
def test_a_row_of_another_type_is_refused_when_it_is_written(rows: Rows, row: Any) -> None:
    with pytest.raises(ProjectionError, match="debts"):
        rows.put(DEBTS, row, "village", "baker")
    assert owed(rows) is None


def test_mutable_rows_are_refused() -> None:
    """Undoing restores the row as it was read, so it must not have been changed in place."""
    with pytest.raises(ProjectionError, match="frozen=True"):
        Table("loose", Loose)


def test_a_row_that_cannot_be_decoded_is_a_storage_error() -> None:
    with pytest.raises(StorageCorrupt, match="recallog rebuild"):
        DEBTS.decode(b"\xff\xff")


# Totals of logs.


def test_the_total_of_a_log_counts_the_entries_of_the_store_and_the_batch(rows: Rows) -> None:
    rows.load([], [(LogName("paid", "village", "baker"), 40)])
    rows.append(PAID, Debt(1), "village", "baker")
    rows.append(PAID, Debt(2), "village", "miller")
    assert rows.total(PAID, "village", "baker") == 41


def test_a_total_fetched_late_counts_entries_appended_before(rows: Rows) -> None:
    rows.append(PAID, Debt(1), "village", "baker")
    rows.finish_run()
    rows.total(PAID, "village", "baker")
    _, logs = rows.take_wanted()
    rows.load([], [(logs[0], 40)])
    assert rows.total(PAID, "village", "baker") == 41


def test_a_total_outlives_its_batch(rows: Rows) -> None:
    rows.load([], [(LogName("paid", "village", "baker"), 40)])
    rows.append(PAID, Debt(1), "village", "baker")
    rows.finish_run()
    rows.changes()
    rows.append(PAID, Debt(2), "village", "baker")
    assert rows.total(PAID, "village", "baker") == 42


def test_undoing_a_record_subtracts_its_entries_from_the_total(rows: Rows) -> None:
    rows.load([], [(LogName("paid", "village", "baker"), 40)])
    rows.append(PAID, Debt(1), "village", "baker")
    rows.undo_run()
    assert rows.total(PAID, "village", "baker") == 40


def test_the_total_of_a_table_is_refused(rows: Rows) -> None:
    with pytest.raises(ProjectionError, match="debts"):
        rows.total(DEBTS, "village")  # type: ignore[arg-type]


def test_a_table_of_another_projection_may_be_read_and_not_written(rows: Rows) -> None:
    """A projection could once write the count of dead letters, or rows of another projection, undetected."""
    rows.writable = {"paid"}
    assert owed(rows) is None
    for write in (lambda: owe(rows, 1), lambda: rows.delete(DEBTS, "village", "baker")):
        with pytest.raises(ProjectionError, match="belongs to another projection"):
            write()
    rows.append(PAID, Debt(1), "village", "baker")


# Rows that are fetched when they are read.


@pytest.fixture
def fetching() -> Rows:
    """The store has the row of the miller, and five entries of the log of the village."""
    stored = {RowKey("debts", "village", "miller"): DEBTS.encode(Debt(9))}
    rows = Rows([DEBTS, PAID])
    rows.fetch = lambda row_keys, log_names: ([stored.get(key) for key in row_keys], [5 for _ in log_names])
    return rows


def test_a_row_that_is_not_loaded_is_fetched(fetching: Rows) -> None:
    assert (fetching.get(DEBTS, "village", "miller"), owed(fetching)) == (Debt(9), None)
    assert fetching.total(PAID, "village") == 5
    assert not fetching.is_wanting


def test_the_row_before_a_write_is_fetched_and_comes_back_when_the_run_is_undone(fetching: Rows) -> None:
    fetching.put(DEBTS, Debt(1), "village", "miller")
    assert fetching.list_written(DEBTS) == [(Debt(9), Debt(1))]
    assert fetching.before(DEBTS, "village", "miller") == Debt(9)
    fetching.undo_run()
    assert fetching.get(DEBTS, "village", "miller") == Debt(9)
    assert not fetching.is_wanting
