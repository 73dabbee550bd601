"""Copies of the topic to a folder, one after the other during the run; some are killed, some meet a full disk."""

import random
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from chaos.full_disk import fill_disk, free_disk
from chaos.processes import Task, error_of, recallog

PAUSE_SECONDS = 40.0
_LIFE_SECONDS = (1.0, 8.0)
_FULL_SECONDS = 3.0
_EXPECTED = ("StorageUnavailable",)
"""Errors with which a copy may end while Redis and the broker are killed, and on a full disk."""
_VALUES = (
    "SELECT spaces.name, events.value FROM events JOIN spaces ON spaces.number = events.space ORDER BY events.offset"
)


class Copies:
    """`recallog copy` as processes: each run continues where the one before has ended."""

    def __init__(self, folder: Path, settings: Mapping[str, str], findings: list[str], rng: random.Random) -> None:
        self.home = folder / "copy"
        self._folder = folder
        self._settings = settings
        self._findings = findings
        self._rng = rng
        self._task: Task | None = None
        self._next = time.monotonic() + PAUSE_SECONDS
        self._interrupt_at = 0.0
        self._interrupt = ""
        self.started = 0
        self.finished = 0
        self.killed = 0
        self.full = 0
        """Those whose disk was full."""
        self.failed = 0
        """Those that ended with an error, because a service was unreachable or the disk was full."""

    @property
    def running(self) -> bool:
        return self._task is not None

    def update(self, *, start: bool = True) -> None:
        """Start a copy whose time has come, interrupt it, and record its outcome."""
        now = time.monotonic()
        if self._task is None:
            if start and now >= self._next:
                self._start(now)
        elif self._task.code is not None:
            self._record_outcome(self._task, now)
        elif self._interrupt and now >= self._interrupt_at:
            self._interrupt_task(self._task, now)

    def _start(self, now: float) -> None:
        self.started += 1
        log = self._folder / f"copy-{self.started}.log"
        command = recallog("copy", self._settings["RECALLOG_LEDGER"], str(self.home), "--json")
        self._task = Task(command, self._folder, log, self._settings)
        self._interrupt = self._rng.choice(("", "kill", "full"))
        self._interrupt_at = now + self._rng.uniform(*_LIFE_SECONDS)

    def _interrupt_task(self, task: Task, now: float) -> None:
        if self._interrupt == "kill":
            task.kill()
        elif self._interrupt == "full":
            fill_disk(task.pid)
            self.full += 1
            self._interrupt, self._interrupt_at = "free", now + _FULL_SECONDS
            return
        else:
            free_disk(task.pid)
        self._interrupt = ""

    def _record_outcome(self, task: Task, now: float) -> None:
        if task.killed:
            self.killed += 1
        elif _has_report(task.log):
            self.finished += 1
        else:
            self.failed += 1
            if error_of(task.log) not in _EXPECTED:
                self._findings.append(f"a copy ended with {task.code}: see {task.log}")
        self._task, self._next = None, now + PAUSE_SECONDS

    def kill(self) -> None:
        if self._task is not None:
            self._task.kill()


def _has_report(log: Path) -> bool:
    """Whether a copy has reached the end of the topic. Its exit code is 1 because contradictions are left out."""
    return '"records":' in log.read_text(errors="replace")


def copied_values(home: Path) -> dict[str, list[bytes]]:
    """The values of the records of a copy by space, in order, read by SQLite alone."""
    found: dict[str, list[bytes]] = {}
    with closing(sqlite3.connect(f"file:{home / 'ledger.db'}?mode=ro", uri=True)) as file:
        for space, value in file.execute(_VALUES):
            found.setdefault(space, []).append(value)
    return found
