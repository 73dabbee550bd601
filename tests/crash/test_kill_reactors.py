"""Kill -9 of a process that reacts: each trigger is closed once, and its answer is whole and without repeats.

A failing run prints its seed; `RECALLOG_TEST_SEED=<seed>` makes the same choices again (the scheduling of the system
cannot be repeated).
"""

import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Settings
from recallog_projections.models.long_term import tables as entries
from recallog_schemas import triggers
from support.events import event, recorded, run
from support.index_process import DEADLINE_SECONDS
from support.processes import begun, ended

pytestmark = pytest.mark.models("conversations", "facts")

CHAINS = 150
LINKS = 4
SESSIONS = 50
CHATS = 50
TURNS = 50
KILLS = 6
MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
REACT = """
import asyncio, sys
from recallog import Memory, Settings

async def main(home, index="off"):
    async with Memory.open(Settings(home=home, index=index)) as memory:
        await memory.pending()
        print("begins", flush=True)
        while await memory.react():
            pass

asyncio.run(main(*sys.argv[1:]))
"""


def id_of(chain: int, link: int) -> str:
    return f"entry-{chain}-{link}"


def note_of(session: int, number: int) -> str:
    return f"NOTE: {number} of session {session}"


def fact_of(turn: int, number: int) -> str:
    return f"I live in Town{turn} near River{number}."


def asked_in(chat: int, number: int) -> str:
    return f"Please send me loaf {number} of chat {chat}."


def history() -> list[Event]:
    """Chains of entries, each made from the one before, whose first links are erased; sessions that end with notes,
    turns that end with facts, and chats that become lines of documents."""
    settings = {"extract_facts": True, "daily": {"enabled": False}}
    events = [event("agent.configured", agent="smith", payload=settings)]
    empty = {"namespace": ["workspace"], "key": "MEMORY.md", "value": ""}
    events.append(event("item.put", agent="clerk", payload=empty))
    for chat in range(CHATS):
        chatting: dict[str, Any] = {"session": f"c{chat}", "audience": ("clerk",)}
        events += [
            event("user.injected", agent="user", payload={"text": asked_in(chat, number)}, **chatting)
            for number in range(6)
        ]
        at = MONDAY + timedelta(days=chat)
        events.append(event("turn.ended", id=f"chat-{chat}", agent="clerk", session=f"c{chat}", at=at, payload={}))
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
    process = begun(REACT, home)
    time.sleep(chance.uniform(0.0, 0.25))
    process.kill()
    return ended(process) == -9


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
            events = await recorded(memory)
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
            for chat in range(CHATS):
                lines = "\n".join(f"- User asked: {asked_in(chat, number)}" for number in range(6))
                day = f"{MONDAY + timedelta(days=chat):%Y-%m-%d}"
                document = await memory.items.get("village", "clerk", "workspace", f"memory/{day}.md")
                assert document.item is not None
                assert document.item.value == f"## Session Facts ({day})\n{lines}\n\n"
                facts_of_chat = await memory.items.get("village", "clerk", f"session/c{chat}", "session_facts")
                assert facts_of_chat.item is not None
                assert facts_of_chat.item.value == lines
            in_memory = await memory.items.get("village", "clerk", "workspace", "MEMORY.md")
            assert in_memory.item is not None
            written = [line for line in in_memory.item.value.splitlines() if line.startswith("- ")]
            assert written == [
                f"- User asked: {asked_in(chat, n)}" for chat in range(len(written) // 4) for n in range(4)
            ]
            assert 4_000 <= len(in_memory.item.value) < 4_300
            closed = Counter(each.causation_id for each in events if each.kind in triggers.CLOSINGS)
            assert set(closed.values()) == {1}
            assert len(closed) == CHAINS * (LINKS - 2) + SESSIONS + TURNS + CHATS
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


PAIRS_OF_FACTS = 12


def test_a_reactor_of_near_duplicates_that_is_killed_merges_each_pair_once(
    tmp_path: Path, chance: random.Random
) -> None:
    settings = {"quality": {"deduplicate": True}}
    facts = [
        event("memory.retained", id=f"{number}-{word}", payload={"text": f"Ann {word} the mill of Town{number}."})
        for number in range(PAIRS_OF_FACTS)
        for word in ("buys", "purchases")
    ]

    async def publish() -> None:
        async with Memory.open(Settings(home=tmp_path, index="embedded", deadline_seconds=DEADLINE_SECONDS)) as memory:
            await memory.publish_many([event("agent.configured", payload=settings), *facts])
            await memory.catch_up_index()

    async def check() -> None:
        async with Memory.open(Settings(home=tmp_path, index="embedded", deadline_seconds=DEADLINE_SECONDS)) as memory:
            await memory.react()
            assert not list(await memory.pending())
            events = await recorded(memory)
            closings = Counter(each.causation_id for each in events if each.kind in triggers.CLOSINGS)
            assert (len(closings), set(closings.values())) == (2 * PAIRS_OF_FACTS, {1})
            archived = [each.payload for each in events if each.kind == "memory.archived"]
            merged = {(f"{number}-buys", f"{number}-purchases") for number in range(PAIRS_OF_FACTS)}
            assert sorted((each["entry"], each["duplicate_of"]) for each in archived) == sorted(merged)

    run(publish())
    for _ in range(KILLS):
        process = begun(REACT, tmp_path, "embedded")
        time.sleep(chance.uniform(0.0, 0.5))
        process.kill()
        ended(process)
    run(check())
