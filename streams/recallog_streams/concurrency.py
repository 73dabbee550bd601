"""Bounded concurrency: the same work for several partitions at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from recallog_schemas import limits

Item = TypeVar("Item")
Result = TypeVar("Result")


async def gathered(
    work: Callable[[Item], Awaitable[Result]], items: Iterable[Item], at_once: int = limits.PARTITIONS_AT_ONCE
) -> list[Result]:
    """The results of `work` for each item, in the order of `items`; at most `at_once` run at a time.

    Raises the first error; the others are cancelled, and have ended when it is raised.
    """
    items = list(items)
    if len(items) == 1:  # as with the embedded ledger: no task needed
        return [await work(items[0])]
    free = asyncio.Semaphore(at_once)

    async def bounded(item: Item) -> Result:
        async with free:
            return await work(item)

    tasks = [asyncio.create_task(bounded(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
