"""Upgrades of ledgers in place: complete or not begun, whichever process opens them, and wherever a process was
killed."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from recallog_schemas import Event
from recallog_schemas.errors import IdConflict, StorageCorrupt
from recallog_streams.ledgers.sqlite import LEDGER, SqliteLedger
from recallog_testing.contracts.ledger import end, events_in
from support import old_ledger
from support.events import event, numbered, run

SEED = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteLedger]:
    """A ledger on `path`, which the test writes before its first use."""
    ledger = SqliteLedger(path)
    yield ledger
    run(ledger.close())


def version(path: Path) -> int:
    """The format's version of an undamaged file."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (found,) = connection.execute("PRAGMA user_version").fetchone()
        return int(found)


OLD = pytest.mark.parametrize("old", [1, 2])


@OLD
def test_a_ledger_of_an_old_version_keeps_its_events_its_ids_and_its_name(
    path: Path, ledger: SqliteLedger, old: int
) -> None:
    before = [*numbered(30), *numbered(30, space="city")]
    old_ledger.write(path, before, old)
    assert events_in(ledger) == before
    assert events_in(ledger, "city") == before[30:]
    assert run(ledger.manifest()).ledger == old_ledger.MANIFEST
    assert run(ledger.append([before[7]]))[0].offset == 7
    with pytest.raises(IdConflict):
        run(ledger.append([before[7].model_copy(update={"turn": 99})]))
    assert run(ledger.append([event()]))[0].offset == 60
    assert version(path) == LEDGER.version


def test_records_of_an_old_version_have_no_time_and_later_ones_have(path: Path, ledger: SqliteLedger) -> None:
    old_ledger.write(path, numbered(2), 2)
    run(ledger.append([event()]))

    async def times() -> list[int]:
        return [time async for batch in ledger.read(0, 0, 3) for time in batch.appended or ()]

    *old, new = run(times())
    assert old == [0, 0]
    assert new > 1_700_000_000_000


def test_nothing_is_wrong_with_an_upgraded_ledger(path: Path, ledger: SqliteLedger) -> None:
    old_ledger.write(path, numbered(3), 2)
    assert end(ledger) == 3
    assert run(ledger.find_problems()) == []


def test_the_upgrade_of_a_large_ledger_is_announced(
    path: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("recallog_streams.ledgers.sqlite._LARGE_EVENTS", 3)
    old_ledger.write(path, numbered(3))
    assert end(ledger) == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(path) in message
    assert "3 events get checksums" in message


@OLD
def test_an_upgraded_ledger_has_the_columns_of_a_new_one(
    path: Path, tmp_path: Path, ledger: SqliteLedger, old: int
) -> None:
    def columns(path: Path) -> dict[str, list[tuple[str, str]]]:
        with closing(sqlite3.connect(path)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
            return {
                name: connection.execute(
                    f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{name}')"
                ).fetchall()
                for (name,) in tables
            }

    new = SqliteLedger(tmp_path / "new.db")
    old_ledger.write(path, numbered(1), old)
    try:
        assert (end(ledger), end(new)) == (1, 0)
        assert columns(path) == columns(tmp_path / "new.db")
    finally:
        run(new.close())


@OLD
def test_a_program_of_an_old_version_that_has_the_ledger_open_can_no_longer_write(
    path: Path, ledger: SqliteLedger, old: int
) -> None:
    old_ledger.write(path, numbered(3), old)
    with closing(sqlite3.connect(path, isolation_level=None)) as program:
        assert program.execute("SELECT count(*) FROM events").fetchone() == (3,)
        assert end(ledger) == 3
        with pytest.raises(sqlite3.OperationalError):
            program.execute(f"INSERT INTO events VALUES (3, 1, 'x', x'00'{', 0' * (old - 1)})")
    assert len(events_in(ledger)) == 3


def test_a_format_that_never_was_is_damage(path: Path, ledger: SqliteLedger) -> None:
    old_ledger.write(path, numbered(1))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=0")
    with pytest.raises(StorageCorrupt, match="its format is 0"):
        end(ledger)


OPENER = """
import asyncio, sys
from pathlib import Path
from recallog_streams.ledgers.sqlite import SqliteLedger

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]), 60)
    print("ready", flush=True)
    sys.stdin.readline()
    print(*await ledger.ends(), flush=True)
    await ledger.close()

asyncio.run(main())
"""


def opener(path: Path) -> "subprocess.Popen[str]":
    """A process that opens the ledger once a line is written to it, and prints its end."""
    return subprocess.Popen(
        [sys.executable, "-c", OPENER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def large(count: int) -> list[Event]:
    return [event(turn=turn, payload={"text": "Once upon a time. " * 10}) for turn in range(count)]


def test_several_processes_that_open_it_at_once_upgrade_it_once(path: Path, ledger: SqliteLedger) -> None:
    old_ledger.write(path, large(5_000))
    openers = [opener(path) for _ in range(6)]
    assert [process.communicate("\n", timeout=120)[0].strip() for process in openers] == ["ready\n5000"] * 6
    assert len(events_in(ledger)) == 5_000
    assert version(path) == LEDGER.version


@OLD
def test_an_upgrade_killed_at_any_time_is_complete_or_not_begun(path: Path, old: int) -> None:
    before = large(10_000)
    randomness = random.Random(SEED)
    upgraded = 0
    for _ in range(6):
        for leftover in path.parent.iterdir():
            leftover.unlink()
        old_ledger.write(path, before, old)
        with opener(path) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.stdin.write("\n")
            process.stdin.flush()
            time.sleep(
                randomness.uniform(0, 0.15 if old == 1 else 0.02)
            )  # when it is killed, not how long something takes
            process.kill()
        with closing(sqlite3.connect(path)) as connection:
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            tables = connection.execute("SELECT count(*) FROM pragma_table_info('events')").fetchone()
        assert (found, tables) in ((old, (3 + old,)), (LEDGER.version, (6,)))
        upgraded += found == LEDGER.version
        ledger = SqliteLedger(path)
        try:
            assert events_in(ledger) == before
        finally:
            run(ledger.close())
        assert version(path) == LEDGER.version
    print(f"{upgraded} of 6 upgrades were complete when they were killed (seed {SEED})")


def test_an_upgrade_without_space_leaves_the_ledger_as_it_was(path: Path) -> None:
    old_ledger.write(path, large(5_000))
    script = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n" + OPENER
    refused = subprocess.run(
        [sys.executable, "-c", script, str(path)], input="\n", capture_output=True, text=True, check=False
    )
    assert "recallog.errors.Storage" in refused.stderr
    assert version(path) == 1
