"""Errors of storage files: each names its remedy, writes nothing and loses nothing."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest

from recallog_projections.sqlite import locked
from recallog_projections.sqlite.errors import FileErrors
from recallog_projections.sqlite.file import SqliteFile
from recallog_projections.stores.sqlite import VIEWS, SqliteStore
from recallog_projections.stores.store import Generation, Pointer
from recallog_schemas import limits
from recallog_schemas.errors import (
    LockTimeout,
    StorageCorrupt,
    StorageError,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StorageTooNew,
)
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_streams.locks.folder import FolderLock
from recallog_testing.contracts.ledger import end, events_in
from support.events import event, numbered, run
from support.read_only import fill, read_only, small_disk


def use_ledger(path: Path) -> None:
    ledger = SqliteLedger(path, 0.05)
    try:
        run(ledger.append(numbered(1, first=100)))
    finally:
        run(ledger.close())


def use_store(path: Path) -> None:
    store = SqliteStore(path, 0.05)
    try:
        run(store.create(Generation("g", 0, "code", 0)))
    finally:
        run(store.close())


@pytest.fixture(params=[use_ledger, use_store], ids=["ledger", "views"])
def use(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Open a file, write to it, close it."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    """A ledger with three events."""
    ledger = SqliteLedger(path, 0.05)
    run(ledger.append(numbered(3)))
    yield ledger
    run(ledger.close())


def refused(use: Callable[[Path], None], path: Path, error: type[StorageError], message: str) -> None:
    """`use` raises `error`, names the file and the remedy, and leaves every byte in the folder as it was."""
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(error, match=message) as raised:
        use(path)
    assert type(raised.value) is error
    assert str(path) in str(raised.value)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


# Foreign files.


FOREIGN = pytest.mark.parametrize(
    "content", [b"Dear diary, " * 100, b"hello", b"\0" * 4096], ids=["long", "short", "zeros"]
)


@FOREIGN
def test_a_file_that_is_no_database_is_refused_as_a_ledger(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(use_ledger, path, StorageForeign, "Name another folder")


@FOREIGN
def test_a_file_that_is_no_database_is_renamed_and_new_views_take_its_place(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    use_store(path)
    (aside,) = path.parent.glob("a.db.*.aside")
    assert aside.read_bytes() == content
    assert "not a views file" in replaced(path, caplog)
    assert aside.name in caplog.text


def recipes(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (bread TEXT)")


def test_another_programs_database_is_refused_as_a_ledger(path: Path) -> None:
    recipes(path)
    refused(use_ledger, path, StorageForeign, "Name another folder")


def test_another_programs_database_in_place_of_views_is_renamed(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recipes(path)
    use_store(path)
    (aside,) = path.parent.glob("a.db.*.aside")
    assert tables(aside) == {"recipes"}
    assert aside.name in replaced(path, caplog)


def test_a_views_file_is_refused_as_a_ledger(path: Path) -> None:
    use_store(path)
    refused(use_ledger, path, StorageForeign, "not a ledger")


def test_a_ledger_file_in_place_of_views_is_renamed_and_loses_nothing(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use_ledger(path)
    use_store(path)
    (aside,) = path.parent.glob("a.db.*.aside")
    assert aside.name in replaced(path, caplog)
    moved = SqliteLedger(aside)
    try:
        assert [each.turn for each in events_in(moved)] == [100]
    finally:
        run(moved.close())


def test_a_newer_format_is_refused_with_the_advice_to_upgrade(use: Callable[[Path], None], path: Path) -> None:
    use(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=99")
    refused(use, path, StorageTooNew, "Install a newer version of Recallog")


def test_a_folder_instead_of_the_file_is_a_storage_error(use: Callable[[Path], None], path: Path) -> None:
    path.mkdir()
    with pytest.raises(StorageError, match=r"a\.db"):
        use(path)


# Views of an older format.


def make_older(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE relics (bone TEXT)")
        connection.execute(f"PRAGMA user_version={version - 1}")


def tables(path: Path) -> set[str]:
    """The tables of an undamaged file."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_views_of_an_older_format_are_recreated(path: Path) -> None:
    use_store(path)
    of_today = tables(path)
    make_older(path, VIEWS.version)
    use_store(path)
    assert tables(path) == of_today


def test_the_write_ahead_log_of_older_views_is_not_applied_to_the_new_ones(path: Path) -> None:
    use_store(path)
    of_today = tables(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as old:
        make_older(path, VIEWS.version)
        old.execute("INSERT INTO relics VALUES ('femur')")
        use_store(path)
        old.execute("INSERT INTO relics VALUES ('tibia')")
    use_store(path)
    assert tables(path) == of_today


def test_an_older_version_that_has_the_views_open_is_advised_to_upgrade(path: Path) -> None:
    old = SqliteFile(path, replace(VIEWS, version=VIEWS.version - 1))
    try:
        run(old.run(lambda connection: None, write=True))
        use_store(path)
        with pytest.raises(StorageReplaced):
            run(old.run(lambda connection: None, write=True))
        with pytest.raises(StorageTooNew, match="Install a newer version of Recallog"):
            run(old.run(lambda connection: None, write=True))
    finally:
        run(old.close())
    use_store(path)


def test_older_views_are_opened_while_another_process_recreates_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_store(path)
    make_older(path, VIEWS.version)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO relics VALUES (zeroblob(100000))")
    check, checks = locked.check_whole, []

    def overtaken(path: Path, connection: sqlite3.Connection, errors: FileErrors) -> None:
        checks.append(path)
        if len(checks) == 1:
            use_store(path)
        check(path, connection, errors)

    monkeypatch.setattr(locked, "check_whole", overtaken)
    use_store(path)
    assert len(checks) > 2
    assert "relics" not in tables(path)


def test_older_views_opened_by_many_at_once_are_recreated_once(path: Path) -> None:
    use_store(path)
    make_older(path, VIEWS.version)
    start = Barrier(8)

    def building(number: int) -> str:
        store = SqliteStore(path)
        start.wait()
        try:
            pointer = run(store.create(Generation(f"g{number}", 0, "code", 0)))
        finally:
            run(store.close())
        assert pointer.building is not None
        return pointer.building.id

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(building, range(8)))) == 1
    assert "relics" not in tables(path)


# Damaged files.


def test_an_empty_ledger_is_corrupt_and_not_a_new_database(path: Path) -> None:
    path.touch()
    refused(use_ledger, path, StorageCorrupt, "is empty")


def test_a_ledger_emptied_while_another_process_has_it_open_is_corrupt(ledger: SqliteLedger, path: Path) -> None:
    run(ledger.append(numbered(1, first=9)))
    os.truncate(path, 0)
    os.truncate(f"{path}-wal", 0)
    assert Path(f"{path}-shm").stat().st_size
    refused(use_ledger, path, StorageCorrupt, "is empty")


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_ledger_is_corrupt(path: Path, kept: float) -> None:
    use_ledger(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    refused(use_ledger, path, StorageCorrupt, "truncated")


def test_a_ledger_cut_in_its_first_page_is_a_storage_error(path: Path) -> None:
    use_ledger(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StorageError):
        use_ledger(path)


def test_overwritten_pages_are_corrupt(path: Path) -> None:
    use_ledger(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    refused(use_ledger, path, StorageCorrupt, "restore your backup")


def replaced(path: Path, caplog: pytest.LogCaptureFixture) -> str:
    """The one warning about damaged views; `path` holds new ones."""
    assert tables(path) == {"generations", "logs", "manifest", "pointers", "rows", "segments"}
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "recallog.storage"]
    assert str(path) in warning
    assert "built again from the ledger" in warning
    return warning


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "cut in its first page": lambda whole: whole[:50],
    "a third": lambda whole: whole[: len(whole) // 3],
    "half": lambda whole: whole[: len(whole) // 2],
    "last byte": lambda whole: whole[:-1],
    "pages of ones": lambda whole: whole[:4096] + b"\xff" * (len(whole) - 4096),
    "pages of zeros": lambda whole: whole[:4096] + bytes(len(whole) - 4096),
    "a table's name": lambda whole: whole.replace(b"CREATE TABLE pointers", b"CREATE TABLE printers").replace(
        b"tablepointerspointers", b"tableprintersprinters"
    ),
    "the schema": lambda whole: whole[:100] + bytes(3996) + whole[4096:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_views_are_replaced_by_new_ones_and_the_call_goes_on(
    path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    use_store(path)
    path.write_bytes(damage(path.read_bytes()))
    use_store(path)
    use_store(path)
    assert "delete the file" not in replaced(path, caplog)


def test_views_emptied_while_another_store_has_them_open_are_replaced(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(path, 0.05)
    try:
        run(store.create(Generation("old", 0, "code", 0)))
        os.truncate(path, 0)
        os.truncate(f"{path}-wal", 0)
        assert Path(f"{path}-shm").stat().st_size
        use_store(path)
        assert "is empty" in replaced(path, caplog)
        assert run(store.pointer(0)) != Pointer(building=Generation("old", 0, "code", 0))
    finally:
        run(store.close())


def test_views_damaged_while_open_are_replaced_for_all_stores_that_use_them(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stores = [SqliteStore(path, 0.05) for _ in range(2)]
    try:
        for store in stores:
            run(store.create(Generation("g", 0, "code", 0)))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DROP TABLE pointers")
        assert [run(store.pointer(0)) for store in stores] == [Pointer(), Pointer()]
        assert "no such table" in replaced(path, caplog)
        created = run(stores[0].create(Generation("h", 0, "code", 0)))
        assert run(stores[1].pointer(0)) == created
    finally:
        for store in stores:
            run(store.close())


# Locks, full disks and missing rights.


def test_an_error_about_a_lock_held_too_long_says_how_to_find_its_holder(
    use: Callable[[Path], None], path: Path
) -> None:
    use(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockTimeout, match="fuser") as raised:
            use(path)
        assert raised.value.retryable


def test_a_ledger_works_again_after_a_lock_timeout(ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockTimeout):
            run(ledger.append(numbered(1, first=3)))
    run(ledger.append(numbered(1, first=3)))
    assert [each.turn for each in events_in(ledger)] == [0, 1, 2, 3]


def test_readers_do_not_wait_for_a_writers_lock(ledger: SqliteLedger, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert len(events_in(ledger)) == 3


def test_a_call_on_a_full_disk_is_refused_completely_and_existing_events_remain(ledger: SqliteLedger) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages + 2}")

    run(ledger._file.run(fill))
    large = [event(payload={"text": "x" * 3_000}) for _ in range(20)]
    with pytest.raises(StorageFull, match="Free some"):
        run(ledger.append(large))
    assert [each.turn for each in events_in(ledger)] == [0, 1, 2]


def test_a_ledger_works_again_when_the_disk_has_space(ledger: SqliteLedger) -> None:
    large = [event(payload={"text": "x" * 3_000}) for _ in range(20)]
    run(ledger._file.run(lambda connection: connection.execute("PRAGMA max_page_count=10").fetchone()))
    with pytest.raises(StorageFull):
        run(ledger.append(large))
    run(ledger._file.run(lambda connection: connection.execute("PRAGMA max_page_count=100000").fetchone()))
    run(ledger.append(large))
    assert end(ledger) == 23


LIMITED = """
import asyncio, resource, sys
from pathlib import Path
from recallog_schemas import Event
from recallog_schemas.errors import StorageError
from recallog_streams.ledgers.sqlite import SqliteLedger

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]))
    await ledger.ends()
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    for turn in range(10_000):
        try:
            payload = {"text": "x" * 900}
            await ledger.append([Event(space="village", agent="a", kind="agent.spoke", turn=turn, payload=payload)])
        except StorageError as error:
            print(turn, type(error).__name__)
            import os; sys.stdout.flush(); os._exit(0)
        except BaseException as error:
            print(turn, "NOT A STORAGE ERROR", repr(error))
            raise

asyncio.run(main())
"""


def test_a_file_size_limit_loses_no_acknowledged_event(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True)
    acknowledged, error = done.stdout.split(maxsplit=1)
    assert error.strip() in ("StorageUnavailable", "StorageFull")
    ledger = SqliteLedger(path)
    try:
        assert [each.turn for each in events_in(ledger)] == list(range(int(acknowledged)))
    finally:
        run(ledger.close())


UNPRIVILEGED = """
import asyncio, os, sys
from pathlib import Path
from recallog_projections.stores.sqlite import SqliteStore
from recallog_schemas import Event
from recallog_schemas.errors import StorageError
from recallog_streams.ledgers.sqlite import SqliteLedger

# Everything is imported before, since the user `nobody` may have no access to the interpreter's files.
os.setgroups([]); os.setgid(65534); os.setuid(65534)

async def main(path):
    for use in (use_ledger, use_store):
        try:
            await use(path)
        except StorageError as error:
            print(type(error).__name__, "|", error)

async def use_ledger(path):
    ledger = SqliteLedger(path / "ledger.db", 0.05)
    try:
        await ledger.append([Event(space="village", agent="a", kind="agent.spoke", payload={"text": "x"})])
    finally:
        await ledger.close()

async def use_store(path):
    store = SqliteStore(path / "views.db", 0.05)
    try:
        await store.remember_manifest(b"")
    finally:
        await store.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def unprivileged(folder: Path, closed: Path | None = None) -> list[str]:
    """The errors of a process of the user `nobody` that writes to the ledger and to the views of `folder`."""
    if os.getuid() != 0:
        pytest.skip("SKIPPED LOUDLY: only root can become nobody, so read-only folders were not tested")
    for parent in folder.parents:  # pytest's folders are closed to others
        if parent.stat().st_uid == 0 and parent not in (Path("/"), Path("/tmp")):
            parent.chmod(0o755)
    if closed is not None:
        closed.chmod(0o700)
    command = [sys.executable, "-c", UNPRIVILEGED, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
def test_an_error_about_an_unwritable_folder_names_the_missing_right(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "memory"
    folder.mkdir(mode=0o755)
    if there:
        use_ledger(folder / "ledger.db")
        use_store(folder / "views.db")
        for file in folder.iterdir():  # its owner lets others read it
            file.chmod(0o644)
    before = sorted(file.name for file in folder.iterdir())
    heard = unprivileged(folder)
    assert [line.split(" | ")[0] for line in heard] == ["StorageReadOnly", "StorageReadOnly"]
    assert all("right to write" in line for line in heard)
    assert sorted(file.name for file in folder.iterdir()) == before


def test_an_error_about_a_folder_that_cannot_be_created_names_the_missing_right(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o755)
    heard = unprivileged(tmp_path / "closed" / "memory")
    assert [line.split(" | ")[0] for line in heard] == ["StorageReadOnly", "StorageReadOnly"]


# Deleted and replaced files.


def test_a_ledger_deleted_while_open_refuses_to_write_and_creates_no_new_file(ledger: SqliteLedger, path: Path) -> None:
    path.unlink()
    with pytest.raises(StorageReplaced, match="Put it back"):
        run(ledger.append(numbered(1, first=3)))
    assert not path.exists()


def test_a_ledger_deleted_while_open_is_not_recreated_by_the_next_call(ledger: SqliteLedger, path: Path) -> None:
    path.unlink()
    for _ in range(3):
        with pytest.raises(StorageReplaced):
            run(ledger.append(numbered(1, first=3)))


def delete(path: Path) -> None:
    """Delete a database with its write-ahead log and shared memory."""
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def test_a_ledger_deleted_with_its_write_ahead_log_is_not_recreated(ledger: SqliteLedger, path: Path) -> None:
    delete(path)
    for _ in range(3):
        with pytest.raises(StorageReplaced, match="Put it back"):
            run(ledger.append(numbered(1, first=3)))
        assert not path.exists()


def test_a_copy_of_a_deleted_ledger_is_accepted(ledger: SqliteLedger, path: Path) -> None:
    copies = {name: name.read_bytes() for name in (path, Path(f"{path}-wal"))}
    delete(path)
    with pytest.raises(StorageReplaced):
        run(ledger.append(numbered(1, first=3)))
    for name, content in copies.items():
        name.write_bytes(content)
    run(ledger.append(numbered(1, first=3)))
    assert [each.turn for each in events_in(ledger)] == [0, 1, 2, 3]


def test_another_ledger_is_refused_in_place_of_a_deleted_one(ledger: SqliteLedger, path: Path) -> None:
    delete(path)
    use_ledger(path)
    before = path.read_bytes()
    for _ in range(3):
        with pytest.raises(StorageReplaced, match="deleted or replaced"):
            run(ledger.append(numbered(1, first=3)))
    assert path.read_bytes() == before


def test_deleted_views_are_recreated(path: Path) -> None:
    store = SqliteStore(path)
    try:
        for name in ("g1", "g2"):
            pointer = run(store.create(Generation(name, 0, "code", 0)))
            assert pointer.building is not None
            assert pointer.building.id == name
            delete(path)
    finally:
        run(store.close())


def test_a_restored_ledger_has_all_its_events(ledger: SqliteLedger, path: Path) -> None:
    kept = path.with_name("kept.db")
    path.rename(kept)
    with pytest.raises(StorageReplaced):
        run(ledger.append(numbered(1, first=3)))
    kept.rename(path)
    run(ledger.append(numbered(1, first=3)))
    assert [each.turn for each in events_in(ledger)] == [0, 1, 2, 3]


def test_a_ledger_replaced_while_open_is_detected_and_the_new_one_is_unchanged(
    ledger: SqliteLedger, path: Path
) -> None:
    other = path.with_name("other.db")
    use_ledger(other)
    other.replace(path)
    before = path.read_bytes()
    with pytest.raises(StorageReplaced):
        run(ledger.append(numbered(1, first=3)))
    assert path.read_bytes() == before


def test_a_new_ledger_never_holds_records_of_a_deleted_one(ledger: SqliteLedger, path: Path) -> None:
    """SQLite would apply the old write-ahead log, which a deleted file leaves behind, to the new file."""
    path.unlink()
    other = SqliteLedger(path, 0.05)
    try:
        with pytest.raises(StorageReplaced, match="Put the file back"):
            run(other.ends())
    finally:
        run(other.close())


# Closed files.


def test_a_closed_ledger_raises_an_error(ledger: SqliteLedger) -> None:
    run(ledger.close())
    with pytest.raises(StorageError, match=r"closed.*open it again") as raised:
        run(ledger.ends())
    assert not raised.value.retryable


def test_closing_a_ledger_twice_is_no_error(ledger: SqliteLedger) -> None:
    run(ledger.close())
    run(ledger.close())


def test_the_limit_of_an_event_is_checked_before_the_file_is_touched(path: Path) -> None:
    ledger = SqliteLedger(path)
    try:
        with pytest.raises(Exception, match="262,144"):
            run(ledger.append([event(payload={"text": "x" * limits.EVENT_BYTES_MAX})]))
        assert not path.exists()
    finally:
        run(ledger.close())


def test_an_error_about_a_folder_that_may_not_be_entered_names_the_missing_right(tmp_path: Path) -> None:
    folder = tmp_path / "closed" / "memory"
    folder.mkdir(parents=True)
    use_ledger(folder / "ledger.db")
    heard = unprivileged(folder, closed=folder.parent)
    assert [line.split(" | ")[0] for line in heard] == ["StorageReadOnly", "StorageReadOnly"]


def test_an_error_about_a_ledger_that_may_not_be_read_names_the_missing_right(tmp_path: Path) -> None:
    folder = tmp_path / "memory"
    folder.mkdir(mode=0o755)
    use_ledger(folder / "ledger.db")
    (folder / "ledger.db").chmod(0o600)
    assert "no right to read the ledger" in unprivileged(folder)[0]


# Folders that cannot be made.


def _a_file(folder: Path) -> Path:
    (folder / "home").write_text("I am a file")
    return folder / "home"


def _below_a_file(folder: Path) -> Path:
    return _a_file(folder) / "memory"


def _with_a_long_name(folder: Path) -> Path:
    return folder / ("x" * 300)


def _in_a_circle_of_links(folder: Path) -> Path:
    (folder / "home").symlink_to(folder / "home")
    return folder / "home"


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (_a_file, "home is a file, not a folder"),
        (_below_a_file, "home is a file, not a folder"),
        (_with_a_long_name, "File name too long"),
        (_in_a_circle_of_links, "Too many levels of symbolic links"),
    ],
)
def test_an_impossible_folder_is_named_and_a_retry_is_not_advised(
    tmp_path: Path, place: Callable[[Path], Path], says: str
) -> None:
    home = place(tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    for call in (use_ledger, use_store, use_lock):
        with pytest.raises(StorageError, match=f"{says}.*name another folder with --home") as raised:
            call(home / "a.db")
        assert not raised.value.retryable
        assert str(home) in str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def use_lock(path: Path) -> None:
    async def work() -> None:
        async with FolderLock(path.with_name("views.lock"), 0.05)():
            pass

    run(work())


def test_a_new_folder_on_a_read_only_mount(tmp_path: Path) -> None:
    (tmp_path / "mounted").mkdir()
    with read_only(tmp_path / "mounted") as place:
        for call in (use_ledger, use_store, use_lock):
            with pytest.raises(StorageReadOnly, match=r"is on a read-only file system\. Mount it for") as raised:
                call(place / "new" / "a.db")
            assert not raised.value.retryable


def test_a_folder_on_a_full_disk_can_be_made_later(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        filler = fill(disk)
        for call in (use_ledger, use_store):
            with pytest.raises(StorageFull, match="no space left") as raised:
                call(disk / "new" / "a.db")
            assert raised.value.retryable
        filler.unlink()
        use_ledger(disk / "new" / "a.db")
