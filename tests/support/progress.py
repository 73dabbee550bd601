"""The progress of a long run of random tests on stderr."""

import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_SECONDS = 10.0

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


class RunProgress:
    """A bar with rate and time left on a terminal; otherwise a line every ten seconds.

    `unit` names what is counted, for example seeds, and `failed` how to describe the failed ones.
    """

    def __init__(self, total: int, unit: str, failed: str) -> None:
        self._total = total
        self._unit = unit
        self._failed = failed
        self._done = 0
        self._began = self._next_line = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(unit, total=total, rate="0")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def line(self, text: str) -> None:
        """Print a line."""
        console.print(text, markup=False)

    def advance(self, count: int, failures: int) -> None:
        """Show that so many more are done, and how many of all have failed."""
        self._done += count
        now = time.monotonic()
        per_second = self._done / max(0.001, now - self._began)
        rate = f"{per_second:,.{0 if per_second >= 100 else 1}f}"
        failed = f", {failures:,} {self._failed}" if failures else ""
        self._bar.update(self._task, completed=self._done, rate=rate, description=f"{self._unit}{failed}")
        if not console.is_terminal and now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            left = (self._total - self._done) / per_second
            self.line(f"{self._done:,}/{self._total:,} {self._unit}{failed}, {rate}/s, {left:,.0f} s left")
