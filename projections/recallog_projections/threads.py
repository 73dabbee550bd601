"""Closing what a thread works on, without blocking the event loop, and even if the caller is cancelled."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


async def run_last(thread: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    """The result of `work`, which runs after everything that `thread`, an executor of one thread, was given before.

    The thread then ends. If the caller is cancelled, it returns at once, and `work` is done all the same.
    """
    last = thread.submit(work)
    # Only this second item, which waits for nothing, is cancelled with the caller.
    waiting = asyncio.get_running_loop().run_in_executor(thread, last.result)
    thread.shutdown(wait=False)
    return await waiting


async def run_in_own_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`, as `run_last`, in a new thread.

    The threads of the loop's default executor may all be waiting for what `work` ends.
    """
    return await run_last(ThreadPoolExecutor(1, thread_name_prefix="recallog-closing"), work)
