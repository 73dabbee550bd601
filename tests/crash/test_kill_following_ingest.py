"""`ingest --follow` is killed at any moment while files grow, are renamed and replaced: each record is added once."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.cli import environment_of, recallog

KILLS = 6
SECONDS_MAX = 60.0


def record(n: int, session: str) -> bytes:
    message = {"role": "user", "content": f"{session} line {n}"}
    fields: dict[str, Any] = {
        "type": "user", "uuid": f"{session}-{n:04}-0000-4000-8000-000000000000", "sessionId": f"{session}-" + "0" * 20,
        "cwd": "/app", "timestamp": f"2026-03-01T12:{n // 60:02}:{n % 60:02}Z", "message": message,
    }  # fmt: skip
    return json.dumps(fields).encode() + b"\n"


@contextmanager
def following(folder: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-m",
        "recallog_service",
        "ingest",
        folder,
        "--follow",
        "--home",
        home,
        "--no-index",
        "--json",
    ]
    output = (folder.parent / "output.jsonl").open("ab")
    process = subprocess.Popen(command, stdout=output, stderr=output, env=environment_of())
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        output.close()


def texts(home: Path) -> list[str]:
    out = recallog("export", "--home", home).out
    return [json.loads(each)["payload"]["text"] for each in out.splitlines()]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


class Agent:
    """Writes a transcript in pieces of any length, and renames or replaces it now and then."""

    def __init__(self, folder: Path, session: str, chance: random.Random) -> None:
        self._path = folder / f"{session}.jsonl"
        self._session = session
        self._chance = chance
        self._written = self._names = 0
        self._rest = b""

    def write(self) -> None:
        if not self._rest:
            self._rest = record(self._written, self._session)
            self._written += 1
        length = self._chance.randint(1, len(self._rest))
        with self._path.open("ab") as file:
            file.write(self._rest[:length])
        self._rest = self._rest[length:]
        if not self._rest and self._chance.random() < 0.05:
            self._move()

    def _move(self) -> None:
        self._names += 1
        aside = self._path.with_name(f"{self._session}-{self._names}.jsonl")
        if self._chance.random() < 0.5:
            self._path.rename(aside)  # rotated: the next line begins a new file
        else:
            aside.write_bytes(self._path.read_bytes())
            aside.replace(self._path)

    def finish(self) -> list[str]:
        while self._rest:
            self.write()
        return [f"{self._session} line {n}" for n in range(self._written)]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_record_is_added_once(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    folder, home = tmp_path / "projects", tmp_path / "home"
    folder.mkdir()
    agents = [Agent(folder, name, chance) for name in ("alice", "baker")]
    for _ in range(KILLS):
        with following(folder, home) as process:
            until = time.monotonic() + chance.uniform(0.5, 2.5)
            while time.monotonic() < until:
                chance.choice(agents).write()
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
    expected = sorted(text for agent in agents for text in agent.finish())
    with following(folder, home):
        wait_until(lambda: len(texts(home)) >= len(expected))
    assert sorted(texts(home)) == expected


def test_new_files_and_truncated_ones_are_read(tmp_path: Path) -> None:
    folder, home = tmp_path / "projects", tmp_path / "home"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(record(0, "alice"))
    with following(folder, home) as process:
        wait_until(lambda: home.exists() and texts(home) == ["alice line 0"])
        (folder / "deep" / "b.jsonl").write_bytes(record(0, "baker"))
        wait_until(lambda: len(texts(home)) == 2)
        (folder / "a.jsonl").write_bytes(record(1, "alice"))
        wait_until(lambda: len(texts(home)) == 3)
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0
    assert texts(home) == ["alice line 0", "baker line 0", "alice line 1"]
    news = [json.loads(each) for each in (tmp_path / "output.jsonl").read_text().splitlines()]
    assert [(Path(each["file"]).name, each["added"]) for each in news] == [
        ("a.jsonl", 1),
        ("b.jsonl", 1),
        ("a.jsonl", 1),
    ]
