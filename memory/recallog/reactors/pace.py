"""The pace of reactors: how often models are called."""

import asyncio


class Pace:
    """Lets at most `per_second` callers pass a second, one after the other; None: all at once."""

    def __init__(self, per_second: float | None) -> None:
        self._between_seconds = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0
        """When the next caller may pass, in the event loop's time."""

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        if not self._between_seconds:
            return
        now = asyncio.get_running_loop().time()
        at = max(self._next, now)
        self._next = at + self._between_seconds
        await asyncio.sleep(at - now)
