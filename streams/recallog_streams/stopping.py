"""Being told to stop, for work that waits for others."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Stopping:
    """Whether somebody has said so, and waiting that ends when somebody does."""

    def __init__(self) -> None:
        self._said = asyncio.Event()

    def __bool__(self) -> bool:
        return self._said.is_set()

    def say(self) -> None:
        """Stop."""
        self._said.set()

    async def pause(self, seconds: float) -> None:
        """Wait for so long, or until it is said."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._said.wait(), seconds)

    async def unless(self, work: Coroutine[Any, Any, Answer]) -> Answer | None:
        """The result of `work`, which is given up, with None, where it is said before."""
        working, stopping = asyncio.create_task(work), asyncio.create_task(self._said.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return working.result() if working.done() else None
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)
