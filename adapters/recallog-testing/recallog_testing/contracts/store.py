"""The contract of view stores. An adapter's test class inherits the suite and implements `make`."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from recallog_projections.rows import Changes
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, Pointer, Store, StoredRow
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import InvariantViolation, Rebuilding
from recallog_testing.running import one_loop, run

A = Generation("aaaa", 0, "code 1", 0)
B = Generation("bbbb", 0, "code 2", 5)
C = Generation("cccc", 0, "code 2", 9)
ELSEWHERE = Generation("dddd", 1, "code 1", 0)

START = Checkpoint()
ROW = RowKey("t", "village", "baker", "k")
LOG = LogName("l", "village", "baker")
KEEP = 47


def at(offset: int) -> Checkpoint:
    return Checkpoint(offset, offset, b"%016d" % offset, b" %015d" % offset) if offset >= 0 else START


def row(data: bytes | None, need: RowKey = ROW) -> Changes:
    return Changes(rows={need: data})


def entries(count: int, *, first: int = 0, keep: int = 100, log: LogName = LOG) -> Changes:
    return Changes(logs={log: [b"%d" % (first + n) for n in range(count)]}, keep={log.log: keep})


def commit(store: Store, generation: Generation, expected: int, new: int, changes: Changes | None = None) -> Outcome:
    return run(store.commit(generation, at(expected), at(new), changes or Changes()))


def build(store: Store, generation: Generation, offset: int = -1, changes: Changes | None = None) -> None:
    """Make `generation` the one that is being built, and advance it to `offset`."""
    assert run(store.create(generation, run(store.pointer(generation.partition)).active)).building == generation
    if offset >= 0:
        assert commit(store, generation, -1, offset, changes) is Outcome.APPLIED


def activate(store: Store, generation: Generation, offset: int = -1, changes: Changes | None = None) -> None:
    build(store, generation, offset, changes)
    assert run(store.activate(generation))


def data_of(store: Store, generation: Generation, need: RowKey = ROW) -> bytes | None:
    return run(store.read(generation.partition, [need], generation=generation)).rows[0]


def tail(store: Store, generation: Generation, newest: int = 1000, log: LogName = LOG) -> tuple[list[bytes], int]:
    (found,) = run(store.read(generation.partition, logs=[(log, newest)], generation=generation)).logs
    return list(found.entries), found.total


def scanned(
    store: Store, generation: Generation, table: str, limit: int = 3, space: str | None = None
) -> list[StoredRow]:
    """All items, page by page."""
    found: list[StoredRow] = []
    after = None
    while True:
        chunk = run(store.scan(generation, table, space=space, after=after, limit=limit))
        assert len(chunk.items) <= limit
        found += chunk.items
        if chunk.last:
            return found
        after = chunk.items[-1].row_key


def paged(
    store: Store,
    space: str,
    owner: str,
    prefix: str = "",
    *,
    newest_first: bool = False,
    after: str | None = None,
    limit: int = 2,
) -> list[str]:
    """The keys of all rows of an owner of generation A, page by page."""
    found: list[str] = []
    while True:
        chunk = run(
            store.scan(
                A,
                "t",
                space=space,
                owner=owner,
                prefix=prefix,
                newest_first=newest_first,
                after=None if after is None else (space, owner, after),
                limit=limit,
            )
        )
        assert len(chunk.items) <= limit
        assert {(item.space, item.owner) for item in chunk.items} <= {(space, owner)}
        found += [item.key for item in chunk.items]
        if chunk.last:
            return found
        after = chunk.items[-1].key


class StoreContract(ABC):
    """Generations, commits, reads and scans."""

    @abstractmethod
    def make(self, folder: Path) -> Store:
        """A new, empty store."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with one_loop():
            store = self.make(tmp_path)
            yield store
            run(store.close())

    # The ledger it belongs to.

    def test_a_cleared_store_is_a_new_one(self, store: Store) -> None:
        assert run(store.remember_manifest(b"this ledger")) == b"this ledger"
        activate(store, A, 5, row(b"old"))
        build(store, B, 3)
        activate(store, ELSEWHERE, 2)
        run(store.clear())
        assert run(store.pointer(0)) == run(store.pointer(1)) == Pointer()
        assert run(store.checkpoint(A)) is None
        assert commit(store, A, 5, 6) is Outcome.RETIRED
        assert run(store.remember_manifest(b"that ledger")) == b"that ledger"
        activate(store, C, 9)
        assert run(store.read(0, [ROW])).rows == [None]

    def test_the_first_manifest_is_not_replaced(self, store: Store) -> None:
        assert run(store.remember_manifest(b"first")) == b"first"
        assert run(store.remember_manifest(b"second")) == b"first"

    # Generations.

    def test_a_new_store_has_no_generations(self, store: Store) -> None:
        assert run(store.pointer(0)) == Pointer()

    def test_a_created_generation_is_building_and_has_processed_nothing(self, store: Store) -> None:
        assert run(store.create(A)) == Pointer(building=A)
        assert run(store.pointer(0)) == Pointer(building=A)
        assert run(store.checkpoint(A)) == START

    def test_a_second_creator_joins_the_building_generation(self, store: Store) -> None:
        build(store, A, 3)
        assert run(store.create(B)) == Pointer(building=A)
        assert run(store.checkpoint(A)) == at(3)
        assert run(store.checkpoint(B)) is None

    def test_a_generation_is_built_beside_the_active_one(self, store: Store) -> None:
        activate(store, A, 3)
        assert run(store.create(B, replaces=A)) == Pointer(active=A, building=B)

    @pytest.mark.parametrize("expected", [None, B])
    def test_no_generation_is_created_after_another_one_became_active(
        self, store: Store, expected: Generation | None
    ) -> None:
        activate(store, A, 3)
        assert run(store.create(C, replaces=expected)) == Pointer(active=A)
        assert run(store.pointer(0)) == Pointer(active=A)
        assert run(store.checkpoint(C)) is None

    def test_no_generation_is_created_to_replace_a_missing_one(self, store: Store) -> None:
        assert run(store.create(B, replaces=A)) == Pointer()
        assert run(store.pointer(0)) == Pointer()
        assert run(store.checkpoint(B)) is None

    def test_partitions_have_generations_of_their_own(self, store: Store) -> None:
        build(store, A)
        build(store, ELSEWHERE)
        assert run(store.pointer(0)) == Pointer(building=A)
        assert run(store.pointer(1)) == Pointer(building=ELSEWHERE)

    def test_the_first_generation_becomes_active(self, store: Store) -> None:
        build(store, A, 3)
        assert run(store.activate(A))
        assert run(store.pointer(0)) == Pointer(active=A)

    @pytest.mark.parametrize("offset", [3, 4])
    def test_a_generation_that_is_not_behind_takes_over(self, store: Store, offset: int) -> None:
        activate(store, A, 3)
        build(store, B, offset)
        assert run(store.activate(B))
        assert run(store.pointer(0)) == Pointer(active=B)

    def test_a_generation_that_is_behind_does_not_take_over(self, store: Store) -> None:
        activate(store, A, 3)
        build(store, B, 2)
        assert not run(store.activate(B))
        assert run(store.pointer(0)) == Pointer(active=A, building=B)

    @pytest.mark.parametrize(("compared", "taken"), [(2, False), (3, True), (4, True)])
    def test_a_generation_compared_with_less_than_the_active_one_has_processed_does_not_take_over(
        self, store: Store, compared: int, taken: bool
    ) -> None:
        activate(store, A, 3)
        build(store, B, 4)
        assert run(store.activate(B, unless_beyond=compared)) == taken
        assert run(store.pointer(0)) == (Pointer(active=B) if taken else Pointer(active=A, building=B))

    def test_a_generation_that_is_behind_does_not_take_over_however_far_it_was_compared(self, store: Store) -> None:
        activate(store, A, 3)
        build(store, B, 2)
        assert not run(store.activate(B, unless_beyond=9))

    def test_without_an_active_checkpoint_a_generation_takes_over_without_comparison(self, store: Store) -> None:
        build(store, A, 3)
        assert run(store.activate(A, unless_beyond=-1))
        build(store, B, 0)
        self.lose_checkpoint(store, A)
        assert run(store.activate(B, unless_beyond=-1))

    @pytest.mark.parametrize("stranger", [A, C], ids=["active", "unknown"])
    def test_only_the_building_generation_takes_over(self, store: Store, stranger: Generation) -> None:
        activate(store, A, 3)
        build(store, B, 3)
        assert not run(store.activate(stranger))
        assert run(store.pointer(0)) == Pointer(active=A, building=B)

    def test_a_building_generation_can_be_abandoned(self, store: Store) -> None:
        activate(store, A, 3)
        build(store, B)
        assert run(store.retire(B))
        assert run(store.pointer(0)) == Pointer(active=A)

    @pytest.mark.parametrize("stranger", [A, C], ids=["active", "unknown"])
    def test_only_the_building_generation_can_be_abandoned(self, store: Store, stranger: Generation) -> None:
        activate(store, A, 3)
        build(store, B)
        assert not run(store.retire(stranger))
        assert run(store.pointer(0)) == Pointer(active=A, building=B)

    def test_another_generation_can_be_built_after_one_was_abandoned(self, store: Store) -> None:
        build(store, A, 3, row(b"old"))
        run(store.retire(A))
        build(store, B)
        assert data_of(store, B) is None

    def test_a_retired_generation_can_be_read_until_it_is_garbage_collected(self, store: Store) -> None:
        activate(store, A, 3, row(b"a"))
        activate(store, B, 3)
        build(store, C, 2, row(b"c"))
        run(store.retire(C))
        assert (run(store.checkpoint(A)), run(store.checkpoint(C))) == (at(3), at(2))
        assert (data_of(store, A), data_of(store, C)) == (b"a", b"c")
        run(store.collect_garbage(0))
        assert (run(store.checkpoint(A)), run(store.checkpoint(C))) == (None, None)

    def test_garbage_collection_deletes_generations_that_no_pointer_names(self, store: Store) -> None:
        activate(store, A, 3, Changes({ROW: b"1"}, {LOG: [b"1"]}, {"l": 10}))
        activate(store, B, 3)
        run(store.collect_garbage(0))
        assert run(store.checkpoint(A)) is None

    def test_garbage_collection_keeps_the_active_and_the_building_generation(self, store: Store) -> None:
        activate(store, A, 3, Changes({ROW: b"a"}, {LOG: [b"1"]}, {"l": 10}))
        build(store, B, 2, Changes({ROW: b"b"}, {LOG: [b"1", b"2"]}, {"l": 10}))
        run(store.collect_garbage(0))
        assert (data_of(store, A), data_of(store, B)) == (b"a", b"b")
        assert (tail(store, A), tail(store, B)) == (([b"1"], 1), ([b"1", b"2"], 2))

    def test_garbage_collection_keeps_other_partitions(self, store: Store) -> None:
        build(store, ELSEWHERE, 3, row(b"there"))
        activate(store, A, 3)
        activate(store, B, 3)
        run(store.collect_garbage(0))
        assert data_of(store, ELSEWHERE) == b"there"

    def test_a_generation_built_after_garbage_collection_starts_empty(self, store: Store) -> None:
        activate(store, A, 3, Changes({ROW: b"a"}, {LOG: [b"1"]}, {"l": 10}))
        activate(store, B, 3)
        run(store.collect_garbage(0))
        build(store, C, 0, entries(1, first=7))
        assert data_of(store, C) is None
        assert tail(store, C) == ([b"7"], 1)

    # The six outcomes of a commit, in their order.

    def test_1_retired_if_another_generation_took_over(self, store: Store) -> None:
        activate(store, A, 3)
        activate(store, B, 3)
        assert commit(store, A, 3, 4, row(b"zombie")) is Outcome.RETIRED

    def test_1_retired_if_it_was_abandoned(self, store: Store) -> None:
        build(store, A, 3)
        run(store.retire(A))
        assert commit(store, A, 3, 4) is Outcome.RETIRED

    def test_1_retired_if_the_store_never_knew_it(self, store: Store) -> None:
        assert commit(store, A, -1, 4) is Outcome.RETIRED

    def test_1_retired_also_for_a_commit_that_was_applied_before(self, store: Store) -> None:
        activate(store, A, 3)
        activate(store, B, 3)
        assert commit(store, A, -1, 3) is Outcome.RETIRED

    def test_1_retired_takes_precedence_over_lost(self, store: Store) -> None:
        activate(store, A, 3)
        activate(store, B, 3)
        run(store.collect_garbage(0))
        assert run(store.checkpoint(A)) is None
        assert commit(store, A, 3, 4) is Outcome.RETIRED

    @pytest.mark.parametrize("active", [True, False], ids=["active", "building"])
    def test_2_lost_if_its_checkpoint_is_gone(self, store: Store, active: bool) -> None:
        build(store, A, 3)
        if active:
            run(store.activate(A))
        self.lose_checkpoint(store, A)
        assert commit(store, A, 3, 4, row(b"new")) is Outcome.LOST
        assert run(store.checkpoint(A)) is None

    @pytest.mark.parametrize("active", [True, False], ids=["active", "building"])
    def test_3_applied_if_the_checkpoint_is_the_expected_one(self, store: Store, active: bool) -> None:
        build(store, A, 3)
        if active:
            run(store.activate(A))
        assert commit(store, A, 3, 4, row(b"new")) is Outcome.APPLIED
        assert (run(store.checkpoint(A)), data_of(store, A)) == (at(4), b"new")

    def test_4_already_there_if_the_same_commit_was_made_before(self, store: Store) -> None:
        build(store, A, 3)
        assert commit(store, A, 3, 4, entries(2)) is Outcome.APPLIED
        assert commit(store, A, 3, 4, entries(2)) is Outcome.ALREADY_THERE
        assert tail(store, A) == ([b"0", b"1"], 2)

    def test_5_ahead_if_another_writer_was_faster(self, store: Store) -> None:
        build(store, A, 5, row(b"theirs"))
        assert commit(store, A, 3, 4, row(b"mine")) is Outcome.AHEAD
        assert (run(store.checkpoint(A)), data_of(store, A)) == (at(5), b"theirs")

    def test_5_ahead_also_if_the_checkpoint_is_before_the_end_of_this_commit(self, store: Store) -> None:
        build(store, A, 4, row(b"theirs"))
        assert commit(store, A, 3, 9, row(b"mine")) is Outcome.AHEAD
        assert (run(store.checkpoint(A)), data_of(store, A)) == (at(4), b"theirs")

    def test_6_mismatch_if_an_older_copy_was_restored(self, store: Store) -> None:
        build(store, A, 3, row(b"restored"))
        assert commit(store, A, 7, 8, row(b"mine")) is Outcome.MISMATCH
        assert (run(store.checkpoint(A)), data_of(store, A)) == (at(3), b"restored")

    def test_a_backward_commit_violates_an_invariant(self, store: Store) -> None:
        build(store, A, 3)
        with pytest.raises(InvariantViolation):
            commit(store, A, 3, 2)

    def test_a_commit_touches_only_its_generation(self, store: Store) -> None:
        activate(store, A, 3, Changes({ROW: b"a"}, {LOG: [b"1"]}, {"l": 10}))
        build(store, B, 3, Changes({ROW: b"b"}, {LOG: [b"2"]}, {"l": 10}))
        assert (data_of(store, A), tail(store, A)) == (b"a", ([b"1"], 1))
        assert scanned(store, A, "t") == [StoredRow("village", "baker", "k", b"a")]

    # Waiting.

    def test_a_reader_that_waits_sees_the_commit(self, store: Store) -> None:
        activate(store, A, 3)

        async def waits() -> int:
            while (await store.read(0)).checkpoint.offset < 5:
                await store.wait_for(A, 5, 30)
            return (await store.read(0)).checkpoint.offset

        async def work() -> int:
            waiting = asyncio.create_task(waits())
            for expected in (3, 4, 5):
                await store.commit(A, at(expected), at(expected + 1), Changes({}, {}, {}))
            return await waiting

        assert run(work()) >= 5

    def test_a_reader_waits_no_longer_than_it_says(self, store: Store) -> None:
        activate(store, A, 3)
        run(store.wait_for(A, 9, 0.001))

    # Rows.

    def test_a_row_is_read_back_and_an_absent_one_is_none(self, store: Store) -> None:
        activate(store, A, 0, row(b"\x00\xff"))
        absent = RowKey("t", "village", "baker", "other")
        assert run(store.read(0, [absent, ROW, absent])).rows == [None, b"\x00\xff", None]

    def test_a_row_is_replaced_and_deleted(self, store: Store) -> None:
        build(store, A, 0, row(b"1"))
        commit(store, A, 0, 1, row(b"2"))
        assert data_of(store, A) == b"2"
        commit(store, A, 1, 2, row(None))
        assert data_of(store, A) is None

    def test_deleting_an_absent_row_changes_nothing(self, store: Store) -> None:
        build(store, A, 0)
        assert commit(store, A, 0, 1, row(None)) is Outcome.APPLIED

    @pytest.mark.parametrize("part", range(4))
    def test_rows_differ_by_every_part_of_their_address(self, store: Store, part: int) -> None:
        build(store, A, 0, row(b"1"))
        other = RowKey(*("x" if n == part else field for n, field in enumerate(ROW)))
        assert data_of(store, A, other) is None

    def test_a_read_returns_the_generation_and_checkpoint_it_saw(self, store: Store) -> None:
        activate(store, A, 3)
        build(store, B, 2)
        snapshot = run(store.read(0))
        assert (snapshot.generation, snapshot.checkpoint) == (A, at(3))
        snapshot = run(store.read(0, generation=B))
        assert (snapshot.generation, snapshot.checkpoint) == (B, at(2))

    # Logs.

    def test_an_unwritten_log_is_empty(self, store: Store) -> None:
        build(store, A, 0)
        assert tail(store, A) == ([], 0)

    @pytest.mark.parametrize(("newest", "expected"), [(2, [b"3", b"4"]), (5, b"01234"), (9, b"01234"), (0, [])])
    def test_the_newest_entries_are_read_oldest_first(
        self, store: Store, newest: int, expected: Sequence[bytes] | bytes
    ) -> None:
        build(store, A, 0, entries(5))
        wanted = [bytes([digit]) for digit in expected] if isinstance(expected, bytes) else expected
        assert tail(store, A, newest) == (wanted, 5)

    def test_a_log_grows_over_commits(self, store: Store) -> None:
        build(store, A, 0, entries(2))
        commit(store, A, 0, 1, entries(2, first=2))
        assert tail(store, A) == ([b"0", b"1", b"2", b"3"], 4)

    def test_entries_beyond_the_limit_are_dropped_oldest_first_and_counted_in_the_total(self, store: Store) -> None:
        build(store, A, 0, entries(2, keep=3))
        commit(store, A, 0, 1, entries(3, first=2, keep=3))
        assert tail(store, A) == ([b"2", b"3", b"4"], 5)

    @pytest.mark.parametrize("before", [0, 1, 3])
    def test_one_commit_may_append_more_entries_than_the_log_holds(self, store: Store, before: int) -> None:
        build(store, A, 0, entries(before, keep=3) if before else None)
        commit(store, A, 0, 1, entries(8, first=before, keep=3))
        last = before + 8
        assert tail(store, A) == ([b"%d" % n for n in range(last - 3, last)], last)

    @pytest.mark.parametrize("newest", [0, 1, KEEP, KEEP + 100])
    @pytest.mark.parametrize("appended", [1, 5, 100])
    def test_a_log_has_the_same_bounds_however_it_was_appended(self, store: Store, appended: int, newest: int) -> None:
        build(store, A, 0)
        for offset, total in enumerate(range(appended, 301, appended)):
            commit(store, A, offset, offset + 1, entries(appended, first=total - appended, keep=KEEP))
            if total % 5 == 0:
                kept = range(max(0, total - min(newest, KEEP)), total)
                assert tail(store, A, newest) == ([b"%d" % n for n in kept], total)

    def test_two_owners_have_separate_logs(self, store: Store) -> None:
        other = LogName("l", "village", "miller")
        build(store, A, 0, Changes(logs={LOG: [b"1"], other: [b"2"]}, keep={"l": 5}))
        assert (tail(store, A), tail(store, A, log=other)) == (([b"1"], 1), ([b"2"], 1))

    # Scans.

    def test_a_scan_returns_rows_by_space_owner_and_key(self, store: Store) -> None:
        needs = [RowKey("t", s, o, k) for s in ("b", "a") for o in ("", "z", "é") for k in ("", "2", "10")]
        build(store, A, 0, Changes(rows={need: need.key.encode() for need in needs}))
        expected = sorted((need.space, need.owner, need.key) for need in needs)
        assert [item.row_key for item in scanned(store, A, "t")] == expected

    def test_a_scan_returns_the_kept_entries_of_logs_with_their_ordinals(self, store: Store) -> None:
        other = LogName("l", "village", "abel")
        build(store, A, 0, entries(5, keep=2))
        commit(store, A, 0, 1, entries(1, first=9, keep=2, log=other))
        assert scanned(store, A, "l", limit=1) == [
            StoredRow("village", "abel", f"{0:020d}", b"9"),
            StoredRow("village", "baker", f"{3:020d}", b"3"),
            StoredRow("village", "baker", f"{4:020d}", b"4"),
        ]

    @pytest.mark.parametrize("limit", [1, 3, 7, KEEP, 1000])
    @pytest.mark.parametrize("appended", [1, 5, 100])
    def test_a_scan_returns_the_same_items_however_a_log_was_appended(
        self, store: Store, appended: int, limit: int
    ) -> None:
        other = LogName("l", "village", "abel")
        build(store, A, 0, entries(2, keep=KEEP, log=other))
        for offset in range(300 // appended):
            commit(store, A, offset, offset + 1, entries(appended, first=offset * appended, keep=KEEP))
        kept = [StoredRow("village", "baker", f"{n:020d}", b"%d" % n) for n in range(300 - KEEP, 300)]
        assert scanned(store, A, "l", limit)[2:] == kept
        assert scanned(store, A, "l", limit, space="village")[2:] == kept

    @pytest.mark.parametrize("key", ["k", "7", "9" * 30])
    def test_a_scan_after_the_last_row_is_empty_whatever_the_key(self, store: Store, key: str) -> None:
        build(store, A, 0, row(b"1", RowKey("t", "village", "baker", key)))
        chunk = run(store.scan(A, "t", after=("village", "baker", key), limit=3))
        assert (chunk.items, chunk.last) == ([], True)

    @pytest.mark.parametrize("table", ["t", "l"])
    def test_a_scan_of_one_space_leaves_out_the_others(self, store: Store, table: str) -> None:
        changes = Changes(
            {RowKey("t", space, "o", str(n)): b"1" for space in ("a", "b", "c") for n in range(4)},
            {LogName("l", space, "o"): [b"1"] * 4 for space in ("a", "b", "c")},
            {"l": 10},
        )
        build(store, A, 0, changes)
        found = scanned(store, A, table, space="b")
        assert ([item.space for item in found], len(found)) == (["b"] * 4, 4)

    @pytest.mark.parametrize("table", ["t", "l"])
    def test_a_scan_after_the_last_item_is_empty(self, store: Store, table: str) -> None:
        build(store, A, 0, Changes({ROW: b"1"}, {LOG: [b"1"]}, {"l": 10}))
        (item,) = scanned(store, A, table)
        chunk = run(store.scan(A, table, after=item.row_key, limit=10))
        assert (chunk.items, chunk.last) == ([], True)

    def test_rows_deleted_between_two_pages_cause_no_error(self, store: Store) -> None:
        needs = [RowKey("t", "village", "", key) for key in "abc"]
        build(store, A, 0, Changes(rows=dict.fromkeys(needs, b"1")))
        page = run(store.scan(A, "t", limit=1))
        commit(store, A, 0, 1, Changes(rows=dict.fromkeys(needs)))
        chunk = run(store.scan(A, "t", after=page.items[-1].row_key, limit=1))
        assert (chunk.checkpoint, chunk.items, chunk.last) == (at(1), [], True)

    def test_a_full_last_page_has_no_successor(self, store: Store) -> None:
        build(store, A, 0, Changes(rows={RowKey("t", "village", "", key): b"1" for key in "abc"}))
        chunk = run(store.scan(A, "t", limit=3))
        assert (len(chunk.items), chunk.last) == (3, True)

    def test_an_unwritten_table_is_empty(self, store: Store) -> None:
        build(store, A, 0)
        chunk = run(store.scan(A, "nothing", limit=3))
        assert (chunk.items, chunk.last) == ([], True)

    def test_a_scan_returns_the_checkpoint_it_was_read_at(self, store: Store) -> None:
        build(store, A, 0)
        before = run(store.scan(A, "t", limit=3)).checkpoint
        commit(store, A, 0, 1)
        assert (before, run(store.scan(A, "t", limit=3)).checkpoint) == (at(0), at(1))

    # Scans of the rows of one owner.

    KEYS: ClassVar[Sequence[str]] = (
        "", "0", "00", "1", "1/", "1/a", "1/b", "10", "2", "a", "b", "é", "\ud7ff", "\ue000", "\uffff",
        "\U0010ffff", "\U0010ffffa", "1\U0010ffff", "1\U0010ffff\U0010ffff", "a\0", "a\0b", "a\x01",
    )  # fmt: skip

    @pytest.fixture
    def owners(self, store: Store) -> Store:
        """Rows of generation A: the same keys of several owners and spaces."""
        needs = [
            RowKey("t", space, owner, key)
            for space in ("s", "s\0", "t")
            for owner in ("", "o", "o\0", "p")
            for key in self.KEYS
        ]
        build(store, A, 0, Changes(rows={need: need.key.encode() for need in needs}))
        return store

    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize("owner", ["", "o", "o\0"])
    def test_a_scan_of_one_owner_returns_its_rows_in_either_order(
        self, owners: Store, owner: str, newest_first: bool
    ) -> None:
        expected = sorted(self.KEYS, reverse=newest_first)
        for limit in (1, 2, len(self.KEYS) - 1, len(self.KEYS), 1000):
            assert paged(owners, "s", owner, newest_first=newest_first, limit=limit) == expected

    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize(
        "prefix", ["1", "1/", "a", "a\0", "\ud7ff", "\U0010ffff", "1\U0010ffff", "\U0010ffff\U0010ffff", "none"]
    )
    def test_a_scan_by_prefix_returns_the_keys_that_begin_with_it(
        self, owners: Store, prefix: str, newest_first: bool
    ) -> None:
        expected = sorted((key for key in self.KEYS if key.startswith(prefix)), reverse=newest_first)
        for limit in (1, 2, 1000):
            assert paged(owners, "s", "o", prefix, newest_first=newest_first, limit=limit) == expected

    @pytest.mark.parametrize("newest_first", [False, True])
    @pytest.mark.parametrize("prefix", ["", "1", "a"])
    @pytest.mark.parametrize("after", [*KEYS, "0a", "zz"])
    def test_a_scan_begins_behind_a_key_that_need_not_exist(
        self, owners: Store, after: str, prefix: str, newest_first: bool
    ) -> None:
        expected = sorted((key for key in self.KEYS if key.startswith(prefix)), reverse=newest_first)
        expected = [key for key in expected if (key < after if newest_first else key > after)]
        assert paged(owners, "s", "o", prefix, newest_first=newest_first, after=after, limit=3) == expected

    def test_a_reversed_scan_of_one_space_or_of_all_returns_rows_by_space_owner_and_key(self, owners: Store) -> None:
        everything = sorted((s, o, k) for s in ("s", "s\0", "t") for o in ("", "o", "o\0", "p") for k in self.KEYS)
        for space in (None, "s"):
            expected = [row_key for row_key in everything if space in (None, row_key[0])]
            chunk = run(owners.scan(A, "t", space=space, newest_first=True, limit=1000))
            assert [item.row_key for item in chunk.items] == expected[::-1]

    def test_a_full_last_page_of_an_owner_has_no_successor(self, owners: Store) -> None:
        for newest_first in (False, True):
            for limit, last in ((2, False), (3, True)):
                chunk = run(
                    owners.scan(A, "t", space="s", owner="o", prefix="1/", newest_first=newest_first, limit=limit)
                )
                assert (len(chunk.items), chunk.last) == (limit, last)

    def test_a_scan_of_an_unwritten_owner_is_empty(self, owners: Store) -> None:
        for owner, prefix in (("q", ""), ("o", "zz")):
            chunk = run(owners.scan(A, "t", space="s", owner=owner, prefix=prefix, limit=3))
            assert (chunk.checkpoint, chunk.items, chunk.last) == (at(0), [], True)

    def test_a_page_shows_the_commits_before_it(self, owners: Store) -> None:
        changes = Changes(rows={RowKey("t", "s", "o", "3"): b"new", RowKey("t", "s", "o", "2"): None})
        page = run(owners.scan(A, "t", space="s", owner="o", prefix="1", newest_first=True, limit=1))
        commit(owners, A, 0, 1, changes)
        assert (page.checkpoint, [item.key for item in page.items]) == (at(0), ["1\U0010ffff\U0010ffff"])
        expected = sorted({*self.KEYS, "3"} - {"2"})
        assert paged(owners, "s", "o") == expected
        assert paged(owners, "s", "o", newest_first=True) == expected[::-1]

    def test_logs_are_not_scanned_by_owner_or_in_reverse(self, store: Store) -> None:
        build(store, A, 0, entries(5))
        for chunk in (
            run(store.scan(A, "l", space="village", owner="baker", limit=9)),
            run(store.scan(A, "l", newest_first=True, limit=9)),
        ):
            assert (chunk.items, chunk.last) == ([], True)

    def test_a_prefix_without_an_owner_violates_an_invariant(self, store: Store) -> None:
        build(store, A, 0)
        with pytest.raises(InvariantViolation):
            run(store.scan(A, "t", space="s", prefix="1", limit=9))
        with pytest.raises(InvariantViolation):
            run(store.scan(A, "t", owner="o", limit=9))

    # Optimistic reads.

    def test_an_optimistic_read_returns_what_a_read_of_the_active_generation_returns(self, store: Store) -> None:
        activate(store, A, 3, Changes({ROW: b"a"}, {LOG: [b"1"]}, {"l": 10}))
        build(store, B, 5)
        found = run(store.read_current(0, [ROW], [(LOG, 9)], lambda *_: True))
        assert found in (None, run(store.read(0, [ROW], [(LOG, 9)])))

    def test_an_optimistic_read_asks_about_the_active_generation_and_returns_nothing_if_it_is_refused(
        self, store: Store
    ) -> None:
        activate(store, A, 3, row(b"a"))
        build(store, B, 5)
        seen: list[tuple[Generation, int]] = []

        def refuse(generation: Generation, checkpoint: Checkpoint) -> bool:
            seen.append((generation, checkpoint.offset))
            return False

        assert run(store.read_current(0, [ROW], [], refuse)) is None
        assert seen in ([], [(A, 3)])

    def test_an_optimistic_read_without_an_active_generation_returns_nothing(self, store: Store) -> None:
        build(store, A, 3)
        assert run(store.read_current(0, [], [], lambda *_: True)) is None

    # Nothing to read from.

    def test_a_store_without_generations_is_rebuilding(self, store: Store) -> None:
        with pytest.raises(Rebuilding, match="no views yet"):
            run(store.read(0, [ROW]))

    def test_a_building_generation_is_not_read_from(self, store: Store) -> None:
        build(store, A, 3, row(b"half"))
        with pytest.raises(Rebuilding):
            run(store.read(0, [ROW]))

    def test_an_active_generation_without_checkpoint_is_rebuilding_and_never_empty(self, store: Store) -> None:
        activate(store, A, 3, row(b"1"))
        self.lose_checkpoint(store, A)
        with pytest.raises(Rebuilding):
            run(store.read(0, [ROW]))

    def test_a_deleted_generation_is_neither_read_nor_scanned(self, store: Store) -> None:
        activate(store, A, 3, row(b"1"))
        activate(store, B, 3)
        run(store.collect_garbage(0))
        with pytest.raises(Rebuilding):
            run(store.read(0, [ROW], generation=A))
        with pytest.raises(Rebuilding):
            run(store.scan(A, "t", limit=1))

    @abstractmethod
    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        """Make the checkpoint of `generation` disappear while the pointer still names it, as an eviction would."""
