"""Calls of a program's own functions, such as external sources and rerankers, which may never end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from inspect import iscoroutinefunction
from typing import Any

CALLS_MAX = 64
"""Calls of a function that run in threads at the same time. A call that never ends counts, although no query waits."""


class Unanswered(Exception):
    """A function has not answered in time, or is not called because too many calls of it have not ended."""


async def call_within(seconds: float, thread: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `function`, which may be `async`; otherwise it is called in a daemon thread with the name `thread`.

    Raises `Unanswered` after `seconds`, and at once while threads with this name have `CALLS_MAX` calls. Raises what
    `function` raises.
    """
    if [each.name for each in threading.enumerate()].count(thread) >= CALLS_MAX:
        raise Unanswered(f"{CALLS_MAX} earlier calls have not ended")
    try:
        async with asyncio.timeout(seconds) as timeout:
            found = function(*arguments) if iscoroutinefunction(function) else await _run(thread, function, *arguments)
            return await found if isinstance(found, Awaitable) else found
    except TimeoutError as error:
        if not timeout.expired():  # the function raised it
            raise
        raise Unanswered(f"no answer within {seconds:g} s") from error


async def _run(thread: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `function` in a thread. Python does not wait for a daemon thread before it ends, as it does for an
    executor."""
    result: Future[Any] = Future()
    result.set_running_or_notify_cancel()  # a query that has ended does not cancel it

    def call() -> None:
        try:
            result.set_result(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - the query gets it
            # A future that is awaited does not accept a `StopIteration`.
            result.set_exception(RuntimeError(repr(error)) if isinstance(error, StopIteration) else error)

    threading.Thread(target=copy_context().run, args=(call,), name=thread, daemon=True).start()
    return await asyncio.wrap_future(result)
