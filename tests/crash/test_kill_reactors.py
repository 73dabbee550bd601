"""Kill -9 of a process that reacts: each trigger is closed once, and its answer is whole and without repeats.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from recallog import Event, Memory
from recallog_projections.views.entries import tables as entries
from recallog_schemas import codec, triggers
from support.cli import environment_of
from support.events import event, run

CHAINS = 150
LINKS = 4
SESSIONS = 50
TURNS = 50
KILLS = 6
REACT = """
import asyncio, sys
from recallog import Memory

async def main(home):
    async with Memory.open(home) as memory:
        await memory.pending()
        print("begins", flush=True)
        while await memory.react():
            pass

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get("RECALLOG_TEST_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seed: RECALLOG_TEST_SEED={seed}")
    return random.Random(seed)


def id_of(chain: int, link: int) -> str:
    return f"entry-{chain}-{link}"


def note_of(session: int, number: int) -> str:
    return f"NOTE: {number} of session {session}"


def fact_of(turn: int, number: int) -> str:
    return f"I live in Town{turn} near River{number}."


def history() -> list[Event]:
    """Chains of entries, each made from the one before, whose first links are erased; sessions that end with notes, and
    turns that end with facts."""
    events = [event("agent.configured", agent="smith", payload={"extract_facts": True})]
    for turn in range(TURNS):
        said = " ".join(fact_of(turn, number) for number in range(3))
        events.append(event(id=f"said-{turn}", agent="smith", session="talk", payload={"text": said}))
        events.append(event("turn.ended", id=f"turn-{turn}", agent="smith", session="talk", payload={}))
    for session in range(SESSIONS):
        notes = {"namespace": ["session", f"x{session}"], "key": "k", "value": [note_of(session, n) for n in range(3)]}
        events.append(event("item.put", payload=notes))
        events.append(event("session.ended", id=f"end-{session}", session=f"x{session}", payload={}))
    for chain in range(CHAINS):
        for link in range(LINKS):
            sources = [id_of(chain, link - 1)] if link else []
            payload = {"text": f"Link {link} of chain {chain}.", "sources": sources}
            agent = ("baker", "miller")[link % 2]
            events.append(event("memory.retained", id=id_of(chain, link), agent=agent, payload=payload))
    roots = [(f"erased-{chain}", id_of(chain, 0)) for chain in range(CHAINS)]
    return events + [event("memory.erased", id=id_, payload={"entries": [root]}) for id_, root in roots]


def killed(home: Path, chance: random.Random) -> bool:
    """Start a process that reacts, and kill it after a random time; False if it had ended by itself."""
    command = [sys.executable, "-c", REACT, str(home)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of())
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(chance.uniform(0.0, 0.25))
    process.kill()
    process.stdout.close()
    return process.wait(60) == -9


def test_reactors_that_are_killed_leave_no_trigger_open_and_answer_none_twice(
    tmp_path: Path, chance: random.Random
) -> None:
    async def publish() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(history())

    async def check() -> None:
        async with Memory.open(tmp_path) as memory:
            while await memory.react():
                pass
            assert not await memory.pending()
            events = [codec.decode(data) async for batch in memory.admin.records() for _, data in batch.records]
            retracted = Counter(each.payload["entry"] for each in events if each.kind == "memory.retracted")
            # The erasure itself retracts the second link; each further one is retracted by one event.
            assert retracted == {id_of(chain, link): 1 for chain in range(CHAINS) for link in range(2, LINKS)}
            notes = Counter(each.text for each in events if each.text.startswith("NOTE"))
            assert notes == {note_of(session, number): 1 for session in range(SESSIONS) for number in range(3)}
            facts = [each for each in events if each.kind == "memory.retained" and each.agent == "smith"]
            facts = [each for each in facts if each.causation_id is not None]
            of_turns = {(turn, number) for turn in range(TURNS) for number in range(3)}
            assert Counter(each.text for each in facts) == {
                fact_of(*one).replace("I live", "smith lives"): 1 for one in of_turns
            }
            turns = [(f"said-{turn}",) for turn, _ in sorted(of_turns)]
            assert sorted(tuple(each.payload["sources"]) for each in facts) == sorted(turns)
            closed = Counter(each.causation_id for each in events if each.kind in triggers.CLOSINGS)
            assert set(closed.values()) == {1}
            assert len(closed) == CHAINS * (LINKS - 2) + SESSIONS + TURNS
            assert {each.kind for each in events if each.kind in triggers.CLOSINGS} == {triggers.DONE}
            for chain in range(CHAINS):
                found = [await memory.row(entries.IDS, "village", "", id_of(chain, link)) for link in range(LINKS)]
                statuses = [None if ref is None else ref.status for ref in found]
                assert statuses == [entries.ERASED, *[entries.RETRACTED] * (LINKS - 1)]
            assert (await memory.admin.verify()).ok

    run(publish())
    kills = 0
    for _ in range(4 * KILLS):
        kills += killed(tmp_path, chance)
        if kills == KILLS:
            break
    run(check())
    assert kills > 0
