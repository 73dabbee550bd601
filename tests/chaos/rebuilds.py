"""Rebuilds that start beside the live views; some are killed on their way."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos.processes import Task, recallog

_UNREACHABLE = 3
_EXPECTED = ("StorageUnavailable",)
"""What a rebuild may end with while Redis and the broker are killed again and again."""


@dataclass(slots=True)
class _Rebuild:
    task: Task
    dies_at: float
    """Never, where it is infinite."""


class Rebuilds:
    """`recallog rebuild` as processes."""

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
        """Start one; it is killed after so long, or never where that is 0: then it is run again until it has ended."""
        self._start(time.monotonic() + life_seconds if life_seconds else math.inf)

    def _start(self, dies_at: float) -> None:
        self.started += 1
        log = self._folder / f"rebuild-{self.started}.log"
        self.running.append(_Rebuild(Task(recallog("rebuild", "--json"), self._folder, log, self._settings), dies_at))

    def look(self) -> None:
        """Kill those whose time has come, and see what became of the others."""
        for rebuild in self.running:
            if rebuild.task.code is None and time.monotonic() > rebuild.dies_at:
                rebuild.task.kill()
        ended = [rebuild for rebuild in self.running if rebuild.task.code is not None]
        self.running = [rebuild for rebuild in self.running if rebuild not in ended]
        for rebuild in ended:
            self._judge(rebuild.task)
            if rebuild.task.code == _UNREACHABLE and rebuild.dies_at == math.inf:
                self._start(rebuild.dies_at)

    def let_end(self) -> None:
        """Kill none of those that run."""
        for rebuild in self.running:
            rebuild.dies_at = math.inf

    def kill_all(self) -> None:
        for rebuild in self.running:
            rebuild.task.kill()

    def _judge(self, task: Task) -> None:
        if task.killed:
            self.killed += 1
        elif task.code == 0:
            self.finished += 1
        elif task.code == _UNREACHABLE and _error_of(task.log) in _EXPECTED:
            self.failed += 1
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
