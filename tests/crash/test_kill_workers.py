"""Kill -9 of a rebuild in several processes, and of its workers: the next one goes on, and the rows are the same."""

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from recallog import Memory
from recallog_schemas import Event
from support.events import MOMENT, run
from support.processes import Process, begun, ended

EVENTS = 4_000
KILLS = 5

REBUILD = """
import asyncio, sys
from recallog import Memory
from recallog_schemas import limits

limits.PARALLEL_RECORDS_MIN, limits.READ_BATCH_RECORDS = 100, 200

async def main(home, workers):
    async with Memory.open(home) as memory:
        print("begins", flush=True)
        await memory.admin.rebuild(workers=int(workers), progress=lambda *done: print(*done, flush=True))
        print("done", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def workers_of(process: Process) -> list[int]:
    """The processes that a rebuild has started."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [int(each) for each in children if is_worker(int(each))]


def wait_for_end(processes: Sequence[int]) -> None:
    until = time.monotonic() + 60
    while any(is_worker(each) for each in processes):
        assert time.monotonic() < until, "a worker has outlived its parent"
        time.sleep(0.01)


def is_worker(process: int) -> bool:
    try:
        return b"recallog_streams.parallel.worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def fill(home: Path, dice: random.Random) -> None:
    kinds = ("agent.spoke", "agent.thought", "world.observed", "shop.opened")
    made = [
        Event(
            id=f"e-{n}",
            space=f"village-{dice.randrange(7)}",
            agent=dice.choice(("baker", "miller", "smith")),
            kind=dice.choice(kinds),
            at=MOMENT,
            payload={"text": f"word {n % 97}"},
        )
        for n in range(EVENTS)
    ]
    async with Memory.open(home) as memory:
        await memory.publish_many(made)


async def digest_of(home: Path) -> str:
    async with Memory.open(home) as memory:
        report = await memory.admin.verify("views")
        assert report.clean
        return report.digest


def test_a_killed_rebuild_goes_on_with_any_number_of_workers(tmp_path: Path, chance: random.Random) -> None:
    home = tmp_path / "home"
    run(fill(home, chance))
    expected = run(digest_of(home))
    killed = 0
    for _ in range(60):
        if killed >= KILLS:
            break
        process = begun(REBUILD, home, chance.choice((1, 2, 3)))
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 25)):
            process.stdout.readline()
        workers = workers_of(process)
        if workers and chance.random() < 0.4:
            os.kill(chance.choice(workers), signal.SIGKILL)
            assert "done\n" in process.stdout.readlines()  # it goes on without its workers
            assert ended(process) == 0
        else:
            process.kill()
            killed += ended(process) == -9
        wait_for_end(workers)
    assert killed >= KILLS, "most kills come too late"
    process = begun(REBUILD, home, 2)
    assert process.stdout is not None
    assert "done\n" in process.stdout.readlines()
    assert ended(process) == 0
    assert run(digest_of(home)) == expected
