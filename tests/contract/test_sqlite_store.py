"""The embedded store: the contract, equality with the store in memory, and damaged or deleted files."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.random_commits import NAMES, answers, changes
from contract.store_contract import LOG, A, B, StoreContract, activate, at, build, commit, data_of, entries, row, tail
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Generation, Outcome, Pointer, Store
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import Rebuilding, StorageCorrupt, StorageError
from support.events import run


class TestSqliteStore(StoreContract):
    def make(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "views.db")

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, SqliteStore)
        run(store._file.run(lambda c: c.execute("DELETE FROM generations WHERE id = ?", (generation.id,)), write=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "views.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, 0.05)
    yield store
    run(store.close())


def test_a_reopened_store_holds_what_it_held(store: SqliteStore, path: Path) -> None:
    activate(store, A, 3, Changes({RowKey("t", "s"): b"1"}, {LogName("l", "s"): [b"1", b"2"]}, {"l": 1}))
    other = SqliteStore(path)
    try:
        assert run(other.pointer(0)) == Pointer(active=A)
        assert data_of(other, A, RowKey("t", "s")) == b"1"
        assert tail(other, A, log=LogName("l", "s")) == ([b"2"], 2)
    finally:
        run(other.close())


def test_an_optimistic_read_succeeds_once_all_below_the_end_is_processed(store: SqliteStore) -> None:
    activate(store, A, 3, row(b"a"))
    found = run(store.read_current(0, [RowKey("t", "village", "baker", "k")], [(LOG, 9)], lambda: 4))
    assert found is not None
    assert (found.generation, found.checkpoint, list(found.rows)) == (A, at(3), [b"a"])


def test_damage_of_the_ledger_that_a_read_meets_does_not_replace_the_views(store: SqliteStore, path: Path) -> None:
    activate(store, A, 3, row(b"a"))
    before = path.stat().st_ino

    def damaged() -> int:
        raise StorageCorrupt("the ledger is damaged")

    with pytest.raises(StorageCorrupt, match="the ledger is damaged"):
        run(store.read_current(0, [], [], damaged))
    assert path.stat().st_ino == before
    assert run(store.pointer(0)) == Pointer(active=A)


def test_two_stores_on_one_file_fence_each_other(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)
    try:
        build(store, A)
        assert run(other.create(B)) == Pointer(building=A)
        assert commit(other, A, -1, 2, row(b"theirs")) is Outcome.APPLIED
        assert commit(store, A, -1, 2, row(b"theirs")) is Outcome.ALREADY_THERE
        assert commit(store, A, -1, 1, row(b"mine")) is Outcome.AHEAD
        assert data_of(store, A) == b"theirs"
    finally:
        run(other.close())


def test_a_commit_that_fails_half_way_changes_nothing(store: SqliteStore) -> None:
    build(store, A, 0, entries(1))
    half = Changes({RowKey("t", "s"): b"x", RowKey("t", "s", "o"): object()}, {LogName("l", "s"): [b"x"]}, {"l": 5})  # type: ignore[dict-item]
    with pytest.raises((sqlite3.Error, StorageError)):
        commit(store, A, 0, 1, half)
    assert run(store.checkpoint(A)) == at(0)
    assert data_of(store, A, RowKey("t", "s")) is None
    assert tail(store, A, log=LogName("l", "s")) == ([], 0)


def test_a_full_disk_leaves_rows_and_checkpoint_unchanged(store: SqliteStore) -> None:
    build(store, A, 0, row(b"before"))
    run(store._file.run(lambda connection: connection.execute("PRAGMA max_page_count=20").fetchone()))
    with pytest.raises(StorageError, match="nothing was written"):
        commit(store, A, 0, 1, row(b"x" * 200_000))
    assert (run(store.checkpoint(A)), data_of(store, A)) == (at(0), b"before")


def test_views_deleted_while_open_are_rebuilding_and_not_read_from_an_old_copy(store: SqliteStore, path: Path) -> None:
    activate(store, A, 3, row(b"old"))
    path.unlink()
    with pytest.raises(Rebuilding):
        run(store.read(0, [RowKey("t", "village", "baker", "k")]))


def test_a_commit_into_deleted_views_is_refused(store: SqliteStore, path: Path) -> None:
    activate(store, A, 3, row(b"old"))
    path.unlink()
    assert commit(store, A, 3, 4, row(b"new")) is Outcome.RETIRED


def test_new_views_contain_nothing_of_views_deleted_after_a_crash(store: SqliteStore, path: Path) -> None:
    """The remedy is to delete the file. Its write-ahead log, left by the crash, must not be applied to the new one."""
    activate(store, A, 3, row(b"old"))
    path.unlink()
    other = SqliteStore(path)
    try:
        assert run(other.pointer(0)) == Pointer()
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("SELECT count(*) FROM rows").fetchone() == (0,)
    finally:
        run(other.close())


def test_two_stores_both_continue_in_the_new_file(store: SqliteStore, path: Path) -> None:
    other = SqliteStore(path)
    try:
        activate(store, A, 3)
        assert run(other.pointer(0)) == Pointer(active=A)
        path.unlink()
        activate(store, B, 1, row(b"new"))
        assert run(other.pointer(0)) == Pointer(active=B)
        assert data_of(other, B) == b"new"
    finally:
        run(other.close())


def test_garbage_collection_deletes_a_large_generation_completely(store: SqliteStore, path: Path) -> None:
    rows = {RowKey("t", "s", str(n)): b"1" for n in range(6_000)}
    logs = {LogName("l", "s", str(n)): [b"1", b"2"] for n in range(500)}
    activate(store, A, 3, Changes(rows, logs, {"l": 5}))
    activate(store, B, 3)
    run(store.collect_garbage(0))
    with closing(sqlite3.connect(path)) as connection:
        left = [
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("rows", "logs", "segments")
        ]
    assert left == [0, 0, 0]


# How a log is stored in the file.


def segments(path: Path) -> list[tuple[int, int]]:
    """Ordinal of the first entry, and count, of each segment."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT slot & 4294967295, count FROM segments ORDER BY slot").fetchall()


def test_one_commit_appends_few_segments_to_a_log(store: SqliteStore, path: Path) -> None:
    build(store, A, 0, entries(2))
    commit(store, A, 0, 1, entries(70, first=2))
    assert segments(path) == [(0, 2), (2, 32), (34, 32), (66, 6)]


def test_only_whole_segments_are_trimmed(store: SqliteStore, path: Path) -> None:
    build(store, A, 0, entries(5, keep=8))
    commit(store, A, 0, 1, entries(5, first=5, keep=8))
    commit(store, A, 1, 2, entries(5, first=10, keep=8))
    assert segments(path) == [(5, 5), (10, 5)]


def test_a_commit_writes_only_the_newest_entries_that_the_log_holds(store: SqliteStore, path: Path) -> None:
    build(store, A, 0, entries(5, keep=8))
    commit(store, A, 0, 1, entries(50, first=5, keep=8))
    assert segments(path) == [(47, 8)]


def test_a_damaged_segment_means_new_views(store: SqliteStore, path: Path) -> None:
    activate(store, A, 0, entries(3))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE segments SET entries = x'93c401'")
    with pytest.raises(Rebuilding):
        run(store.read(0, logs=[(LOG, 1)]))
    assert run(store.pointer(0)) == Pointer()


# Equality with the store in memory.


@settings(max_examples=60)
@given(
    commits=st.lists(changes(), max_size=8),
    limit=st.integers(1, 5) | st.integers(20, 50),
    space=st.none() | st.sampled_from(NAMES),
    newest=st.integers(0, 9) | st.integers(30, 80),
)
def test_it_answers_like_the_store_in_memory(
    tmp_path_factory: pytest.TempPathFactory, commits: list[Changes], limit: int, space: str | None, newest: int
) -> None:
    async def both() -> tuple[list[object], list[object]]:
        sqlite = SqliteStore(tmp_path_factory.mktemp("views") / "views.db")
        try:
            return (
                await answers(sqlite, commits, limit=limit, space=space, newest=newest),
                await answers(MemoryStore(), commits, limit=limit, space=space, newest=newest),
            )
        finally:
            await sqlite.close()

    found, expected = run(both())
    assert found == expected
