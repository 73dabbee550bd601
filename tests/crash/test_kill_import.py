"""`import` is killed at any moment, run again, and run twice at once: each row is added once."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from support import other_stores
from support.campaigns import trials
from support.cli import environment_of, recallog

pytestmark = pytest.mark.models("all")

ROWS = 3_000
SECONDS_MAX = 60.0


def importing(store: Path, home: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "recallog_service", "import", "tramontane", store, "--space", "office"]
    more = ["--agent", "gerald", "--home", home, "--json"]
    return subprocess.Popen(
        [*command, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment_of(RECALLOG_INDEX="off"),
    )


def written_bytes(home: Path) -> int:
    with suppress(FileNotFoundError):  # the file of the log is created by the import
        return (home / "ledger.db-wal").stat().st_size
    return 0


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": f"f-{number}", "content": f"Customer {number} buys oak."} for number in range(ROWS)]
    return other_stores.write_tables(tmp_path_factory.mktemp("theirs") / "m.db", {"factual_memory": rows})


def ids_in(home: Path) -> Counter[str]:
    return Counter(json.loads(line)["id"] for line in recallog("export", "--home", home).out.splitlines())


ALL = Counter({f"f-{number}": 1 for number in range(ROWS)})


@pytest.mark.parametrize("trial", range(trials(2, of=20)))
def test_a_killed_import_is_completed_by_the_next_one(
    trial: int, store: Path, tmp_path: Path, chance: random.Random
) -> None:
    until_bytes = chance.randint(1, 2_500_000)
    process = importing(store, tmp_path / "home")
    deadline = time.monotonic() + SECONDS_MAX
    while process.poll() is None and written_bytes(tmp_path / "home") < until_bytes:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate()
    again = importing(store, tmp_path / "home")
    report = json.loads(again.communicate(timeout=SECONDS_MAX)[0])
    assert (report["added"] + report["unchanged"], report["problems"]) == (ROWS, [])
    assert ids_in(tmp_path / "home") == ALL


def test_two_imports_at_once_add_each_row_once(store: Path, tmp_path: Path) -> None:
    both = [importing(store, tmp_path / "home") for _ in range(2)]
    reports = [json.loads(process.communicate(timeout=SECONDS_MAX)[0]) for process in both]
    assert [(each["added"] + each["unchanged"], each["problems"]) for each in reports] == [(ROWS, [])] * 2
    assert ids_in(tmp_path / "home") == ALL
