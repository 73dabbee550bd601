"""What all benchmarks share: measures with goals, the setup of a subject, and timing that tolerates a noisy machine."""

import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

Side = TypeVar("Side")


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound that a value should meet."""

    sign: str
    """"≥" or "≤"."""
    bound: float

    def met(self, value: float) -> bool:
        return value >= self.bound if self.sign == "≥" else value <= self.bound

    def __str__(self) -> str:
        return f"{self.sign} {self.bound:,g}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the report."""

    name: str
    value: float
    unit: str
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """The arguments of every subject."""

    folder: Path
    """An empty folder on a real disk, removed afterwards."""
    quick: bool
    report: Callable[[str], None]
    """Prints a line of progress."""

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @property
    def repetitions(self) -> int:
        return self.size(5, 3)


async def interleaved(
    setup: Setup, what: str, sides: Mapping[Side, Callable[[], Awaitable[float]]]
) -> dict[Side, list[float]]:
    """The results of each side. The sides run in turn, A B A B …, so that other load affects both alike."""
    taken: dict[Side, list[float]] = {side: [] for side in sides}
    for repetition in range(setup.repetitions):
        setup.report(f"{what}: {repetition + 1} of {setup.repetitions}")
        for side, run in sides.items():
            taken[side].append(await run())
    return taken


def ratio(upper: list[float], lower: list[float]) -> float:
    """The median of the ratios of values measured one after the other."""
    return median(a / b for a, b in zip(upper, lower, strict=True))


async def seconds(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def percentiles(name: str, taken: list[float]) -> list[Measure]:
    """p50 and p99 of `taken` seconds, in milliseconds."""
    cuts = quantiles(taken, n=100)
    return [Measure(f"{name} p50", cuts[49] * 1e3, "ms"), Measure(f"{name} p99", cuts[98] * 1e3, "ms")]


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Exclude the objects of the benchmark itself, for example 100,000 events, from garbage collection.

    Traversing them would count as time of what is measured.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
