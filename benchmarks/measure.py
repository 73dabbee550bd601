"""What a benchmark is made of: measures with goals, one setup for all subjects, and clocks for a noisy machine."""

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
    """A bound that a value should keep."""

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
    """What every subject is given."""

    folder: Path
    """Empty, on a real disk, removed afterwards."""
    quick: bool
    say: Callable[[str], None]
    """Tells the person who waits what is going on."""

    def size(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    @property
    def repetitions(self) -> int:
        return self.size(5, 3)


async def interleaved(
    setup: Setup, what: str, sides: Mapping[Side, Callable[[], Awaitable[float]]]
) -> dict[Side, list[float]]:
    """What each side returned, A B A B …: a neighbour's load then falls on both, and their ratio stands."""
    taken: dict[Side, list[float]] = {side: [] for side in sides}
    for repetition in range(setup.repetitions):
        setup.say(f"{what}: {repetition + 1} of {setup.repetitions}")
        for side, run in sides.items():
            taken[side].append(await run())
    return taken


def ratio(upper: list[float], lower: list[float]) -> float:
    """The median of the ratios of neighbours in time."""
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
def set_aside() -> Iterator[None]:
    """Keep the garbage collector from walking what the benchmark itself has made: no user has 100,000 events lying
    around, and its walks over them would be charged to what is measured."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
