"""What the workers say of themselves while they are struck: how far behind they are, and whether they are well."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.processes import Worker

_SECONDS = 0.5


@dataclass(slots=True)
class Seen:
    """As of the last look."""

    lag: int | None = None
    """Offsets to decide, of all partitions that somebody has; None while nobody knows."""
    unwell_looks: int = 0
    """Looks in which some worker that answered said that it was not well."""
    looks: int = 0


class Watch:
    """Asks all workers twice a second."""

    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self._workers = workers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.seen = Seen()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            self.look()

    def look(self) -> None:
        """Ask each worker that can answer."""
        answers = {name: health for name, worker in self._workers.items() if (health := worker.health()) is not None}
        self.seen.lag = _lag(answers)
        self.seen.looks += 1
        self.seen.unwell_looks += any(not health["healthy"] for health in answers.values())


def _lag(answers: Mapping[str, Mapping[str, Any]]) -> int | None:
    lags = [part["lag"] for health in answers.values() for part in health["partitions"]]
    return sum(lags) if lags and None not in lags else None
