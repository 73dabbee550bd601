"""A process of the load: it acts at a rate until it is asked to stop, and counts what it did."""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from recallog_schemas.errors import RecallogError

LEAKS = ("memory", "descriptors", "threads")
_LEAKS_PER_SECOND = 2
_LEAKED_BYTES = 2 << 20
_REPORT_SECONDS = 1.0
_ERRORS_SHOWN = 20


class Load:
    """The actions of one process. SIGTERM ends `run`."""

    def __init__(self, report: Path, per_second: float, leak: str = "") -> None:
        self._report = report
        self._pause = 1 / per_second
        self._leak = leak
        self._leaked: list[Any] = []
        self._begun = self._leaked_at = self._reported_at = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.figures: dict[str, Any] = {}
        """What the process reports beside its counts."""
        self._errors: list[str] = []

    async def run(self, act: Callable[[int], Awaitable[None]]) -> None:
        """Call `act` with 0, 1, 2 and so on at the rate. An error of Recallog is counted."""
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        number = 0
        while not stopping.is_set():
            try:
                await act(number)
            except RecallogError as error:
                self.failed(error)
            number += 1
            self.counts["actions"] = number
            self._tick()
            # A slow action is not caught up with: the rate is a limit.
            await _wait(stopping, self._pause)
        self.write()

    def failed(self, error: Exception) -> None:
        """Count an error. The first ones are reported."""
        self.counts["errors"] += 1
        if len(self._errors) < _ERRORS_SHOWN:
            seconds = time.monotonic() - self._begun
            self._errors.append(f"after {seconds:,.0f} s: {type(error).__name__}: {error}")

    def write(self) -> None:
        """Report the counts."""
        report = {"counts": self.counts, "errors": self._errors, **self.figures}
        aside = self._report.with_suffix(".new")
        aside.write_text(json.dumps(report))
        aside.replace(self._report)

    def _tick(self) -> None:
        now = time.monotonic()
        if self._leak and now - self._leaked_at > 1 / _LEAKS_PER_SECOND:
            self._leaked_at = now
            self._leaked.append(_leaked(self._leak))
        if now - self._reported_at > _REPORT_SECONDS:
            self._reported_at = now
            self.write()


async def _wait(stopping: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return


def _leaked(what: str) -> object:
    if what == "memory":
        return bytearray(os.urandom(1) * _LEAKED_BYTES)
    if what == "descriptors":
        return os.open(os.devnull, os.O_RDONLY)
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread


def arguments() -> tuple[Path, float, list[str]]:
    """The command line of a process of the load: its report, its rate, and what it needs besides."""
    return Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
