"""The `-wal` or `-shm` of an open ledger is deleted or replaced, and its processes are killed.

Every event that was acknowledged after that is in the ledger, or the call raised an error.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from recallog_schemas.errors import LockTimeout, StorageReplaced
from recallog_streams.ledgers.sqlite import SqliteLedger
from recallog_testing.contracts.ledger import events_in
from support.cli import environment_of
from support.events import run

PROCESS = """
import asyncio, sys
from pathlib import Path
from recallog_schemas.errors import RecallogError
from recallog_streams.ledgers.sqlite import SqliteLedger
from support.events import numbered

async def main():
    ledger = SqliteLedger(Path(sys.argv[1]), 0.5)
    for line in sys.stdin:
        word, *numbers = line.split()
        try:
            if word == "append":
                for number in numbers:
                    await ledger.append(numbered(1, first=int(number)))
            elif word == "end":
                await ledger.ends()
            elif word == "close":
                await ledger.close()
            print("done", flush=True)
        except RecallogError as error:
            print(type(error).__name__, flush=True)

asyncio.run(main())
"""


class Writer:
    """A process that has a ledger open."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment_of(PYTHONPATH=os.pathsep.join(sys.path)),
        )

    def says(self, command: str) -> str:
        """The outcome of a command: "done", or the name of an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "ledger.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Callable[[], Writer]]:
    started: list[Writer] = []

    def start() -> Writer:
        started.append(Writer(path))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def turns(path: Path) -> list[int]:
    """The turns of the events in the ledger, which is opened again."""
    ledger = SqliteLedger(path, 0.5)
    try:
        return [each.turn for each in events_in(ledger)]
    finally:
        run(ledger.close())


def delete(path: Path, *endings: str) -> None:
    for ending in endings:
        Path(f"{path}{ending}").unlink()


@pytest.mark.parametrize("endings", [("-wal",), ("-shm",), ("-wal", "-shm")], ids=["-wal", "-shm", "both"])
def test_events_appended_after_the_deletion_survive_kill_nine(
    path: Path, writer: Callable[[], Writer], endings: tuple[str, ...]
) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, *endings)
    assert one.says("append 3") == "done"
    one.kill()
    assert turns(path) == [0, 1, 2, 3]


@pytest.mark.parametrize("endings", [("-wal",), ("-shm",), ("-wal", "-shm")], ids=["-wal", "-shm", "both"])
def test_a_read_saves_what_a_deleted_log_holds(
    path: Path, writer: Callable[[], Writer], endings: tuple[str, ...]
) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, *endings)
    assert one.says("end") == "done"
    one.kill()
    assert turns(path) == [0, 1, 2]


@pytest.mark.parametrize("endings", [("-wal",), ("-shm",), ("-wal", "-shm")], ids=["-wal", "-shm", "both"])
def test_closing_a_ledger_saves_what_a_deleted_log_holds(
    path: Path, writer: Callable[[], Writer], endings: tuple[str, ...]
) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, *endings)
    assert one.says("close") == "done"
    one.kill()
    assert turns(path) == [0, 1, 2]


def test_a_log_deleted_before_its_process_was_killed_is_missed(path: Path, writer: Callable[[], Writer]) -> None:
    """Nobody used the ledger in between, so its last events are lost: it is refused rather than read without them."""
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, "-wal")
    one.kill()
    for _ in range(2):
        with pytest.raises(StorageReplaced, match=r"delete .*ledger\.db-shm, to continue without them"):
            turns(path)
    delete(path, "-shm")
    assert turns(path) in ([], [0], [0, 1])


@pytest.mark.parametrize("endings", [("-wal",), ("-shm",), ("-wal", "-shm")], ids=["-wal", "-shm", "both"])
def test_a_process_that_opens_the_ledger_meanwhile_waits_for_the_one_that_has_it_open(
    path: Path, writer: Callable[[], Writer], endings: tuple[str, ...]
) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, *endings)
    with pytest.raises(LockTimeout, match=r"another process has the ledger .* open without its -"):
        turns(path)
    assert one.says("append 3") == "done"
    assert turns(path) == [0, 1, 2, 3]
    two = writer()
    assert two.says("append 4") == "done"
    assert one.says("append 5") == "done"
    one.kill()
    two.kill()
    assert turns(path) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("endings", [("-wal",), ("-shm",), ("-wal", "-shm")], ids=["-wal", "-shm", "both"])
def test_several_processes_that_have_the_ledger_open_lose_nothing(
    path: Path, writer: Callable[[], Writer], endings: tuple[str, ...]
) -> None:
    one, two = writer(), writer()
    assert one.says("append 0") == "done"
    assert two.says("append 1") == "done"
    delete(path, *endings)
    acknowledged = [0, 1]
    for turn in range(2, 30):
        outcome = (one, two)[turn % 2].says(f"append {turn}")
        assert outcome in ("done", "LockTimeout")
        if outcome == "done":
            acknowledged.append(turn)
    assert acknowledged[-2:] == [28, 29]
    one.kill()
    two.kill()
    assert turns(path) == acknowledged


def test_a_log_replaced_by_another_file_loses_nothing(path: Path, writer: Callable[[], Writer]) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    delete(path, "-wal")
    Path(f"{path}-wal").write_bytes(b"another file" * 1000)
    assert one.says("append 3") == "done"
    one.kill()
    assert turns(path) == [0, 1, 2, 3]


def test_an_older_copy_of_the_log_in_its_place_is_not_applied(path: Path, writer: Callable[[], Writer]) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    older = Path(f"{path}-wal").read_bytes()
    assert one.says("append 3") == "done"
    delete(path, "-wal")
    Path(f"{path}-wal").write_bytes(older)
    assert one.says("append 4") == "done"
    one.kill()
    assert turns(path) == [0, 1, 2, 3, 4]


def test_a_renamed_folder_refuses_writes_and_loses_nothing(path: Path, writer: Callable[[], Writer]) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    elsewhere = path.parent.with_name("elsewhere")
    path.parent.rename(elsewhere)
    assert one.says("append 3") == "StorageReplaced"
    one.kill()
    assert not path.parent.exists()
    assert turns(elsewhere / path.name) == [0, 1, 2]


def test_a_deleted_folder_is_not_created_again(path: Path, writer: Callable[[], Writer]) -> None:
    one = writer()
    assert one.says("append 0 1 2") == "done"
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()
    assert one.says("append 3") == "StorageReplaced"
    assert not path.parent.exists()


def test_logs_deleted_again_and_again_lose_no_acknowledged_event(path: Path, writer: Callable[[], Writer]) -> None:
    """Deletions fall between any two steps of an append."""
    one = writer()
    assert one.says("append 0") == "done"
    command = [sys.executable, "-c", DELETING, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of()) as deleting:
        assert deleting.stdout is not None
        deleting.stdout.readline()
        acknowledged = [0, *(turn for turn in range(1, 300) if one.says(f"append {turn}") == "done")]
        deleting.kill()
    outcome = one.says("end")
    one.kill()
    assert outcome == "done"
    found = turns(path)
    assert set(acknowledged) <= set(found)
    assert len(found) == len(set(found))


DELETING = """
import os, random, sys, time
print("begins", flush=True)
while True:
    time.sleep(random.random() / 200)
    try:
        os.unlink(sys.argv[1] + "-wal")
    except FileNotFoundError:
        pass
"""
