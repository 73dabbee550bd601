"""Concurrency: the same work for several partitions at once, and repeated cancelling of tasks until they end."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from recallog_schemas import limits

CANCELLED_AGAIN_SECONDS = 1.0
"""After this time a task that was cancelled and has not ended is cancelled again."""

Item = TypeVar("Item")
Result = TypeVar("Result")


async def gather_limited(
    work: Callable[[Item], Awaitable[Result]], items: Iterable[Item], at_once: int = limits.PARTITIONS_AT_ONCE
) -> list[Result]:
    """The results of `work` for each item, in the order of `items`; at most `at_once` run at a time.

    Raises the first error; the others are cancelled, and have ended when it is raised.
    """
    items = list(items)
    if len(items) == 1:  # as with the embedded ledger: no task needed
        return [await work(items[0])]
    free = asyncio.Semaphore(at_once)

    async def run_bounded(item: Item) -> Result:
        async with free:
            return await work(item)

    tasks = [asyncio.create_task(run_bounded(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await cancel_all(*tasks)


async def cancel_all(*tasks: asyncio.Task[Any], seconds: float = math.inf) -> set[asyncio.Task[Any]]:
    """Cancel `tasks`, and return when all of them have ended, or after `seconds`. Returns the tasks that still run.

    The results and errors of the others are dropped.

    A task that still runs is cancelled again: `asyncio.wait_for` of Python 3.11, with which the client of Redis sends a
    command, loses a cancellation that arrives together with its result.
    """
    now = asyncio.get_running_loop().time
    until, pending = now() + seconds, {task for task in tasks if not task.done()}
    while pending and now() < until:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=min(CANCELLED_AGAIN_SECONDS, until - now()))
    await asyncio.gather(*(task for task in tasks if task.done()), return_exceptions=True)
    return pending
