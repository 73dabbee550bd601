"""An event loop whose clock jumps to the next timer, so that code that waits for hours is tested quickly."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

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


def run_in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=VirtualTime) as runner:
        return runner.run(work)
