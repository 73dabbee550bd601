"""An event loop whose clock jumps to the next timer, so that code that waits for hours is tested quickly."""

import asyncio
import concurrent.futures
import random
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar, TypeVar
from unittest import mock

from recallog_projections import threads
from recallog_projections.sqlite import file as sqlite_file

Result = TypeVar("Result")


class VirtualTime(asyncio.SelectorEventLoop):
    """An event loop for code that waits for timers only, not for other processes."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        really = self._selector.select  # type: ignore[attr-defined]

        def select(timeout: float | None) -> Any:
            if timeout is None:
                raise AssertionError("all tasks wait, and no timer is set")
            self._now += max(0.0, timeout)
            return really(0)

        self._selector.select = select  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now


class QueueExecutor(concurrent.futures.Executor):
    """Replaces an executor of one thread: its work waits in a queue until `OneThread` runs it."""

    def __init__(self, max_workers: int = 1, thread_name_prefix: str = "") -> None:
        self._queue: deque[tuple[concurrent.futures.Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Any]":
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._queue.append((future, partial(fn, *args, **kwargs)))
        return future

    def work_until(self, last: "concurrent.futures.Future[Any]") -> None:
        """Run what was submitted, up to and including `last`, in order."""
        while not last.done():
            future, work = self._queue.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - the future raises it
                future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Does nothing: there is no thread."""


class OneThread(VirtualTime):
    """A virtual loop that also runs the work of threads, each after a random virtual delay: a seed repeats a run.

    While it runs, `time.monotonic` is its clock, and `time.sleep` moves it. It knows the modules that start threads.
    """

    MODULES: ClassVar = (sqlite_file, threads)

    def __init__(self, rng: random.Random, work_seconds_max: float = 0.02) -> None:
        super().__init__()
        self._rng = rng
        self._work_seconds_max = work_seconds_max

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> "asyncio.Future[Any]":  # type: ignore[override]
        queue = QueueExecutor() if executor is None else executor
        future = queue.submit(func, *args)
        self.call_later(self._rng.random() * self._work_seconds_max, queue.work_until, future)
        return asyncio.wrap_future(future, loop=self)

    def sleep(self, seconds: float) -> None:
        """`time.sleep` of work that runs in a thread."""
        self._now += seconds

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`, with this loop, its clock and no threads."""
        with ExitStack() as patched:
            patched.enter_context(mock.patch.object(time, "monotonic", self.time))
            patched.enter_context(mock.patch.object(time, "sleep", self.sleep))
            for module in self.MODULES:
                patched.enter_context(mock.patch.object(module, "ThreadPoolExecutor", QueueExecutor))
            with asyncio.Runner(loop_factory=lambda: self) as runner:
                return runner.run(work)


def run_in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(work)
