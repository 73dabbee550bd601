"""`wait_index`: the answer is by an index that has everything, or an error; never by words alone."""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from contract.test_index_silence import ANSWER, QUESTION, address, build, events, indexed, settings, stopped
from recallog import Memory
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import IndexUnavailable
from support.events import event, run
from support.faulty_engine import FaultyEngine
from support.indexing import catch_up, indexing_of, memory_with

NEWEST = "The smith has left the village."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("waiting") / "memory")


@pytest.fixture
def built(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "memory"))


async def assert_waits(memory: Memory) -> None:
    """A question that waits is answered by the index, with the event that was just published."""
    position = await memory.publish(event(payload={"text": NEWEST}))
    answer = await memory.recall("village", "baker", QUESTION, wait_index=True)
    assert (answer.hits[0].text, answer.degraded) == (ANSWER, None)
    assert answer.index_checkpoint is not None
    assert answer.index_checkpoint >= position
    assert {hit.source for hit in answer.hits} == {"index"}
    assert (await memory.search("village", "baker", QUESTION, wait_index=True)).degraded is None


def test_a_question_waits_for_a_process_that_was_just_continued(built: Path) -> None:
    """The questions before it have found that the process says nothing, and do not ask it again for some seconds."""

    async def work() -> None:
        async with indexed(built) as memory:
            with stopped(address(built).pid):
                for _ in range(2):
                    assert (await memory.recall("village", "baker", QUESTION)).degraded is not None
            await assert_waits(memory)

    run(work())


def test_a_question_after_waiting_is_answered_by_a_process_that_was_just_continued(built: Path) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            with stopped(address(built).pid):
                assert (await memory.recall("village", "baker", QUESTION)).degraded is not None
            await memory.catch_up_index()
            assert (await memory.recall("village", "baker", QUESTION)).degraded is None

    run(work())


@pytest.mark.parametrize("times", [1, 2])
def test_a_question_waits_for_the_process_that_follows_a_killed_one(built: Path, times: int) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            for _ in range(times):
                os.kill(address(built).pid, signal.SIGKILL)
                await assert_waits(memory)

    run(work())


def test_a_question_waits_for_a_process_that_starts(built: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(built)) as memory:
            await memory.start_index()
            await assert_waits(memory)

    run(work())


def test_a_process_that_ends_after_it_was_waited_for_is_waited_for_again(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            wait, killed = memory.catch_up_index, []

            async def waited_and_killed(**given: Any) -> None:
                await wait(**given)
                if not killed:
                    killed.append(address(built).pid)
                    os.kill(killed[0], signal.SIGKILL)

            monkeypatch.setattr(memory, "catch_up_index", waited_and_killed)
            await assert_waits(memory)
            assert killed

    run(work())


def test_a_process_that_stops_after_it_was_waited_for_is_an_error(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with indexed(built) as memory:
            wait, pid = memory.catch_up_index, address(built).pid

            async def waited_and_stopped(**given: Any) -> None:
                await wait(**given)
                os.kill(pid, signal.SIGSTOP)

            monkeypatch.setattr(memory, "catch_up_index", waited_and_stopped)
            try:
                with pytest.raises(IndexUnavailable, match="said nothing for 1 s"):
                    await memory.recall("village", "baker", QUESTION, wait_index=True)
            finally:
                os.kill(pid, signal.SIGCONT)

    run(work())


ASKED: dict[str, Callable[[Memory], Awaitable[Any]]] = {
    "recall": lambda memory: memory.recall("village", "baker", QUESTION, wait_index=True),
    "search": lambda memory: memory.search("village", "baker", QUESTION, wait_index=True),
}


@pytest.mark.parametrize("name", ASKED)
def test_an_index_that_was_waited_for_and_cannot_answer_is_an_error(name: str, tmp_path: Path) -> None:
    """Its checkpoints are read from other files than its engine: the one is up to date while the other is down."""

    async def work() -> None:
        engine = FaultyEngine(EdgeEngine(tmp_path / "engine"))
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, engine)) as memory:
            await memory.publish_many(events())
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            assert (await ASKED[name](memory)).degraded is None
            engine.down(IndexUnavailable("the engine is down"))
            with pytest.raises(IndexUnavailable, match="the engine is down"):
                await ASKED[name](memory)

    run(work())


def test_questions_of_many_tasks_wait_for_one_process(built: Path) -> None:
    async def work() -> None:
        async with Memory.open(settings(built)) as memory:
            asked = [memory.recall("village", "baker", QUESTION, wait_index=True) for _ in range(8)]
            assert {answer.degraded for answer in await asyncio.gather(*asked)} == {None}

    run(work())
