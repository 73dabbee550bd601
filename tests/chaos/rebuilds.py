"""Rebuilds that run beside the live views; some of them are killed."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import Task, error_of, recallog

_UNREACHABLE = 3
_AGAIN_SECONDS = 4.0
_EXPECTED = ("StorageUnavailable",)
"""Errors with which a rebuild may end while Redis and the broker are killed."""


@dataclass
class _Rebuild:
    life_seconds: float
    """The time after which it is killed; 0 for never."""
    starts_at: float
    """The earliest time of its start."""
    task: Task | None = None
    dies_at: float = math.inf


class Rebuilds:
    """`recallog rebuild` as processes. One that fails because a service is unreachable is started again."""

    def __init__(self, folder: Path, settings: Mapping[str, str], findings: list[str]) -> None:
        self._folder = folder
        self._settings = settings
        self._findings = findings
        self.running: list[_Rebuild] = []
        self.started = 0
        self.killed = 0
        self.finished = 0
        self.failed = 0
        """Those that failed because a service was unreachable."""

    def start(self, life_seconds: float) -> None:
        """Start a rebuild that is killed after `life_seconds`, or never if that is 0."""
        self.running.append(_Rebuild(life_seconds, time.monotonic()))

    def update(self) -> None:
        """Start and kill the rebuilds whose time has come, and record the outcome of the ended ones."""
        now = time.monotonic()
        for rebuild in [*self.running]:
            if rebuild.task is None:
                if now >= rebuild.starts_at:
                    self._start(rebuild)
            elif rebuild.task.code is not None:
                self.running.remove(rebuild)
                self._record_outcome(rebuild, rebuild.task)
            elif now > rebuild.dies_at:
                rebuild.task.kill()

    def _start(self, rebuild: _Rebuild) -> None:
        self.started += 1
        log = self._folder / f"rebuild-{self.started}.log"
        rebuild.task = Task(recallog("rebuild", "--json"), self._folder, log, self._settings)
        rebuild.dies_at = time.monotonic() + rebuild.life_seconds if rebuild.life_seconds else math.inf

    def let_finish(self) -> None:
        """Let the running rebuilds, and those still to start, finish."""
        for rebuild in self.running:
            rebuild.life_seconds, rebuild.dies_at = 0.0, math.inf

    def kill_all(self) -> None:
        for rebuild in self.running:
            if rebuild.task is not None:
                rebuild.task.kill()

    def _record_outcome(self, rebuild: _Rebuild, task: Task) -> None:
        if task.killed:
            self.killed += 1
        elif task.code == 0:
            self.finished += 1
        elif task.code == _UNREACHABLE and error_of(task.log) in _EXPECTED:
            self.failed += 1
            self.running.append(_Rebuild(rebuild.life_seconds, time.monotonic() + _AGAIN_SECONDS))
        else:
            self._findings.append(f"a rebuild ended with {task.code}: see {task.log}")
