"""Waits for what happens in the background."""

import asyncio
from collections.abc import Awaitable, Callable

WAIT_SECONDS = 60.0
"""For a busy machine."""


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition. Fails if it is not true within `WAIT_SECONDS`."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not await holds():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {WAIT_SECONDS:g} s") from None
