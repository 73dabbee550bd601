"""A stop signal for tasks that wait for other services."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from recallog_projections.concurrency import cancel_all

Result = TypeVar("Result")


class StopSignal:
    """A flag that is set once, and waits that end as soon as it is set."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        """Whether it is set."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask the work to stop."""
        self._event.set()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, or until the signal is set."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)

    async def unless(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """The result of `work`; None, with `work` cancelled, if the signal is set first."""
        working, stopping = asyncio.create_task(work), asyncio.create_task(self._event.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            await cancel_all(working, stopping)
