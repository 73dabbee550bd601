"""A process is killed while it writes snapshots: what is written is whole, and the next process continues."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from recallog import Memory
from support.cli import environment_of
from support.events import numbered, run

EVENTS, EVERY, ROUNDS = 1_500, 20, 6

PROCESS = """
import asyncio, sys
from recallog import Memory

async def main():
    def tell(done, until):
        print(done, flush=True)

    async with Memory.open(sys.argv[1], progress=tell) as memory:
        await memory.episodic("village", "baker", as_of=sys.argv[2])

asyncio.run(main())
"""


def kill_after(folder: Path, steps: int) -> None:
    """Ask for the newest past, and kill the process once it has folded some steps."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(folder), f"0:{EVENTS - 1}"],
        stdout=subprocess.PIPE,
        env=environment_of(PYTHONPATH=os.pathsep.join(sys.path), RECALLOG_SNAPSHOT_RECORDS=str(EVERY)),
    )
    assert process.stdout is not None
    with process.stdout as told:
        for _ in range(steps):
            assert told.readline()
        process.kill()
        process.wait()


def test_a_past_is_right_however_often_the_process_that_saves_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECALLOG_SNAPSHOT_RECORDS", str(EVERY))
    dice = random.Random(7)

    async def prepare() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(numbered(EVENTS))
            await memory.episodic("village", "baker")

    async def check() -> None:
        async with Memory.open(tmp_path) as memory:
            report = await memory.admin.verify(from_zero=True)
            assert report.clean
            assert any(table.table == "snapshots of village" for table in report.tables)
            for offset in (3, 777, EVENTS - 1):
                past = await memory.episodic("village", "baker", window=500, as_of=f"0:{offset}")
                assert [each.text for each in past.memories] == [
                    f"village {number}" for number in range(max(0, offset - 499), offset + 1)
                ]

    run(prepare())
    for _ in range(ROUNDS):
        kill_after(tmp_path, dice.randrange(3, 8))
    run(check())
