"""Rebuilds that start beside the live views; some are killed on their way."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import Task, recallog

_UNREACHABLE = 3
_AGAIN_SECONDS = 4.0
_EXPECTED = ("StorageUnavailable",)
"""What a rebuild may end with while Redis and the broker are killed again and again."""


@dataclass
class _Rebuild:
    life_seconds: float
    """It is killed then; never where that is 0."""
    starts_at: float
    """It is not started before that moment."""
    task: Task | None = None
    dies_at: float = math.inf


class Rebuilds:
    """`recallog rebuild` as processes. One that gives up, as a service is away, is run again as an operator would."""

    def __init__(self, folder: Path, settings: Mapping[str, str], findings: list[str]) -> None:
        self._folder = folder
        self._settings = settings
        self._findings = findings
        self.running: list[_Rebuild] = []
        self.started = 0
        self.killed = 0
        self.finished = 0
        self.failed = 0
        """Those that gave up as a service was away."""

    def start(self, life_seconds: float) -> None:
        """Start one; it is killed after so long, or never where that is 0."""
        self.running.append(_Rebuild(life_seconds, time.monotonic()))

    def look(self) -> None:
        """Start and kill those whose time has come, and see what became of the others."""
        now = time.monotonic()
        for rebuild in [*self.running]:
            if rebuild.task is None:
                if now >= rebuild.starts_at:
                    self._start(rebuild)
            elif rebuild.task.code is not None:
                self.running.remove(rebuild)
                self._judge(rebuild, rebuild.task)
            elif now > rebuild.dies_at:
                rebuild.task.kill()

    def _start(self, rebuild: _Rebuild) -> None:
        self.started += 1
        log = self._folder / f"rebuild-{self.started}.log"
        rebuild.task = Task(recallog("rebuild", "--json"), self._folder, log, self._settings)
        rebuild.dies_at = time.monotonic() + rebuild.life_seconds if rebuild.life_seconds else math.inf

    def let_end(self) -> None:
        """Kill none of those that run, or are still to start."""
        for rebuild in self.running:
            rebuild.life_seconds, rebuild.dies_at = 0.0, math.inf

    def kill_all(self) -> None:
        for rebuild in self.running:
            if rebuild.task is not None:
                rebuild.task.kill()

    def _judge(self, rebuild: _Rebuild, task: Task) -> None:
        if task.killed:
            self.killed += 1
        elif task.code == 0:
            self.finished += 1
        elif task.code == _UNREACHABLE and _error_of(task.log) in _EXPECTED:
            self.failed += 1
            self.running.append(_Rebuild(rebuild.life_seconds, time.monotonic() + _AGAIN_SECONDS))
        else:
            self._findings.append(f"a rebuild ended with {task.code}: see {task.log}")


def _error_of(log: Path) -> str:
    """The error that the command named last."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "error" in said:
            return str(said["error"])
    return ""
