"""Commands of several callers at once: the first in the ledger counts, and each one learns what became of its own."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Refused
from support.events import run

pytestmark = pytest.mark.models("conversations", "consensus", "long_term")

CHAT = ("village", "baker", "s-1")
CALLERS = 12


async def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def opened(home: Path, number: int) -> list[Memory]:
    """Memories of one folder, as of so many programs."""
    return [Memory.open(home) for _ in range(number)]


async def closed(memories: list[Memory]) -> None:
    for memory in memories:
        await memory.close()


async def talk(memory: Memory, messages: int) -> None:
    told = [{"role": "user", "content": f"message {number}"} for number in range(messages)]
    await memory.conversation.add(*CHAT, told)


def test_each_message_is_popped_by_one_caller(tmp_path: Path) -> None:
    async def work() -> None:
        memories = await opened(tmp_path, 4)
        await talk(memories[0], 2 * CALLERS)
        answers = await together(*(memories[number % 4].conversation.pop(*CHAT, count=2) for number in range(CALLERS)))
        popped = [message["content"] for answer in answers for message in answer.messages]
        assert sorted(popped) == sorted(f"message {number}" for number in range(2 * CALLERS))
        assert all(len(answer.messages) == len(answer.removed) == 2 for answer in answers)
        assert all(answer.messages[0]["content"] != answer.messages[1]["content"] for answer in answers)
        assert (await memories[1].conversation.messages(*CHAT)).messages == ()
        await closed(memories)

    run(work())


def test_more_callers_than_messages_leave_some_without_one(tmp_path: Path) -> None:
    async def work() -> None:
        memories = await opened(tmp_path, 3)
        await talk(memories[0], 5)
        answers = await together(*(memories[number % 3].conversation.pop(*CHAT) for number in range(CALLERS)))
        assert sorted(len(answer.messages) for answer in answers) == [0] * (CALLERS - 5) + [1] * 5
        await closed(memories)

    run(work())


def test_a_message_is_taken_out_by_one_caller(tmp_path: Path) -> None:
    async def work() -> None:
        memories = await opened(tmp_path, 3)
        await talk(memories[0], 3)
        ids = list((await memories[0].conversation.messages(*CHAT)).ids)
        answers = await together(*(memory.conversation.remove(*CHAT, ids) for memory in memories))
        assert sorted(id_ for answer in answers for id_ in answer.removed) == sorted(ids)
        await closed(memories)

    run(work())


def test_of_several_compactions_one_is_made(tmp_path: Path) -> None:
    async def work() -> None:
        memories = await opened(tmp_path, 3)
        await talk(memories[0], 30)
        answers = await together(*(memory.conversation.compact(*CHAT) for memory in memories))
        assert sum(answer.compacted > 0 for answer in answers) == 1
        await closed(memories)

    run(work())


def test_of_several_successors_one_supersedes_and_the_others_are_refused(tmp_path: Path) -> None:
    async def record(memory: Memory, id_: str) -> None:
        await memory.consensus.record(
            "village", "baker", f"topic {id_}", "Bread.", confidence=1.0, participating=["baker"], event_id=id_
        )

    async def work() -> None:
        memories = await opened(tmp_path, 4)
        for id_ in ("c-0", "c-1", "c-2", "c-3", "c-4"):
            await record(memories[0], id_)
        answers = await together(
            *(
                memory.consensus.supersede("village", "baker", "c-0", f"c-{number}")
                for number, memory in enumerate(memories, 1)
            )
        )
        refused = [each for each in answers if isinstance(each, Refused)]
        assert [each.reason for each in refused] == ["superseded"] * 3
        (won,) = (each for each in answers if each not in refused)
        assert won.superseded_by in {"c-1", "c-2", "c-3", "c-4"}
        assert "already superseded" in str(refused[0])
        await closed(memories)

    run(work())


def test_of_many_pins_five_are_pinned_and_each_caller_learns_about_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        memories = await opened(tmp_path, 4)
        answers = await together(
            *(
                memories[number % 4].long_term.retain("village", "baker", f"Rule {number}.", priority="pinned")
                for number in range(CALLERS)
            )
        )
        outcomes = ["refused" if isinstance(each, Refused) else each.outcome for each in answers]
        assert outcomes.count("stored") == 5
        assert set(outcomes) <= {"stored", "unpinned", "refused"}
        pinned = (await memories[0].long_term.stats("village", "baker")).pinned
        assert {each.id for each in answers if not isinstance(each, Refused) and each.outcome == "stored"} == set(
            pinned
        )
        await closed(memories)

    run(work())
