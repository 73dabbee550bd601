"""A clock that stands still while the machine does: what a program does in time cannot be judged by any other clock."""

import threading
import time

_TICK_SECONDS = 0.05
_LATE_SECONDS = 0.2
"""A thread that is woken later than this was kept from running."""


class RunningTime:
    """The seconds in which this machine ran this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked_at = time.monotonic()
        self._stood_still = 0.0
        threading.Thread(target=self._look, name="running-time", daemon=True).start()

    def _look(self) -> None:
        while True:
            time.sleep(_TICK_SECONDS)
            self.now()

    def now(self) -> float:
        """The time, from an arbitrary begin."""
        with self._lock:
            now = time.monotonic()
            passed, self._looked_at = now - self._looked_at, now
            if passed > _LATE_SECONDS:
                self._stood_still += passed
            return now - self._stood_still


_running_time = RunningTime()
running_seconds = _running_time.now
