"""The pace of reactors: the rate at which models are called."""

import asyncio


class Pace:
    """Lets at most `per_second` callers pass per second, one after the other; None means no limit."""

    def __init__(self, per_second: float | None) -> None:
        self._between_seconds = 0.0 if per_second is None else 1 / per_second
        self._next = 0.0
        """The time at which the next caller may pass, on the clock of the event loop."""

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        if not self._between_seconds:
            return
        now = asyncio.get_running_loop().time()
        at = max(self._next, now)
        self._next = at + self._between_seconds
        await asyncio.sleep(at - now)
