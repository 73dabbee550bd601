"""A ledger that has lost its end: nothing is appended to it until an operator has put the newer one back, or has
dropped the views that are ahead of it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.composition import assemble
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Pointer
from recallog_schemas import codec
from recallog_schemas.errors import LedgerMismatch, RecallogError, StorageReplaced, StorageUnavailable
from recallog_streams import append_guard
from recallog_streams.ledgers.memory import MemoryLedger
from support.cli import recallog
from support.events import event, numbered, recorded, run

Call = Callable[[Memory], Awaitable[Any]]

KILLED = """
import asyncio, os, sys
from recallog import Memory
from support.events import numbered

async def main(home):
    memory = Memory.open(home)
    for first in range(0, 400, 100):
        await memory.publish_many(numbered(100, first=first))
    await memory.episodic("village", "baker")
    os._exit(0)

asyncio.run(main(sys.argv[1]))
"""


def write(home: Path, events: Sequence[Event]) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            await memory.episodic("village", "baker")

    run(work())


def checkpoint(path: Path) -> None:
    """Move the write-ahead log into the file, as another process can at any moment."""
    code = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('PRAGMA wal_checkpoint(TRUNCATE)')"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with 300 events, and beside it the ledger when it had 100: `old.db`."""
    home = tmp_path / "home"
    write(home, numbered(100))
    shutil.copy(home / "ledger.db", tmp_path / "old.db")
    write(home, numbered(200, first=100))
    return home


def put_back(home: Path) -> None:
    """Put the older copy in place."""
    shutil.copy(home.parent / "old.db", home / "ledger.db")


def events_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM events").fetchone()
        return int(found)


def refused(home: Path, call: Call) -> RecallogError:
    async def work() -> RecallogError:
        async with Memory.open(home) as memory:
            with pytest.raises(LedgerMismatch) as raised:
                await call(memory)
            return raised.value

    return run(work())


def publish(memory: Memory) -> Awaitable[object]:
    return memory.publish(event())


MESSAGES = [{"role": "user", "content": "Where is the flour?"}]
CALLS: dict[str, Call] = {
    "publish": publish,
    "publish_many": lambda memory: memory.publish_many(numbered(3, first=900)),
    "publish of a repeat": lambda memory: memory.publish(numbered(1)[0]),
    "items.put": lambda memory: memory.items.put("village", "baker", "shelf", "rye", 3),
    "long_term.retain": lambda memory: memory.long_term.retain("village", "baker", "Rye is on the upper shelf."),
    "working.set": lambda memory: memory.working.set("village", "baker", "goal", "Sell bread"),
    "conversation.add": lambda memory: memory.conversation.add("village", "baker", "s1", MESSAGES),
}


@pytest.mark.models("conversations", "working")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_is_written_to_an_older_copy_of_the_ledger(home: Path, call: Call) -> None:
    put_back(home)
    error = refused(home, call)
    assert "0:299" in str(error)
    assert "recallog rebuild --drop" in str(error)
    assert events_of(home / "ledger.db") == 100


def test_an_append_says_that_nothing_was_written(home: Path) -> None:
    put_back(home)
    assert str(refused(home, publish)).startswith("nothing was written: the record at 0:299")


def test_a_command_that_writes_is_refused(home: Path, tmp_path: Path) -> None:
    put_back(home)
    lines = tmp_path / "more.jsonl"
    lines.write_bytes(b"".join(codec.encode(each) + b"\n" for each in numbered(3, first=900)))
    for command in (
        ("publish", "village", "baker", "agent.spoke", "Bread!"),
        ("ingest", lines, "--no-index"),
    ):
        result = recallog(*command, "--home", home, RECALLOG_INDEX="off")
        assert result.code in (1, 3), result
        assert "recallog rebuild --drop" in result.err
    assert events_of(home / "ledger.db") == 100


def test_events_are_not_copied_to_a_folder_whose_views_are_ahead(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", numbered(3, space="city"))
    put_back(home)
    result = recallog("copy", tmp_path / "other", home)
    assert result.code == 3
    assert "recallog rebuild --drop" in result.err
    assert events_of(home / "ledger.db") == 100


def test_a_folder_without_a_memory_is_not_copied(tmp_path: Path) -> None:
    result = recallog("copy", tmp_path / "memroy", tmp_path / "backup")
    assert result.code == 2
    assert f"there is no memory in {tmp_path / 'memroy'}" in result.err
    assert not list(tmp_path.iterdir())


def test_no_ledger_is_created_where_the_views_show_that_there_was_one(home: Path) -> None:
    (home / "ledger.db").unlink()
    assert "is missing" in str(refused(home, publish))
    assert not (home / "ledger.db").exists()


def test_another_ledger_is_refused(home: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", numbered(900))
    shutil.copy(tmp_path / "other" / "ledger.db", home / "ledger.db")
    assert "another ledger" in str(refused(home, publish))
    assert events_of(home / "ledger.db") == 900


def test_other_events_at_the_positions_of_the_views_are_refused(home: Path, tmp_path: Path) -> None:
    put_back(home)
    (home / "views.db").rename(tmp_path / "views.db")
    write(home, numbered(400, space="city"))
    checkpoint(home / "views.db")
    (tmp_path / "views.db").rename(home / "views.db")
    assert "0:299" in str(refused(home, publish))
    assert events_of(home / "ledger.db") == 500


@pytest.mark.parametrize("left", [0.0, 0.4, None], ids=["emptied", "cut", "removed"])
def test_a_killed_process_and_a_log_that_lost_its_end(tmp_path: Path, left: float | None) -> None:
    home = tmp_path / "home"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED, str(home)], check=True, env=environment)
    log = home / "ledger.db-wal"
    (home / "ledger.db-shm").unlink()
    if left is None:
        log.unlink()
    else:
        os.truncate(log, int(left * log.stat().st_size))
    before = events_of(home / "ledger.db")
    assert before < 400
    assert "recallog rebuild --drop" in str(refused(home, publish))
    assert events_of(home / "ledger.db") == before


def exchange(home: Path) -> None:
    """Rename the older copy into place."""
    shutil.copy(home.parent / "old.db", home.parent / "new.db")
    (home.parent / "new.db").rename(home / "ledger.db")


@pytest.mark.models("conversations", "working")
@pytest.mark.parametrize("replace", [exchange, put_back], ids=["another file", "the same file"])
def test_a_ledger_that_is_replaced_while_it_is_open(home: Path, replace: Callable[[Path], None]) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish_many(numbered(100, first=300))
            await memory.episodic("village", "baker")
            checkpoint(home / "ledger.db")
            replace(home)
            for call in [*CALLS.values(), lambda memory: memory.episodic("village", "baker")]:
                with pytest.raises((LedgerMismatch, StorageReplaced)):
                    await call(memory)
            with pytest.raises(LedgerMismatch):
                await memory.publish(event())

    run(work())
    assert events_of(home / "ledger.db") == 100


def test_a_process_that_knows_less_than_the_views_is_refused_too(home: Path) -> None:
    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish(event())
            async with Memory.open(home) as another:
                await another.publish_many(numbered(100, first=400))
                await another.episodic("village", "baker")
            shutil.copy(home.parent / "old.db", home.parent / "middle.db")
            with closing(sqlite3.connect(home / "ledger.db")) as whole:
                with closing(sqlite3.connect(home.parent / "middle.db")) as middle:
                    whole.backup(middle)
                    middle.execute("DELETE FROM events WHERE offset > 350")
                    middle.commit()
            checkpoint(home / "ledger.db")
            (home.parent / "middle.db").rename(home / "ledger.db")
            for _ in range(2):
                with pytest.raises((LedgerMismatch, StorageReplaced)):
                    await memory.publish(event())

    run(work())
    assert events_of(home / "ledger.db") == 351


def test_a_process_goes_on_once_the_newer_ledger_is_back(home: Path, tmp_path: Path) -> None:
    shutil.copy(home / "ledger.db", tmp_path / "new.db")
    put_back(home)

    async def work() -> Position:
        async with Memory.open(home) as memory:
            with pytest.raises(LedgerMismatch):
                await memory.publish(event())
            (tmp_path / "new.db").rename(home / "ledger.db")
            return await memory.publish(event())

    assert run(work()) == Position(0, 300)


def test_a_rebuild_that_drops_the_views_makes_the_older_ledger_the_right_one(home: Path) -> None:
    put_back(home)
    arguments = ("--home", home)
    assert recallog("rebuild", *arguments, RECALLOG_INDEX="off").code == 3
    result = recallog("rebuild", "--drop", *arguments, RECALLOG_INDEX="off")
    assert result.code == 0, result
    published = recallog("publish", "village", "baker", "agent.spoke", "Bread!", *arguments, RECALLOG_INDEX="off")
    assert published.out.startswith("0:100 ")
    assert recallog("verify", *arguments, RECALLOG_INDEX="off").out.startswith("clean 101 records")


def test_an_open_memory_goes_on_when_another_process_has_dropped_the_views(home: Path) -> None:
    put_back(home)

    async def work() -> tuple[Position, int]:
        async with Memory.open(home) as memory:
            with pytest.raises(LedgerMismatch):
                await memory.publish(event())
            async with Memory.open(home) as operator:
                await operator.admin.rebuild(drop=True)
            position = await memory.publish(event())
            return position, len((await memory.episodic("village", "baker", window=500)).memories)

    assert run(work()) == (Position(0, 100), 101)


def test_without_views_nothing_is_ahead(home: Path) -> None:
    put_back(home)
    for path in home.glob("views*"):
        path.unlink()

    async def work() -> Position:
        async with Memory.open(home) as memory:
            return await memory.publish(event())

    assert run(work()) == Position(0, 100)


def test_a_publish_alone_creates_no_views(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish(event())

    run(work())
    assert not list(tmp_path.glob("views*"))


def test_a_generation_that_is_being_built_from_more_records_counts_as_ahead(tmp_path: Path) -> None:
    ledger, store = MemoryLedger(), MemoryStore()

    async def work() -> None:
        components = assemble(ledger, lambda namespace: store)
        await components.append(numbered(3))
        building = components.views.builder.new_generation(0, 9)
        assert (await store.create(building)) == Pointer(building=building)
        memory = Memory(assemble(ledger, lambda namespace: store))
        with pytest.raises(LedgerMismatch, match="0:8"):
            await memory.publish(event())
        assert len(await recorded(memory)) == 3

    run(work())


def test_views_that_cannot_be_read_do_not_stop_an_append() -> None:
    class Away(MemoryStore):
        async def pointer(self, partition: int) -> Pointer:
            raise StorageUnavailable("the views do not answer")

    async def work() -> Position:
        return await Memory(assemble(MemoryLedger(), lambda namespace: Away())).publish(event())

    assert run(work()) == Position(0, 0)


def test_views_that_are_exchanged_are_compared_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_guard.limits, "APPEND_CHECK_SECONDS", 0.0)
    newer = home.parent / "newer.db"
    shutil.copy(home / "views.db", newer)
    put_back(home)
    for path in home.glob("views*"):
        path.unlink()

    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.publish(event())
            newer.rename(home / "views.db")
            with pytest.raises(LedgerMismatch):
                await memory.publish(event())

    run(work())
