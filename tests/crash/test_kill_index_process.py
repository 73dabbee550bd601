"""Kill -9 of the process that serves the index while it retains for others: every text is kept, and none twice.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import asyncio
import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from recallog import Memory, layout
from recallog.index.messages import ServiceAddress
from recallog.settings import Settings
from recallog_schemas.errors import IndexUnavailable
from support.embedding_endpoint import embedding_endpoint
from support.events import event, recorded, run

A = ("village", "baker")
TEXTS = [f"The miller owes {n} sacks." for n in range(8)]
VECTORS = {text: [0.0] * n + [1.0] for n, text in enumerate(TEXTS)}
LATEST_SECONDS = 0.03
"""A call takes about half as long on an idle machine."""
KILLS_LEAST = 3
BACKLOG = 700
START_SECONDS = 3.0
"""About as long as a process takes to start and to index `BACKLOG` texts."""


def kill(home: Path) -> bool:
    """Kill the process that serves the folder; return whether there was one."""
    with suppress(FileNotFoundError, ProcessLookupError, msgspec.MsgspecError):
        os.kill(
            msgspec.json.decode((home / layout.INDEX_ADDRESS).read_bytes(), type=ServiceAddress).pid, signal.SIGKILL
        )
        return True
    return False


async def kill_after(seconds: float, home: Path) -> bool:
    await asyncio.sleep(seconds)
    return kill(home)


async def kill_when_written(memory: Memory, home: Path) -> bool:
    """Kill the process as soon as the ledger has another event: before, or while, it answers."""
    before = await memory.admin.ledger_ends()
    while await memory.admin.ledger_ends() == before:
        await asyncio.sleep(0)
    return kill(home)


async def served(memory: Memory) -> None:
    """Wait until the index is served, and has everything. The first call after a kill says that its process ended."""
    try:
        await memory.catch_up_index()
    except IndexUnavailable:
        await memory.catch_up_index()


def test_kills_while_a_backlog_is_indexed_leave_no_memory_without_its_vectors(
    tmp_path: Path, chance: random.Random
) -> None:
    async def work() -> None:
        settings = Settings(home=tmp_path, index="embedded", index_idle_seconds=0, deadline_seconds=20)
        async with Memory.open(settings) as memory:
            await memory.publish_many([event(payload={"text": f"The miller owes {n} sacks."}) for n in range(BACKLOG)])
            for _ in range(KILLS_LEAST):
                killed = False
                while not killed:  # a process that has nothing left to do ends by itself
                    with suppress(IndexUnavailable):  # the first call after a kill says that its process ended
                        await memory.start_index()
                    killed = await kill_after(chance.uniform(0, START_SECONDS), tmp_path)
            await served(memory)
            answer = await memory.recall(*A, "Who owes 0 sacks?", top_k=1_000)
            assert (answer.degraded, answer.index_behind) == (None, 0)
            offsets = [each.position.offset for each in answer.hits]
            assert len(offsets) == len(set(offsets))
            assert all(each.similarity is not None for each in answer.hits)
            assert (await memory.admin.verify()).clean

    run(work())


@pytest.mark.models("long_term")
def test_a_killed_process_of_the_index_doubles_and_loses_nothing(tmp_path: Path, chance: random.Random) -> None:
    async def work(name: str) -> None:
        settings = Settings(home=tmp_path, index="embedded", embedder=name, index_idle_seconds=0, deadline_seconds=20)
        async with Memory.open(settings) as memory:
            kills = 0
            ids = []
            for number, text in enumerate(TEXTS):
                await served(memory)
                seconds = chance.uniform(0, LATEST_SECONDS)
                killing = kill_after(seconds, tmp_path) if number % 2 else kill_when_written(memory, tmp_path)
                killed = asyncio.create_task(killing)
                kept = await memory.long_term.retain(*A, text)
                kills += await killed
                assert kept.outcome == "stored"
                ids.append(kept.id)
            assert kills >= KILLS_LEAST
            listed = (await memory.long_term.list(*A)).entries
            assert [(each.id, each.text) for each in reversed(listed)] == list(zip(ids, TEXTS, strict=True))
            written = [each.id for each in await recorded(memory)]
            assert written == ids
            await served(memory)
            for text in TEXTS:
                again = await memory.long_term.retain(*A, text)
                assert again.outcome == "skipped"
            assert (await memory.admin.verify()).clean

    with embedding_endpoint(VECTORS) as endpoint:
        run(work(endpoint.name))
