"""One call of a synchronous memory: its task runs in an event loop, and the caller's thread waits for it."""

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from recallog_schemas.errors import StorageError

CLOSED = "the memory is closed; open it again"
_POLL_SECONDS = 0.05
"""How often the event loop checks whether the caller that must execute a callback still waits."""

_current: ContextVar["SyncCall | None"] = ContextVar("recallog_call", default=None)
"""The call for which the running task works."""
_executing: ContextVar[Sequence[object]] = ContextVar("recallog_executing", default=())
"""The owners of the calls whose callbacks this thread executes."""


@dataclass(eq=False, slots=True)
class _Callback:
    """A callback that the caller's thread must execute, and its outcome: a result, or an error."""

    function: Callable[..., Any]
    args: Sequence[Any]
    outcome: SimpleQueue[tuple[Any, BaseException | None]] = field(default_factory=SimpleQueue)


class SyncCall:
    """A call of `function`, which may be a coroutine function."""

    def __init__(
        self, owner: object, function: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] = {}
    ) -> None:
        """`owner` executes calls one event loop at a time. While a callback of one of its calls is executed, all of
        them wait."""
        self._owner: object = owner
        self._function, self._args, self._kwargs = function, args, kwargs
        self._inbox: SimpleQueue[_Callback | None] = SimpleQueue()
        """Callbacks to execute, and None when there is nothing more to wait for."""
        self._task: asyncio.Task[Any] | None = None
        self._is_waiting = True

    # In the event loop

    def start(self, ended: Callable[["SyncCall"], None]) -> None:
        """Begin the task. `ended` is called with this call when the task has ended."""
        _current.set(self)
        self._task = asyncio.get_running_loop().create_task(self._work(), name="recallog-call")
        self._task.add_done_callback(lambda _: ended(self))
        self._task.add_done_callback(lambda _: self.release())

    async def _work(self) -> Any:
        answer = self._function(*self._args, **self._kwargs)
        return await answer if inspect.isawaitable(answer) else answer

    def cancel(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self._task.cancel()

    def execute_in_caller(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The result of `function`, called in the thread of the caller. The event loop is blocked meanwhile."""
        callback = _Callback(function, args)
        self._inbox.put(callback)
        while True:
            try:
                result, error = callback.outcome.get(timeout=_POLL_SECONDS)
            except Empty:
                if self._is_waiting:
                    continue
                result, error = None, asyncio.CancelledError()
            if isinstance(error, Exception):
                raise error
            if error is not None:  # the caller raises a KeyboardInterrupt; here it would end the event loop
                raise asyncio.CancelledError
            return result

    # In any thread

    @property
    def is_waiting(self) -> bool:
        """Whether the caller waits, and can execute callbacks."""
        return self._is_waiting

    def release(self) -> None:
        """Make the caller stop waiting."""
        self._inbox.put(None)

    # In the thread of the caller

    def wait(self, seconds: float | None = None, *, execute: bool = True) -> bool:
        """Wait until the task has ended, at most `seconds`. Returns whether it has ended. Callbacks are executed
        meanwhile or, without `execute`, refused."""
        give_up = None if seconds is None else time.monotonic() + seconds
        while True:
            try:
                callback = self._inbox.get(timeout=None if give_up is None else max(0.0, give_up - time.monotonic()))
            except Empty:
                return False
            if callback is None:
                return True
            if execute:
                self._execute(callback)
            else:
                callback.outcome.put((None, asyncio.CancelledError()))

    def _execute(self, callback: _Callback) -> None:
        token = _executing.set((*_executing.get(), self._owner))
        try:
            callback.outcome.put((callback.function(*callback.args), None))
        except BaseException as error:
            callback.outcome.put((None, error))
            if not isinstance(error, Exception):
                raise
        finally:
            _executing.reset(token)

    def leave(self) -> None:
        """Execute no further callbacks.

        Tasks that the call has begun may refer to it as long as the memory is open. Therefore it no longer refers to
        the owner.
        """
        self._is_waiting = False
        self._owner = None

    def result(self) -> Any:
        """The result of the function. Raises its error, and `StorageError` for a task that was cancelled."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise StorageError(CLOSED)
        try:
            return self._task.result()
        finally:
            del self._task  # an error refers to this frame


def is_executing(owner: object) -> bool:
    """Whether this thread executes a callback of a call of `owner`, whose event loop waits for it."""
    return owner in _executing.get()


def in_thread_of_caller(callback: Callable[..., Any]) -> Callable[..., Any]:
    """`callback` for calls by tasks: it is executed by the thread that waits for the call for which the task works.

    If no thread waits, as for the reactor in the background, it is called at once.
    """

    def run(*args: Any) -> Any:
        call = _current.get()
        if call is None or not call.is_waiting:
            return callback(*args)
        return call.execute_in_caller(callback, args)

    return run
