"""The embedded store: the contract, equality with the store in memory, and damaged or deleted files."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.damage_contract import DamageContract, reported
from contract.random_commits import NAMES, answers, changes
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.sqlite import SqliteStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, Pointer, Store, ordinal_key
from recallog_projections.tables import LogName, RowKey
from recallog_schemas.errors import Rebuilding, StorageCorrupt, StorageError
from recallog_testing.contracts.store import (
    LOG,
    ROW,
    A,
    B,
    activate,
    at,
    build,
    commit,
    data_of,
    entries,
    row,
    scanned,
    tail,
)
from support.events import run

GENERATION = "(SELECT number FROM generations WHERE id = '%s')"
OF_A, OF_B = GENERATION % "aaaa", GENERATION % "bbbb"
ROW_OF_A = f"generation = {OF_A} AND owner = 'baker'"
LOG_OF_A = f"slot >> 32 = (SELECT number FROM logs WHERE generation = {OF_A} AND owner = 'baker')"
DAMAGES = {
    "a flipped value": f"UPDATE rows SET value = x'62' || substr(value, 2) || x'00' WHERE {ROW_OF_A}",
    "a truncated value": f"UPDATE rows SET value = substr(value, 2) WHERE {ROW_OF_A}",
    "an empty value": f"UPDATE rows SET value = x'' WHERE {ROW_OF_A}",
    "the value of another row": "UPDATE rows SET (value, crc) = (SELECT value, crc FROM rows r WHERE "
    f"r.generation = rows.generation AND r.owner = 'miller') WHERE {ROW_OF_A}",
    "the value of another generation": "UPDATE rows SET (value, crc) = (SELECT value, crc FROM rows r WHERE "
    f"r.generation = {OF_B} AND r.owner = 'baker') WHERE {ROW_OF_A}",
    "a flipped entry": "UPDATE segments SET entries = CAST(replace(entries, 'b39', 'b38') AS BLOB) WHERE "
    f"{LOG_OF_A} AND slot & 4294967295 = 32",
    "a truncated entry": f"UPDATE segments SET entries = x'93c401' WHERE {LOG_OF_A}",
    "the entries of another log": "UPDATE segments SET (entries, crc) = (SELECT entries, crc FROM segments s WHERE "
    "s.slot & 4294967295 = segments.slot & 4294967295 AND s.slot >> 32 = (SELECT number FROM logs WHERE "
    f"generation = {OF_A} AND owner = 'miller')) WHERE {LOG_OF_A}",
    "the pointer": "UPDATE pointers SET generations = CAST(replace(generations, 'aaaa', 'bbbb') AS BLOB)",
    "the checkpoint": "UPDATE generations SET checkpoint = (SELECT checkpoint FROM generations WHERE id = 'bbbb') "
    "WHERE id = 'aaaa'",
    "a truncated checkpoint": "UPDATE generations SET checkpoint = substr(checkpoint, 1, 3) WHERE id = 'aaaa'",
    "the manifest": "UPDATE manifest SET ledger = x'31'",
}


class TestSqliteStore(DamageContract):
    def damage(self, store: Store, kind: str) -> None:
        assert isinstance(store, SqliteStore)
        alter(store._file.path, DAMAGES[kind])

    def make(self, folder: Path) -> SqliteStore:
        return SqliteStore(folder / "views.db")

    def lose_checkpoint(self, store: Store, generation: Generation) -> None:
        assert isinstance(store, SqliteStore)
        run(store._file.run(lambda c: c.execute("DELETE FROM generations WHERE id = ?", (generation.id,)), write=True))


def alter(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(sql).rowcount > 0


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


def test_an_optimistic_read_succeeds_if_the_checkpoint_is_accepted(store: SqliteStore) -> None:
    activate(store, A, 3, row(b"a"))
    found = run(store.read_current(0, [RowKey("t", "village", "baker", "k")], [(LOG, 9)], lambda *_: True))
    assert found is not None
    assert (found.generation, found.checkpoint, list(found.rows)) == (A, at(3), [b"a"])


def test_damage_of_the_ledger_that_a_read_meets_does_not_replace_the_views(store: SqliteStore, path: Path) -> None:
    activate(store, A, 3, row(b"a"))
    before = path.stat().st_ino

    def damaged(generation: Generation, checkpoint: Checkpoint) -> bool:
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
    with pytest.raises(TypeError):
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


# Damage that the contract does not name, because it depends on how the file is made.

DAMAGED_READS = {
    "UPDATE rows SET owner = 'maker' WHERE owner = 'baker'": False,
    "UPDATE rows SET name = 'u'": False,
    "UPDATE rows SET value = 7": True,
    "UPDATE rows SET crc = 'x'": True,
    "UPDATE logs SET owner = 'maker'": True,
    "UPDATE logs SET number = number + 7": True,
    "UPDATE logs SET crc = 0": True,
    "UPDATE segments SET slot = slot + 1": True,
    "UPDATE segments SET count = count + 1": True,
    "UPDATE segments SET keep = keep - 1": True,
    "UPDATE segments SET entries = 'text'": True,
    "DELETE FROM segments WHERE slot & 4294967295 = 32": True,
    "UPDATE generations SET number = number + 1": True,
    "UPDATE generations SET id = 'cccc'": True,
    "UPDATE generations SET checkpoint = NULL": True,
    "UPDATE pointers SET generations = x''": True,
    "UPDATE pointers SET partition = 7": True,
    "DELETE FROM pointers": True,
}


@pytest.mark.parametrize(("sql", "found"), DAMAGED_READS.items())
def test_an_altered_column_is_found_or_the_row_is_missing(
    store: SqliteStore, path: Path, sql: str, found: bool
) -> None:
    activate(store, A, 3, Changes({ROW: b"1"}, {LOG: [b"%d" % n for n in range(70)]}, {"l": 100}))
    alter(path, sql)
    if found:
        with pytest.raises(Rebuilding):
            run(store.read(0, [ROW], [(LOG, 70)]))
    else:
        result = run(store.read(0, [ROW], [(LOG, 70)]))
        assert result.rows[0] in (None, b"1")
        assert list(result.logs[0].entries) in ([], [b"%d" % n for n in range(70)])


SCANNED = [RowKey("t", "village", "baker", f"key-{n}") for n in range(9)]


@pytest.mark.parametrize("letter", ["a", "z"])
@pytest.mark.parametrize("damaged", range(len(SCANNED)))
def test_a_damaged_key_hides_no_rows_from_a_scan(store: SqliteStore, path: Path, damaged: int, letter: str) -> None:
    """A byte of a key is altered in the file, so that rows are no longer in the order in which they are searched."""
    activate(store, A, 3, Changes(dict.fromkeys([*SCANNED, RowKey("u", "village")], b"1"), {}, {}))
    run(store.close())
    before = f"tvillagebakerkey-{damaged}".encode()
    content = path.read_bytes()
    assert content.count(before) == 1
    path.write_bytes(content.replace(before, letter.encode() + before[1:]))
    reopened = SqliteStore(path)
    try:
        _, found = reported(reopened, "t", 100)
        assert found in ([], [SCANNED[damaged][1:]])
        try:
            rows = scanned(reopened, A, "t", limit=100)
        except Rebuilding:
            assert run(reopened.checkpoint(A)) is None
        else:
            assert [item.row_key for item in rows] == [row_key[1:] for row_key in SCANNED]
    finally:
        run(reopened.close())


def test_a_damaged_row_is_reported_in_its_own_table_alone(store: SqliteStore, path: Path) -> None:
    in_table, before = RowKey("t", "village", "baker"), LogName("s", "village", "baker")
    activate(store, A, 3, Changes({in_table: b"1"}, {before: [b"1"]}, {"s": 9}))
    alter(path, "UPDATE rows SET value = x'00'")
    assert reported(store, "t", 9) == ([], [in_table[1:]])
    assert reported(store, "s", 9) == ([("village", "baker", ordinal_key(0))], [])
    for beside in ("r", "u"):
        assert reported(store, beside, 9) == ([], [])


@pytest.mark.parametrize("letter", ["a", "z"])
@pytest.mark.parametrize("damaged", range(9))
def test_a_damaged_key_in_the_index_of_logs_hides_no_log(
    store: SqliteStore, path: Path, damaged: int, letter: str
) -> None:
    names = [LogName("l", "village", f"owner-{n}") for n in range(9)]
    activate(store, A, 3, Changes({}, {name: [b"1"] for name in names}, {"l": 100}))
    run(store.close())
    before = f"lvillageowner-{damaged}".encode()
    content = path.read_bytes()
    assert content.count(before) == 2  # in the table and in its index
    at = content.index(before, content.index(before) + 1)
    with closing(sqlite3.connect(path)) as connection:
        (index,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name LIKE '%logs_1'").fetchone()
    at = at if at // 4096 == index - 1 else content.index(before)
    assert at // 4096 == index - 1
    path.write_bytes(content[:at] + letter.encode() + content[at + 1 :])
    reopened = SqliteStore(path)
    try:
        for name in names:
            try:
                found = run(reopened.read(0, [], [(name, 9)]))
            except Rebuilding:
                assert run(reopened.checkpoint(A)) is None
                break
            assert list(found.logs[0].entries) == [b"1"]
    finally:
        run(reopened.close())


def test_damage_is_said_once(store: SqliteStore, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    activate(store, A, 3, row(b"1"))
    alter(path, "UPDATE rows SET value = x'00'")
    for _ in range(3):
        with pytest.raises(Rebuilding):
            run(store.read(0, [ROW]))
    (message,) = [record.getMessage() for record in caplog.records]
    for part in (str(path), "'baker'", "built again from the ledger"):
        assert part in message


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
