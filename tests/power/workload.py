"""The program that is recorded: all that a folder is used for, and a line for each thing that was acknowledged.

A line is JSON: `end`, how many records the ledger has at least; `keys`, the keys and whether each is valid.
"""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recallog import Event, Memory, Settings
from recallog_schemas import Position
from recallog_service.access.grants import Grant
from recallog_service.access.key_file import KeyFile
from recallog_service.access.keys import make
from support.toy_embedder import ToyEmbedder

WHO = ("village", "baker")
OPENINGS, ROUNDS = 3, 3


def event(number: int) -> Event:
    """An event of the run."""
    text = f"The miller owes me {number} sacks of flour and {number * 7} loaves."
    return Event(
        id=f"event-{number}", space=WHO[0], agent=WHO[1], kind="agent.spoke", turn=number, payload={"text": text}
    )


def opened(home: Path) -> Memory:
    """The memory in the folder, with an index in this process."""
    return Memory.open(Settings(home=home, index="embedded", count_accesses=False), embedder=ToyEmbedder())


async def keys_of(home: Path) -> dict[str, bool]:
    """The keys of the folder, and whether each is valid."""
    return {key.name: key.is_valid_at(datetime.now(UTC)) for key in await KeyFile(home).all()}


async def _work(home: Path) -> None:
    keys = KeyFile(home)
    for opening in range(OPENINGS):
        async with opened(home) as memory:
            await memory.episodic(*WHO)
            # Another process is the first to write, after this one has opened the files to read.
            subprocess.run([sys.executable, "-m", "power.workload", str(home), str(opening * 100 + 90)], check=True)
            for turn in range(ROUNDS):
                await _round(memory, opening * 100 + turn * 10)
        _, key = make(f"key-{opening}", Grant.everything())
        await keys.put(key)
        await _say_keys(home)
        if opening:
            await keys.revoke(key.id)
            await _say_keys(home)


async def _round(memory: Memory, number: int) -> None:
    _say_end(await memory.publish(event(number)))
    published = await memory.publish_many([event(number + more) for more in range(1, 4)])
    _say_end(published.items[-1])
    await memory.items.put(*WHO, "notes", f"key-{number}", {"sacks": number})
    await memory.long_term.retain(*WHO, f"LESSON: count {number} sacks before you sell", entry_id=f"entry-{number}")
    if number % 20 == 10:
        await memory.long_term.forget(*WHO, [f"entry-{number - 10}"])
    await memory.conversation.add(*WHO, "noon", [{"role": "user", "content": f"how many sacks? {number}"}])
    _say({"end": (await memory.admin.status()).records})
    await memory.catch_up_index()
    await memory.recall(*WHO, "who owes flour?")


async def _publish_one(home: Path, number: int) -> None:
    async with Memory.open(Settings(home=home, index="off")) as memory:
        position = await memory.publish(event(number))
    _say({"end": position.offset + 1, "by": "a process that writes first"})


def _say_end(position: Position) -> None:
    _say({"end": position.offset + 1})


async def _say_keys(home: Path) -> None:
    _say({"keys": await keys_of(home)})


def _say(said: dict[str, Any]) -> None:
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    _home = Path(sys.argv[1])
    asyncio.run(_publish_one(_home, int(sys.argv[2])) if sys.argv[2:] else _work(_home))
