"""Rate limits: a token bucket for each caller and kind of call."""

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from recallog_schemas.errors import RateLimited

_BUCKETS_MAX = 10_000
"""Maximum number of buckets. The least recently used one is dropped."""
_MINUTE_SECONDS = 60.0
_TICKS_PER_SECOND = 20
"""Calls of one tick are counted together, which bounds the size of a bucket."""


@dataclass(slots=True)
class _Bucket:
    """The calls of the last minute."""

    total: int = 0
    calls: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    """The end of each tick with calls, and how many it has."""

    def refill(self, now: float) -> None:
        while self.calls and self.calls[0][0] + _MINUTE_SECONDS <= now:
            self.total -= self.calls.popleft()[1]

    def take(self, now: float) -> None:
        tick = math.ceil(now * _TICKS_PER_SECOND) / _TICKS_PER_SECOND
        before = self.calls.pop()[1] if self.calls and self.calls[-1][0] == tick else 0
        self.calls.append((tick, before + 1))
        self.total += 1


class RateLimits:
    """Token buckets of this process. A full bucket holds the calls of one minute. Each token returns one minute after
    it was taken, so no window of one minute has more calls than the limit."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], _Bucket] = OrderedDict()

    def take(self, caller: str, kind: str, *, calls_per_minute: int) -> None:
        """Count one call. Raises `RateLimited` if the bucket of this caller and kind is empty."""
        now = self._clock()
        bucket = self._buckets.setdefault((caller, kind), _Bucket())
        self._buckets.move_to_end((caller, kind))
        if len(self._buckets) > _BUCKETS_MAX:
            self._buckets.popitem(last=False)
        bucket.refill(now)
        if bucket.total >= calls_per_minute:
            seconds = bucket.calls[0][0] + _MINUTE_SECONDS - now
            message = f"more than {calls_per_minute:,} calls in a minute; try again in {seconds:.1f} s"
            raise RateLimited(message, retry_after_seconds=seconds)
        bucket.take(now)
