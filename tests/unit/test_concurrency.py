"""Tasks that are cancelled until they have ended."""

import asyncio
from contextlib import suppress

import pytest

from recallog_projections.concurrency import CANCELLED_AGAIN_SECONDS, cancel_all
from recallog_streams.stop_signal import StopSignal
from support.virtual_time import run_in_virtual_time


async def deaf(times: int) -> None:
    """Lose the first cancellations, as `asyncio.wait_for` of Python 3.11 can, then end with the next one."""
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
    await asyncio.sleep(3600)


async def failing() -> None:
    raise ValueError("a defect")


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_task_that_loses_cancellations_is_cancelled_again_until_it_has_ended(times: int) -> None:
    async def work() -> float:
        tasks = [asyncio.create_task(deaf(times)), asyncio.create_task(deaf(0))]
        await asyncio.sleep(0)
        await cancel_all(*tasks)
        assert all(task.cancelled() for task in tasks)
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(work()) == pytest.approx(times * CANCELLED_AGAIN_SECONDS)


def test_the_error_of_a_task_that_has_ended_before_is_dropped() -> None:
    async def work() -> None:
        task = asyncio.create_task(failing())
        await asyncio.sleep(0)
        await cancel_all(task)
        assert isinstance(task.exception(), ValueError)

    run_in_virtual_time(work())


def test_work_that_loses_the_cancellation_of_a_stop_signal_ends_soon() -> None:
    async def work() -> float:
        signal = StopSignal()
        asyncio.get_running_loop().call_later(5, signal.set)
        assert await signal.unless(deaf(1)) is None
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(work()) == pytest.approx(5 + CANCELLED_AGAIN_SECONDS)
