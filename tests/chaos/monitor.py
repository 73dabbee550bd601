"""Samples of the workers' health during a run: their lag, and whether they report problems."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.processes import Worker

_SECONDS = 0.5


@dataclass(slots=True)
class HealthSamples:
    """The last sample, and counts of all samples."""

    lag: int | None = None
    """The sum over all assigned partitions; None if it is unknown."""
    unhealthy: int = 0
    """Samples in which a worker reported problems."""
    total: int = 0


class HealthMonitor:
    """Samples the health of all workers twice per second."""

    def __init__(self, workers: Mapping[str, Worker]) -> None:
        self._workers = workers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.samples = HealthSamples()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(_SECONDS):
            self.sample()

    def sample(self) -> None:
        """Read the health of each worker that answers."""
        answers = {name: health for name, worker in self._workers.items() if (health := worker.health()) is not None}
        self.samples.lag = _lag(answers)
        self.samples.total += 1
        self.samples.unhealthy += any(not health["healthy"] for health in answers.values())


def _lag(answers: Mapping[str, Mapping[str, Any]]) -> int | None:
    lags = [part["lag"] for health in answers.values() for part in health["partitions"]]
    return sum(lags) if lags and None not in lags else None
