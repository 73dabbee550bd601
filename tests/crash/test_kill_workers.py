"""Kill -9 of a rebuild in several processes, and of its workers: the next one goes on, and the rows are the same."""

import random
from pathlib import Path

from recallog import Memory
from recallog_schemas import Event
from support.events import MOMENT, run
from support.processes import begun, ended, kill_rebuilds

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
    kill_rebuilds(lambda: begun(REBUILD, home, chance.choice((1, 2, 3))), chance, kills=KILLS, tries=60, lines=25)
    process = begun(REBUILD, home, 2)
    assert process.stdout is not None
    assert "done\n" in process.stdout.readlines()
    assert ended(process) == 0
    assert run(digest_of(home)) == expected
