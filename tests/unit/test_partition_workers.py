"""Calls of worker processes that work on whole partitions: results, progress, errors, and workers that are killed."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_streams.fold import Fold
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.parallel.partitions import PartitionWorkers, WorkerParts, open_workers
from recallog_streams.parallel.processes import WorkerLost, WorkersUnusable
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector
from support.events import run


@asynccontextmanager
async def open_in_memory() -> AsyncIterator[WorkerParts]:
    projections = builtin.projections()
    yield WorkerParts(Projector(MemoryLedger(), MemoryStore(), projections), projections)


@asynccontextmanager
async def open_nothing() -> AsyncIterator[WorkerParts]:
    raise ValueError("there is no such ledger")
    yield


async def process_id(opened: WorkerParts, progress: Progress) -> int:
    assert len(opened.projections) > 1
    return os.getpid()


async def advance(opened: WorkerParts, progress: Progress) -> str:
    for done in range(1, 4):
        progress(done, 3)
    return "advanced"


async def fail(opened: WorkerParts, progress: Progress) -> None:
    raise ValueError("the record is damaged")


async def wait_forever(opened: WorkerParts, progress: Progress) -> None:
    progress(os.getpid(), 0)
    await asyncio.Event().wait()


@asynccontextmanager
async def workers(count: int) -> AsyncIterator[PartitionWorkers]:
    code = Fold(builtin.projections(), unique_ids=MemoryLedger().unique_ids).code
    async with open_workers(count, open_in_memory, code) as pool:
        yield pool


def test_calls_go_to_the_worker_that_has_the_fewest() -> None:
    async def work() -> list[int]:
        async with workers(2) as pool:
            return list(await asyncio.gather(*(pool.call(process_id, None) for _ in range(4))))

    ids = run(work())
    assert (len(set(ids)), os.getpid() in ids) == (2, False)


def test_a_call_reports_progress_and_returns_a_result() -> None:
    async def work() -> tuple[str, list[tuple[int, int]]]:
        seen: list[tuple[int, int]] = []
        async with workers(1) as pool:
            return await pool.call(advance, lambda *done: seen.append(done)), seen

    assert run(work()) == ("advanced", [(1, 3), (2, 3), (3, 3)])


def test_an_error_of_a_worker_names_the_error_and_the_worker_goes_on() -> None:
    async def work() -> str:
        async with workers(1) as pool:
            with pytest.raises(WorkersUnusable, match="ValueError: the record is damaged"):
                await pool.call(fail, None)
            return await pool.call(advance, None)

    assert run(work()) == "advanced"


def test_an_error_of_a_progress_callback_is_raised_by_the_call() -> None:
    def progress(done: int, total: int) -> None:
        raise KeyError(done)

    async def work() -> None:
        async with workers(1) as pool:
            await pool.call(advance, progress)

    with pytest.raises(KeyError):
        run(work())


def test_a_killed_worker_fails_its_calls_and_others_get_the_next_ones() -> None:
    def kill(process: int, total: int) -> None:
        os.kill(process, signal.SIGKILL)

    async def work() -> list[str]:
        async with workers(2) as pool:
            with pytest.raises(WorkerLost, match="exit code -9"):
                await pool.call(wait_forever, kill)
            survived = [await pool.call(advance, None) for _ in range(3)]
            with pytest.raises(WorkerLost):
                await pool.call(wait_forever, kill)
            with pytest.raises(WorkersUnusable, match="all worker processes have ended"):
                await pool.call(advance, None)
            return survived

    assert run(work()) == ["advanced"] * 3


def test_what_another_process_cannot_open_is_named() -> None:
    async def work() -> None:
        async with open_workers(1, open_nothing, ""):
            pass

    with pytest.raises(WorkersUnusable, match="ValueError: there is no such ledger"):
        run(work())


def test_what_another_process_cannot_get_is_named() -> None:
    async def work() -> None:
        async with open_workers(1, lambda: open_in_memory(), ""):
            pass

    with pytest.raises(WorkersUnusable, match="other processes cannot get"):
        run(work())


def test_workers_of_other_code_are_not_used() -> None:
    async def work() -> None:
        async with open_workers(1, open_in_memory, "other code"):
            pass

    with pytest.raises(WorkersUnusable, match="do not know the same kinds"):
        run(work())
