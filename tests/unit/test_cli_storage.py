"""Errors of the folder: one clear line, the right exit code, no traceback, nothing written."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from recallog import Memory
from support.cli import Result, recallog, spawn
from support.events import numbered, run

COMMANDS = [
    ["publish", "village", "baker", "agent.spoke", "Bread!"],
    ["episodic", "village", "baker"],
    ["status"],
    ["verify"],
    ["rebuild"],
    ["tail"],
    ["export"],
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with events and views."""

    async def work() -> None:
        async with Memory.open(tmp_path / "home") as memory:
            await memory.publish_many(numbered(200))
            await memory.episodic("village", "baker")

    run(work())
    return tmp_path / "home"


def failed(result: Result, code: int, says: str) -> None:
    assert result.code == code, result
    assert re.search(says, result.err), result.err
    assert len(result.err.splitlines()) == 1, result.err
    assert "Traceback" not in result.err


def without_log(path: Path) -> None:
    """Move everything into the database file, without a write-ahead log."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


# Foreign and damaged files.


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_ledger_of_another_program_is_refused(home: Path, command: list[str]) -> None:
    (home / "ledger.db").unlink()
    with closing(sqlite3.connect(home / "ledger.db")) as connection, connection:
        connection.execute("CREATE TABLE events (mine)")
    before = (home / "ledger.db").read_bytes()
    failed(recallog(*command, "--home", home), 3, "is not a ledger of Recallog.*--home")
    assert (home / "ledger.db").read_bytes() == before


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_ledger_that_is_no_database_is_refused(home: Path, command: list[str]) -> None:
    (home / "ledger.db").write_text("Dear diary, " * 100)
    failed(recallog(*command, "--home", home), 3, "is not a ledger of Recallog.*--home")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_truncated_ledger(home: Path, command: list[str]) -> None:
    without_log(home / "ledger.db")
    whole = (home / "ledger.db").read_bytes()
    (home / "ledger.db").write_bytes(whole[: len(whole) // 2])
    failed(recallog(*command, "--home", home), 3, "is truncated.*backup of the folder$")


def test_an_empty_ledger_file(home: Path) -> None:
    (home / "ledger.db").write_bytes(b"")
    failed(recallog("status", "--home", home), 3, "is empty.*backup")


def test_a_ledger_whose_pages_are_overwritten(home: Path) -> None:
    without_log(home / "ledger.db")
    whole = bytearray((home / "ledger.db").read_bytes())
    whole[8192:] = b"\xa5" * (len(whole) - 8192)
    (home / "ledger.db").write_bytes(whole)
    failed(recallog("export", "--home", home), 3, "is damaged|unreadable|corrupt")


def test_an_export_with_keep_going_lists_damaged_records_and_writes_all_others(home: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection, connection:
        connection.execute("UPDATE events SET value = replace(value, 'village', 'valleys') WHERE offset IN (57, 120)")
    failed(recallog("export", "--home", home), 3, r"0:57 .*Keep a copy.*export --keep-going")
    saved = tmp_path / "saved.jsonl"
    result = recallog("export", "--keep-going", "--output", saved, "--home", home)
    assert result.code == 1
    assert re.findall(r"^left out (\S+):", result.err, re.MULTILINE) == ["0:57", "0:120"]
    assert f"198 events were written; restore them in a new folder: recallog ingest {saved}" in result.err
    again = tmp_path / "again"
    assert recallog("ingest", saved, "--no-index", "--home", again).code == 0
    assert recallog("verify", "--home", again).out.startswith("clean 198 records")


def test_a_dead_letter_behind_the_end_that_the_ledger_has_lost(home: Path) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection, connection:
        connection.execute("DELETE FROM events WHERE offset > 41")
    failed(recallog("dead-letters", "show", "0:45", "--home", home), 3, "0:199.*is missing.*ledger.db")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_ledger_of_a_newer_recallog(home: Path, command: list[str]) -> None:
    with closing(sqlite3.connect(home / "ledger.db")) as connection:
        connection.execute("PRAGMA user_version=99")
    failed(recallog(*command, "--home", home), 3, "format 99.*Install a newer version")


def test_views_of_a_newer_recallog(home: Path) -> None:
    with closing(sqlite3.connect(home / "views.db")) as connection:
        connection.execute("PRAGMA user_version=99")
    failed(recallog("episodic", "village", "baker", "--home", home), 3, "format 99.*Install a newer version")


def test_a_lost_ledger_beside_its_views_is_named_and_no_new_one_is_advised(home: Path) -> None:
    (home / "ledger.db").unlink()
    found = recallog("episodic", "village", "baker", "--home", home)
    assert found.code == 2
    assert f"{home / 'ledger.db'} is missing" in found.err
    assert "publish" not in found.err


def test_the_ledger_of_another_folder_under_these_views(home: Path, tmp_path: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", "Bread!", "--home", tmp_path / "other")
    without_log(tmp_path / "other" / "ledger.db")
    shutil.copy(tmp_path / "other" / "ledger.db", home / "ledger.db")
    failed(
        recallog("episodic", "village", "baker", "--home", home),
        3,
        "another ledger.*recallog rebuild --drop",
    )


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("I am a file")
    failed(recallog("status", "--home", tmp_path / "home"), 3, str(tmp_path / "home"))


# A folder that this user may not write.


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every user can read, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="recallog-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def let_read(folder: Path) -> None:
    """Give every user the right to read a memory, which is its owner's alone."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED LOUDLY: only root can become nobody")
def test_a_folder_that_may_not_be_written_refuses_events(open_to_all: Path) -> None:
    recallog("publish", "village", "baker", "agent.spoke", "Bread!", "--home", open_to_all)
    let_read(open_to_all)
    before = {path.name: path.read_bytes() for path in open_to_all.iterdir()}
    failed(spawn(*COMMANDS[0], "--home", open_to_all, as_nobody=True), 3, "no right to write")
    assert {path.name: path.read_bytes() for path in open_to_all.iterdir()} == before


READING = [
    ["episodic", "village", "baker"],
    ["salient", "village", "baker"],
    ["recall", "village", "baker", "bread"],
    ["context", "village", "baker"],
    ["timeline", "village", "baker"],
    ["episodic", "village", "baker", "--as-of", "0:0"],
    ["spaces"],
    ["status"],
    ["verify"],
    ["export"],
]


@pytest.mark.models("all")
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED LOUDLY: only root can become nobody")
@pytest.mark.parametrize("command", READING, ids=lambda command: command[0])
def test_a_folder_that_may_not_be_written_is_read(open_to_all: Path, command: list[str]) -> None:
    for text in ("Bread!", "Rolls!"):
        recallog("publish", "village", "baker", "agent.spoke", text, "--home", open_to_all)
        if text == "Bread!":
            recallog("episodic", "village", "baker", "--home", open_to_all)
    let_read(open_to_all)
    before = {path.name: path.read_bytes() for path in open_to_all.iterdir()}
    result = spawn(*command, "--home", open_to_all, as_nobody=True)
    assert result.code == 0, result
    assert "--as-of" in command or command[0] in ("spaces", "status", "verify") or "Rolls!" in result.out
    assert re.match(f"warning: {open_to_all} cannot be written \\(there is no right to write it\\): ", result.err)
    assert {path.name: path.read_bytes() for path in open_to_all.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED LOUDLY: only root can become nobody")
def test_a_folder_that_cannot_be_made(open_to_all: Path) -> None:
    command = ["publish", "village", "baker", "agent.spoke", "Bread!", "--home", open_to_all / "new"]
    failed(spawn(*command, as_nobody=True), 3, "no right to write")


# A lock that another process holds.

HOLDER = """
import sqlite3, sys
from filelock import FileLock
what, path = sys.argv[1:]
if what == "database":
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
else:
    held = FileLock(path)
    held.acquire()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(what: str, path: Path) -> Iterator[None]:
    """Another process that holds a file until the block ends."""
    command = [sys.executable, "-c", HOLDER, what, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("")


def test_a_ledger_that_another_process_writes_to(home: Path) -> None:
    with held("database", home / "ledger.db"):
        result = recallog(*COMMANDS[0], "--home", home, RECALLOG_LOCK_WAIT_SECONDS="0.3")
        failed(result, 3, "another process has held.*ledger.db.*0.3 s; nothing was written")
        assert recallog("tail", "--home", home).code == 0  # readers do not wait for writers


def test_views_that_another_process_folds(home: Path) -> None:
    """The process may be stopped: the query answers without it, and says so once."""
    recallog(*COMMANDS[0], "--home", home)
    with held("lock", home / "views.lock"):
        result = spawn("episodic", "village", "baker", "--home", home, RECALLOG_DEADLINE_SECONDS="0.3")
    assert result.code == 0
    assert "Bread!" in result.out
    assert re.fullmatch(
        "warning: the views have 200 of 201 records.*another process has held .*views.lock.*\n", result.err
    )
    assert recallog("episodic", "village", "baker", "--home", home).code == 0


def test_up_to_date_views_are_read_without_the_lock(home: Path) -> None:
    with held("lock", home / "views.lock"):
        result = recallog("episodic", "village", "baker", "--home", home, RECALLOG_LOCK_WAIT_SECONDS="0.3")
    assert result.code == 0


# In real processes.


def test_no_traceback_in_a_real_process(home: Path) -> None:
    (home / "ledger.db").write_text("Dear diary, " * 100)
    failed(spawn("status", "--home", home), 3, "is not a ledger of Recallog")
    failed(spawn("publish", "v", "a", "nodot", "t", "--home", home), 1, "kind: ")


def test_a_closed_pipe_ends_the_command_without_a_traceback(home: Path) -> None:
    command = f"{sys.executable} -m recallog_service tail --from 0 --home {home} | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_an_export_to_a_full_disk_fails(home: Path) -> None:
    failed(recallog("export", "--output", "/dev/full", "--home", home), 3, "No space left")


FULL = Path("/dev/full")


def in_a_shell(redirected: str) -> Result:
    """Run `recallog …` with redirections; "recallog" in the text is the command of this environment."""
    command = redirected.replace("recallog", f"{sys.executable} -m recallog_service")
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, timeout=60,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize(
    "arguments",
    [
        "--help", "schema kinds", "episodic village baker --json --home {home}", "spaces --home {home}",
        "export --home {home}", "publish village baker agent.spoke hi --home {home}",
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_written_ends_a_command_with_one_line(home: Path, arguments: str) -> None:
    done = in_a_shell(f"recallog {arguments.format(home=home)} > {FULL}")
    assert done.code == 3
    assert len(done.err.splitlines()) == 1, done.err
    assert "the output cannot be written: No space left on device" in done.err


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_without_room_for_the_error_the_exit_code_tells_it(home: Path) -> None:
    assert in_a_shell(f"recallog status --home {home} > {FULL} 2> {FULL}").code == 3
    assert in_a_shell(f"recallog episodic village 'no name ' --home {home} 2> {FULL}").code == 2


@pytest.mark.parametrize("arguments", ["--help", "export --home {home}"])
def test_output_that_nobody_reads_is_no_error_to_talk_about(home: Path, arguments: str) -> None:
    # The reader ends before the command writes anything.
    done = in_a_shell(f"{{ sleep 1; recallog {arguments.format(home=home)}; }} | true")
    assert done.code == 1
    assert done.err == ""


def test_a_command_runs_without_a_stdout(home: Path) -> None:
    done = in_a_shell(f"recallog publish village baker agent.spoke Unheard --home {home} >&- 2>&-")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert "Unheard" in recallog("episodic", "village", "baker", "--home", home).out


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = in_a_shell(f"recallog schema export --output {tmp_path}/file/schemas")
    assert done.code == 3
    assert f"{tmp_path}/file/schemas cannot be written or read: Not a directory" in done.err
    assert len(done.err.splitlines()) == 1
