"""The contract of view stores that keep bytes outside of the process: altered bytes are never returned.

An adapter's test class inherits the suite and implements `damage`.
"""

from abc import abstractmethod

import pytest

from recallog_projections.rows import Changes
from recallog_projections.stores.store import Outcome, Pointer, Store
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import Rebuilding
from recallog_testing.contracts.store import (
    LOG,
    ROW,
    A,
    B,
    C,
    StoreContract,
    activate,
    at,
    build,
    commit,
    data_of,
    scanned,
    tail,
)
from support.events import run

OTHER_ROW = RowKey("t", "village", "miller", "k")
OTHER_LOG = LogName("l", "village", "miller")
ENTRIES = 40

ROWS = (
    "a flipped value",
    "a truncated value",
    "an empty value",
    "the value of another row",
    "the value of another generation",
)
"""Damage to the row `ROW` of generation A."""
LOGS = ("a flipped entry", "a truncated entry", "the entries of another log")
"""Damage to the newest entries of the log `LOG` of generation A."""
CONTROLS = ("the pointer", "the checkpoint", "a truncated checkpoint")


class DamageContract(StoreContract):
    """Rows, logs and control rows that were altered behind the store's back."""

    @abstractmethod
    def damage(self, store: Store, kind: str) -> None:
        """Alter what is stored as one of `ROWS`, `LOGS`, `CONTROLS`, or "the manifest"."""

    @pytest.fixture
    def filled(self, store: Store) -> Store:
        """A store with the active generation A and the building generation B."""
        run(store.remember_manifest(b"first"))
        rows = {ROW: b"baker's", OTHER_ROW: b"miller's"}
        logs = {LOG: [b"b%d" % n for n in range(ENTRIES)], OTHER_LOG: [b"m%d" % n for n in range(ENTRIES)]}
        activate(store, A, 3, Changes(rows, logs, {"l": 100}))
        build(store, B, 2, Changes({ROW: b"baker's of B"}, {LOG: [b"of B"]}, {"l": 100}))
        return store

    @pytest.mark.parametrize("kind", ROWS)
    def test_a_damaged_row_is_not_returned_and_its_generation_is_lost(self, filled: Store, kind: str) -> None:
        self.damage(filled, kind)
        with pytest.raises(Rebuilding):
            run(filled.read(0, [OTHER_ROW, ROW]))
        assert run(filled.checkpoint(A)) is None

    @pytest.mark.parametrize("newest", [1, ENTRIES])
    @pytest.mark.parametrize("kind", LOGS)
    def test_damaged_entries_are_not_returned_and_their_generation_is_lost(
        self, filled: Store, kind: str, newest: int
    ) -> None:
        self.damage(filled, kind)
        with pytest.raises(Rebuilding):
            run(filled.read(0, logs=[(OTHER_LOG, 1), (LOG, newest)]))
        assert run(filled.checkpoint(A)) is None

    @pytest.mark.parametrize(("table", "kind"), [*(("t", kind) for kind in ROWS), *(("l", kind) for kind in LOGS)])
    def test_a_scan_that_finds_damage_loses_the_generation(self, filled: Store, table: str, kind: str) -> None:
        self.damage(filled, kind)
        with pytest.raises(Rebuilding):
            scanned(filled, A, table, limit=100)
        assert run(filled.checkpoint(A)) is None

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 1000])
    @pytest.mark.parametrize("kind", ROWS)
    def test_a_scan_can_report_damaged_rows_and_changes_nothing(self, filled: Store, kind: str, limit: int) -> None:
        self.damage(filled, kind)
        items, damaged = reported(filled, "t", limit)
        assert damaged == [("village", "baker", "k")]
        assert items == [("village", "miller", "k")]
        assert run(filled.checkpoint(A)) == at(3)
        assert data_of(filled, A, OTHER_ROW) == b"miller's"

    @pytest.mark.parametrize("limit", [1, 3, 7, 33, 1000])
    @pytest.mark.parametrize("kind", LOGS)
    def test_a_scan_can_report_damaged_entries_and_changes_nothing(self, filled: Store, kind: str, limit: int) -> None:
        self.damage(filled, kind)
        items, damaged = reported(filled, "l", limit)
        assert {row_key[:2] for row_key in damaged} == {("village", "baker")}
        assert len(set(damaged)) == len(damaged)
        assert [row_key for row_key in items if row_key[1] == "miller"] == [
            ("village", "miller", f"{n:020d}") for n in range(ENTRIES)
        ]
        assert not set(items) & set(damaged)
        assert tail(filled, A, log=OTHER_LOG)[1] == ENTRIES

    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize("kind", ROWS)
    def test_a_scan_of_an_owner_that_finds_damage_loses_the_generation(
        self, filled: Store, kind: str, newest_first: bool
    ) -> None:
        self.damage(filled, kind)
        with pytest.raises(Rebuilding):
            run(filled.scan(A, "t", space="village", owner="baker", prefix="k", newest_first=newest_first, limit=9))
        assert run(filled.checkpoint(A)) is None

    @pytest.mark.parametrize("limit", [1, 2, 7])
    @pytest.mark.parametrize("kind", ROWS)
    def test_a_reversed_scan_can_report_damaged_rows(self, filled: Store, kind: str, limit: int) -> None:
        self.damage(filled, kind)
        items, damaged = reported(filled, "t", limit, newest_first=True)
        assert (items, damaged) == ([("village", "miller", "k")], [("village", "baker", "k")])
        assert run(filled.checkpoint(A)) == at(3)

    def test_an_undamaged_scan_reports_nothing(self, filled: Store) -> None:
        assert [reported(filled, table, 7)[1] for table in ("t", "l", "none")] == [[], [], []]

    @pytest.mark.parametrize("kind", CONTROLS)
    def test_a_generation_with_a_damaged_control_row_is_lost(self, filled: Store, kind: str) -> None:
        self.damage(filled, kind)
        with pytest.raises(Rebuilding):
            run(filled.read(0, [ROW]))
        assert commit(filled, A, 3, 4) in (Outcome.LOST, Outcome.RETIRED)
        assert run(filled.checkpoint(A)) is None or run(filled.pointer(0)) == Pointer()

    @pytest.mark.parametrize("kind", CONTROLS[1:])
    def test_a_commit_that_finds_a_damaged_checkpoint_is_refused(self, filled: Store, kind: str) -> None:
        self.damage(filled, kind)
        assert commit(filled, A, 3, 4) is not Outcome.APPLIED
        assert run(filled.pointer(0)).active is None or run(filled.checkpoint(A)) is None

    def test_a_damaged_manifest_loses_all_views(self, filled: Store) -> None:
        self.damage(filled, "the manifest")
        assert run(filled.remember_manifest(b"second")) == b"second"
        assert run(filled.pointer(0)) == Pointer()
        assert run(filled.remember_manifest(b"third")) == b"second"

    @pytest.mark.parametrize("kind", [*ROWS, *LOGS, *CONTROLS, "the manifest"])
    def test_a_generation_can_be_built_after_damage(self, filled: Store, kind: str) -> None:
        self.damage(filled, kind)
        for find in (
            lambda: run(filled.remember_manifest(b"first")),
            lambda: run(filled.read(0, [ROW], [(LOG, ENTRIES)])),
        ):
            try:
                find()
            except Rebuilding:
                continue
        pointer = run(filled.pointer(0))
        if pointer.building is not None:
            run(filled.retire(pointer.building))
        build(filled, C, 5, Changes({ROW: b"new"}, {LOG: [b"1"]}, {"l": 9}))
        assert run(filled.activate(C))
        found = run(filled.read(0, [ROW], [(LOG, 9)]))
        assert (found.rows[0], list(found.logs[0].entries), found.logs[0].total) == (b"new", [b"1"], 1)


def reported(
    store: Store, table: str, limit: int, *, newest_first: bool = False
) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
    """The keys of the intact and of the damaged items of a table of A, page by page."""
    items: list[tuple[str, str, str]] = []
    damaged: list[tuple[str, str, str]] = []
    after: tuple[str, str, str] | None = None
    while True:
        found: list[tuple[str, str, str]] = []
        chunk = run(store.scan(A, table, newest_first=newest_first, after=after, limit=limit, damaged=found))
        page = [item.row_key for item in chunk.items]
        assert len(page) + len(found) <= limit
        items += page
        damaged += found
        if chunk.last:
            return items, damaged
        assert page or found
        after = min([*page, *found]) if newest_first else max([*page, *found])
