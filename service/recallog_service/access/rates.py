"""Rate limits: a token bucket for each caller and kind of call."""

import time
from collections import OrderedDict
from collections.abc import Callable

from recallog_schemas.errors import RateLimited

_BUCKETS_MAX = 10_000
"""Of more buckets, the one that was used longest ago is dropped."""
_MINUTE_SECONDS = 60.0


class RateLimits:
    """Token buckets of this process. A full bucket has the calls of one minute, and fills evenly within a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        """How many calls each has left, and when that was so."""

    def take(self, caller: str, kind: str, *, calls_per_minute: int) -> None:
        """Count one call. Raises `RateLimited` if the bucket of this caller and kind is empty."""
        now, per_second = self._clock(), calls_per_minute / _MINUTE_SECONDS
        left, at = self._buckets.pop((caller, kind), (float(calls_per_minute), now))
        left = min(float(calls_per_minute), left + (now - at) * per_second)
        is_empty = left < 1
        self._buckets[caller, kind] = (left if is_empty else left - 1), now
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        if is_empty:
            seconds = (1 - left) / per_second
            message = f"more than {calls_per_minute:,} calls in a minute; try again in {seconds:.1f} s"
            raise RateLimited(message, retry_after_seconds=seconds)
