"""The embedded ledger: the contract, durability, and use by several processes."""

import asyncio
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recallog_schemas import Event
from recallog_schemas.errors import IdConflict
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_testing.contracts.ledger import UniqueIdsContract, end, events_in
from support.events import event, numbered, run

PRODUCER = """
import asyncio, sys
from pathlib import Path
from recallog_schemas import Event
from recallog_streams.ledgers.sqlite import SqliteLedger

async def main(path, name, count):
    ledger = SqliteLedger(Path(path), 60)
    for turn in range(int(count)):
        await ledger.append([Event(space="village", agent=name, kind="agent.spoke", turn=turn, payload={"text": name})])
    await ledger.close()

asyncio.run(main(*sys.argv[1:]))
"""


class TestSqliteLedger(UniqueIdsContract):
    def make(self, folder: Path) -> SqliteLedger:
        return SqliteLedger(folder / "ledger.db")


def reopened(path: Path) -> tuple[list[Event], str]:
    ledger = SqliteLedger(path)
    try:
        return events_in(ledger), run(ledger.manifest()).ledger
    finally:
        run(ledger.close())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_reopened_ledger_holds_what_it_held_and_turn_42_stays_42(path: Path) -> None:
    ledger = SqliteLedger(path)
    each = event(turn=42)
    run(ledger.append([each]))
    manifest = run(ledger.manifest()).ledger
    run(ledger.close())
    assert reopened(path) == ([each], manifest)


def test_an_event_repeated_after_reopening_is_stored_once(path: Path) -> None:
    each = event(turn=42)
    for _ in range(3):
        ledger = SqliteLedger(path)
        run(ledger.append([each]))
        run(ledger.close())
    assert reopened(path)[0] == [each]


def test_an_id_conflict_is_detected_after_reopening(path: Path) -> None:
    ledger = SqliteLedger(path)
    run(ledger.append([event(id="e1")]))
    run(ledger.close())
    ledger = SqliteLedger(path)
    try:
        with pytest.raises(IdConflict):
            run(ledger.append([event(id="e1", payload={"text": "Cake!"})]))
    finally:
        run(ledger.close())


def test_acknowledged_events_survive_a_killed_process(path: Path) -> None:
    script = PRODUCER.replace("await ledger.close()", "import os; os._exit(9)")
    assert subprocess.run([sys.executable, "-c", script, str(path), "baker", "20"], check=False).returncode == 9
    assert [each.turn for each in reopened(path)[0]] == list(range(20))


def test_events_of_concurrent_processes_are_each_stored_once_in_their_producers_order(path: Path) -> None:
    producers = [
        subprocess.Popen([sys.executable, "-c", PRODUCER, str(path), name, "250"])
        for name in ("baker", "miller", "smith", "judge")
    ]
    assert [producer.wait(timeout=120) for producer in producers] == [0, 0, 0, 0]
    found = reopened(path)[0]
    turns = {name: [each.turn for each in found if each.agent == name] for name in {each.agent for each in found}}
    assert turns == {name: list(range(250)) for name in ("baker", "miller", "smith", "judge")}


def test_two_ledgers_on_one_file_see_what_the_other_appends(path: Path) -> None:
    first, second = SqliteLedger(path), SqliteLedger(path)
    try:
        run(first.append(numbered(2)))
        run(second.append(numbered(2, first=2)))
        assert (end(first), end(second)) == (4, 4)
        assert run(first.manifest()) == run(second.manifest())
    finally:
        run(first.close())
        run(second.close())


VISITOR = """
import asyncio, sys
from pathlib import Path
from recallog_streams.ledgers.sqlite import SqliteLedger

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]))
    print(*await ledger.ends())
    await ledger.close()

asyncio.run(main())
"""


def test_a_process_that_closes_the_file_loses_no_event_of_one_that_opened_it_twice(path: Path) -> None:
    # The second opening dropped the locks of the first (POSIX drops a process's locks on a file with the first
    # descriptor that it closes). The visitor took itself for the last user and deleted the write-ahead log: events
    # acknowledged from then on were lost.
    def visit() -> int:
        return int(subprocess.run([sys.executable, "-c", VISITOR, str(path)], capture_output=True, check=True).stdout)

    first, second = SqliteLedger(path), SqliteLedger(path)
    try:
        run(first.append(numbered(2)))
        assert end(second) == 2
        assert visit() == 2
        run(first.append(numbered(2, first=2)))
        assert visit() == 4
    finally:
        run(first.close())
        run(second.close())
    assert [each.turn for each in reopened(path)[0]] == [0, 1, 2, 3]


def test_a_ledger_creates_its_folder(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "a" / "b" / "ledger.db")
    run(ledger.append(numbered(1)))
    run(ledger.close())
    assert len(reopened(tmp_path / "a" / "b" / "ledger.db")[0]) == 1


def test_the_end_is_read_without_a_thread_unless_another_thread_uses_the_file(path: Path) -> None:
    async def work() -> None:
        ledger, started, finished = SqliteLedger(path), threading.Event(), threading.Event()
        await ledger.append(numbered(2))
        assert ledger.end_here(0) == 2

        def hold(connection: sqlite3.Connection) -> None:
            started.set()
            assert finished.wait(30)

        held = asyncio.create_task(ledger._file.run(hold))
        await asyncio.to_thread(started.wait, 30)
        assert ledger.end_here(0) is None
        finished.set()
        await held
        assert ledger.end_here(0) == 2
        await ledger.close()
        assert ledger.end_here(0) is None

    run(work())
