"""The thread of a synchronous memory. It runs the event loop that executes the calls of all other threads."""

import asyncio
import atexit
import os
import threading
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import thread as _executors  # noqa: F401 - registers its end first
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar
from weakref import WeakSet

from recallog.sync.call import CLOSED, SyncCall, is_executing
from recallog_schemas import limits
from recallog_schemas.errors import StorageError

Item = TypeVar("Item")

_END = object()


class LoopThread:
    """An event loop in a separate thread, which the first call starts. Any number of threads may call at the same
    time."""

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        """`close` closes everything that calls have opened. It is the last call."""
        self._close = close
        self._running: _RunningLoop | None = None
        self._closed = False
        # Reentrant, since a garbage collection inside it may end an iterator.
        self._lock = threading.RLock()

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of `function`, called in the event loop. An awaitable is awaited, and an asynchronous iterator
        becomes an iterator for this thread.

        A KeyboardInterrupt cancels the call. It is raised when the call has ended, or after
        `limits.CANCELLED_CALL_SECONDS`. Raises `StorageError` if the memory is closed, and RuntimeError if the event
        loop waits for this thread.
        """
        call = SyncCall(self, function, args, kwargs)
        try:
            running = self._submit(call)
            try:
                call.wait()
            except BaseException:
                running.cancel(call)
                call.wait(limits.CANCELLED_CALL_SECONDS, execute=False)
                raise
        finally:
            call.leave()
        answer = call.result()
        return self._iterate(answer) if isinstance(answer, AsyncIterator) else answer

    def close(self) -> None:
        """Close the memory and end the thread. Calls in progress are cancelled. A second call, and a call in a forked
        child, have no effect.

        Raises `StorageError` after `limits.SYNC_CLOSE_SECONDS`, if a call in progress does not end.
        """
        call = SyncCall(self, self._close)
        with self._lock:
            if self._closed or (self._running is not None and not self._running.is_of_this_process):
                return
            running = self._submit(call, last=True)
        try:
            has_ended = call.wait(limits.SYNC_CLOSE_SECONDS)
        finally:
            running.stop()
        if not running.join(limits.CANCELLED_CALL_SECONDS) or not has_ended:
            running.release()
            raise StorageError(
                f"the memory has not closed within {limits.SYNC_CLOSE_SECONDS:g} s, since something in its thread does "
                "not end, such as a reactor of your own that blocks. All that was published is stored; files and "
                "connections are closed when the process ends"
            )
        call.result()

    def _submit(self, call: SyncCall, *, last: bool = False) -> "_RunningLoop":
        """Let the event loop begin a call. With `last`, no further calls are accepted."""
        if is_executing(self):
            raise RuntimeError(
                "a callback cannot call the memory that has called it: the memory waits for it to return"
            )
        with self._lock:
            if self._closed:
                raise StorageError(CLOSED)
            if self._running is None:
                self._running = _RunningLoop(self._close)
            self._running.submit(call)
            self._closed = last
            return self._running

    def _iterate(self, stream: AsyncIterator[Item]) -> Iterator[Item]:
        try:
            while (item := self.run(anext, stream, _END)) is not _END:
                yield item
        finally:
            if isinstance(stream, AsyncGenerator) and self._running is not None:
                self._running.begin(stream.aclose)

    def __del__(self) -> None:
        if self._running is not None and not self._closed and self._running.is_of_this_process:
            self._running.close_soon()
            _warn(self)


class _RunningLoop:
    """The event loop and its thread, while it runs."""

    def __init__(self, close: Callable[[], Awaitable[None]]) -> None:
        self._close = close
        self._loop = asyncio.new_event_loop()
        self._calls: set[SyncCall] = set()
        self._background: set[asyncio.Future[None]] = set()
        self._end = self._loop.create_future()
        """Done when the thread must end."""
        self._stopped = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="recallog-memory", daemon=True)
        self._thread.start()
        _loops.add(self)

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child, which does not have this thread."""
        return self._process == os.getpid()

    def submit(self, call: SyncCall) -> None:
        """Begin a call. It begins before a later `stop`."""
        if threading.get_ident() == self._thread.ident:
            raise RuntimeError(
                "a call in the memory's own thread would wait for itself: reactors use the memory that `attach` is "
                "called with"
            )
        self._calls.add(call)
        try:
            self._soon(call.start, self._calls.discard)
        except StorageError:
            self._calls.discard(call)
            raise

    def cancel(self, call: SyncCall) -> None:
        """Cancel a call."""
        with suppress(StorageError):
            self._soon(call.cancel)

    def begin(self, function: Callable[[], Awaitable[None]]) -> None:
        """Call a coroutine function without waiting for its end. It may be called in this thread, and in a garbage
        collection."""

        def start() -> None:
            task = asyncio.ensure_future(function(), loop=self._loop)
            self._background.add(task)
            task.add_done_callback(self._background.discard)

        with suppress(StorageError):
            self._soon(start)

    def close_soon(self) -> None:
        """Close the memory and stop, without waiting for the end."""

        async def work() -> None:
            try:
                await self._close()
            finally:
                self.stop()

        self.begin(work)

    def stop(self) -> None:
        """Cancel the calls in progress, and end the thread."""

        def end() -> None:
            if not self._end.done():
                self._end.set_result(None)

        self._stopped = True
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(end)

    def join(self, seconds: float) -> bool:
        """Wait for the end of the thread. Returns whether it has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def release(self) -> None:
        """Make all callers stop waiting, if the thread does not end."""
        for call in list(self._calls):
            call.release()

    def _soon(self, function: Callable[..., object], *args: object) -> None:
        if not self.is_of_this_process:
            raise StorageError("the memory was opened by the parent of this process; open it again after the fork")
        if self._stopped:
            raise StorageError(CLOSED)
        try:
            self._loop.call_soon_threadsafe(function, *args, context=copy_context())
        except RuntimeError:
            raise StorageError(CLOSED) from None

    def _run(self) -> None:
        try:
            while not self._end.done():
                with suppress(KeyboardInterrupt, SystemExit):  # raised by a task: its caller raises it
                    self._loop.run_until_complete(self._end)
            self._finish()
        finally:
            self._loop.close()
            self.release()

    def _finish(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=limits.CANCELLED_CALL_SECONDS))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())


_loops: WeakSet[_RunningLoop] = WeakSet()


def _warn(source: object) -> None:
    message = "a memory of recallog.sync was not closed: open it in a `with` statement, or call close()"
    warnings.warn(message, ResourceWarning, stacklevel=1, source=source)


def _close_at_exit() -> None:
    """Close the memories that were not closed, while their tasks can still use other threads."""
    for running in list(_loops):
        if running.is_of_this_process and not running.join(0):
            running.close_soon()
            running.join(limits.CANCELLED_CALL_SECONDS)
            _warn(running)


# Functions of `atexit` run when executors no longer accept work. The executors of the standard library are ended by
# this private function too; the function that was registered last is called first.
getattr(threading, "_register_atexit", atexit.register)(_close_at_exit)
