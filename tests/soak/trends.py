"""The verdict on series of samples: which of them grow although they should not.

A trend is the Theil-Sen slope: the median of the slopes between all pairs of samples, which single peaks do not move.
Samples of the warm-up are left out. Memory, descriptors and threads may grow by a fixed amount over all the rest of a
run, so that a longer run finds smaller leaks. Disk may grow with events, but not faster than they do.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

WARM_UP = 0.5
"""The part of a run in which models are loaded and caches fill: SQLite keeps 16 MB of each file, and the process of the
index has five of them open, which become that large after some 30,000 events."""
SAMPLES_MAX = 400
"""More samples of a series are thinned out: the slope looks at all pairs."""
MEMORY_MB = 24.0
"""How much a process may grow after the warm-up: allocators keep some MB, and caches fill slowly."""
INDEX_BYTES_PER_EVENT = 1_500
"""How much the process of the index may grow for each event: its engine has ids and links of all points in memory."""
DESCRIPTORS = 6.0
THREADS = 4.0
DISK_RATIO = 1.3
"""How much more bytes an event may take in the second half of a run than in the first, after the warm-up."""
DISK_SLACK_MB = 48.0
"""Files are written ahead and merged later: by so much the second half may take more in any case."""


@dataclass(frozen=True)
class Trend:
    """A series and its verdict."""

    series: str
    first: float
    """The median of the first tenth of the samples after the warm-up."""
    last: float
    """The median of the last tenth."""
    growth: float
    """What the trend says it grew by, after the warm-up; for disk: bytes per event of the second half by the first."""
    limit: float
    unit: str

    @property
    def grows(self) -> bool:
        """Whether it grew by more than it may."""
        return self.growth > self.limit

    def describe(self) -> str:
        """The series and its figures in one line."""
        samples = f"{self.first:,.1f} -> {self.last:,.1f}"
        return f"{self.series}: {samples}, trend {self.growth:+,.2f}, limit {self.limit:,.2f} {self.unit}"


def growth(series: str, times: Sequence[float], values: Sequence[float], limit: float, unit: str) -> Trend:
    """Whether a series that should stay as it is grew by more than `limit`. The samples of the warm-up are left out."""
    x, y = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    return Trend(series, *_ends(y), _slope(x, y) * float(x[-1] - x[0]), limit, unit)


def per_event(series: str, events: Sequence[float], values: Sequence[float]) -> Trend:
    """Whether bytes on disk grow faster than events: bytes per event in both halves, after the warm-up."""
    x, y = np.asarray(events, dtype=float), np.asarray(values, dtype=float)
    half = int(np.searchsorted(x, (x[0] + x[-1]) / 2))
    first, second = max(_slope(x[:half], y[:half]), 0.0), _slope(x[half:], y[half:])
    slack = DISK_SLACK_MB * (1 << 20) / max(float(x[-1] - x[half]), 1.0)
    ratio = max(second - slack, 0.0) / max(first, 1.0)
    return Trend(series, first, second, ratio, DISK_RATIO, "times the bytes per event of the first half")


def after_warm_up(count: int) -> int:
    """The number of the first sample that is judged."""
    return int(count * WARM_UP)


def _slope(x: "np.typing.NDArray[np.float64]", y: "np.typing.NDArray[np.float64]") -> float:
    if len(x) > SAMPLES_MAX:
        kept = np.linspace(0, len(x) - 1, SAMPLES_MAX).astype(int)
        x, y = x[kept], y[kept]
    first, second = np.triu_indices(len(x), 1)
    runs = x[second] - x[first]
    slopes = (y[second] - y[first])[runs > 0] / runs[runs > 0]
    return float(np.median(slopes)) if len(slopes) else 0.0


def _ends(y: "np.typing.NDArray[np.float64]") -> tuple[float, float]:
    tenth = max(len(y) // 10, 1)
    return float(np.median(y[:tenth])), float(np.median(y[-tenth:]))
