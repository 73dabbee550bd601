"""Kill -9 at random moments of the first writes under new keys: every acknowledged event can be read, once."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

from recallog import Memory, Settings
from recallog_schemas import sealing
from support.events import recorded, run
from support.processes import Process, begun, start

# Each event is the first of a person, so that each write needs a new key.
PUBLISH = """
import asyncio, sys
from recallog import Event, Memory, Settings

async def main(home, name):
    async with Memory.open(Settings.valid(home=home, index="off")) as memory:
        print("begins", flush=True)
        for number in range(10_000):
            said = {"text": f"I am {name} {number}."}
            sent = Event(
                space="village", agent="baker", kind="agent.spoke", payload=said, subject=f"{name}-{number}",
                id=f"{name}-{number}",
            )
            await memory.publish(sent)
            print(sent.id, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
ONE_PERSON = """
import asyncio, sys
from recallog import Event, Memory, Settings

async def main(home, name):
    async with Memory.open(Settings.valid(home=home, index="off")) as memory:
        for number in range(30):
            said = {"text": f"{name} {number}"}
            await memory.publish(Event(space="village", agent=name, kind="agent.spoke", payload=said, subject="ann"))

asyncio.run(main(*sys.argv[1:]))
"""
KILLS = 8


def killed_after(process: Process, lines: int) -> list[str]:
    """The ids that a process has acknowledged when it is killed after so many lines."""
    assert process.stdout is not None
    with process:
        said = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        said += process.stdout.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


async def texts_by_id(home: Path) -> dict[str, str]:
    """The texts of all events of the ledger, which is verified with its views."""
    async with Memory.open(Settings.valid(home=home, index="off")) as memory:
        assert (await memory.admin.verify()).clean
        found = await recorded(memory)
        assert len({sent.id for sent in found}) == len(found)
        return {sent.id: sent.text for sent in found}


def test_every_acknowledged_event_can_be_read_after_kills(tmp_path: Path, chance: random.Random) -> None:
    acknowledged = []
    for kill in range(KILLS):
        process = begun(PUBLISH, tmp_path, f"p{kill}")
        acknowledged += killed_after(process, chance.randrange(0, 12))
    found = run(texts_by_id(tmp_path))
    assert {id_: found.get(id_) for id_ in acknowledged} == {
        id_: f"I am {id_.replace('-', ' ')}." for id_ in acknowledged
    }


def test_two_processes_that_write_about_one_person_use_one_key(tmp_path: Path) -> None:
    processes = [start("-c", ONE_PERSON, tmp_path, name) for name in ("one", "two")]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as ledger:
        records = [value for (value,) in ledger.execute("SELECT value FROM events")]
    assert len({sealing.key_ids(record) for record in records}) == 1
    assert len(run(texts_by_id(tmp_path))) == len(records) == 60
