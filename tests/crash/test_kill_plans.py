"""Kill -9 of processes that make plans: each plan has its effect once, and what it archives one summary.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import asyncio
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recallog import Event, Memory
from support.events import event, recorded, run
from support.processes import begun, ended

pytestmark = pytest.mark.models("tiers")

NOW = datetime(2026, 3, 1, tzinfo=UTC)
AGENTS = [f"agent-{number}" for number in range(60)]
KILLS = 6
PLAN = """
import asyncio, sys
from datetime import datetime
from recallog import Memory

async def main(home, now, *agents):
    async with Memory.open(home) as memory:
        await memory.pending()
        print("begins", flush=True)
        for agent in agents:
            await memory.tiers.consolidate("village", agent, now=datetime.fromisoformat(now))

asyncio.run(main(*sys.argv[1:]))
"""


def history() -> list[Event]:
    """Of each agent: three entries that were not read for 61 seconds, and four in a tier that may have two."""
    at, events = NOW - timedelta(seconds=61), []
    for agent in AGENTS:
        events.append(event("agent.configured", agent=agent, at=at, payload={"tiers": {"max": {"glacial": 2}}}))
        for number in range(7):
            tier = "fast" if number < 3 else "glacial"
            payload = {"text": f"{agent}, {number}.", "tier": tier, "importance": 0.9 + number / 100}
            events.append(event("memory.retained", id=f"{agent}/{number}", agent=agent, at=at, payload=payload))
    return events


def killed(home: Path, chance: random.Random) -> int:
    """Start two processes that plan, and kill them after a random time. -> how many had not ended by themselves"""
    orders = [chance.sample(AGENTS, len(AGENTS)) for _ in range(2)]
    processes = [begun(PLAN, home, NOW.isoformat(), *agents) for agents in orders]
    time.sleep(chance.uniform(0.0, 0.4))
    for process in processes:
        process.kill()
    return sum(ended(process) == -9 for process in processes)


def test_planners_that_are_killed_have_the_effect_of_one_run(tmp_path: Path, chance: random.Random) -> None:
    async def publish() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(history())

    async def check() -> None:
        async with Memory.open(tmp_path) as memory:
            await asyncio.gather(*(memory.tiers.consolidate("village", agent, now=NOW) for agent in AGENTS))
            while await memory.react():
                pass
            assert not await memory.pending()
            for agent in AGENTS:
                entries = (await memory.long_term.list("village", agent)).entries
                (summary,) = (each for each in entries if each.type == "summary")
                assert summary.sources == (f"{agent}/3", f"{agent}/4")
                assert {each.id: each.tier for each in entries if each is not summary} == {
                    **{f"{agent}/{number}": "medium" for number in range(3)},
                    **{f"{agent}/{number}": "glacial" for number in (5, 6)},
                }
                stats = await memory.tiers.stats("village", agent, now=NOW)
                assert (stats.promotions_last_hour, stats.demotions_last_hour) == (0, 3)
                assert stats.archived == {"expired": 0, "tier_limit": 2}
            events = await recorded(memory)
            assert set(Counter(each.id for each in events).values()) == {1}
            assert (await memory.admin.verify()).ok

    run(publish())
    kills = 0
    for _ in range(4 * KILLS):
        kills += killed(tmp_path, chance)
        if kills >= KILLS:
            break
    run(check())
    assert kills > 0
