"""The number of events that were appended to a ledger, by minute."""

import time
from collections import Counter

from recallog_schemas import limits
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import Activity, ActivityMinute
from recallog_streams.ledgers.ledger import Ledger

_MINUTE_MS = 60_000
_CHUNK = 2_000
"""Records that are read at once, from the end of a partition: a quiet ledger has few records per hour."""


async def activity(ledger: Ledger, minutes: int) -> Activity:
    """The events of the last `minutes`, by the times at which they were appended."""
    now = time.time_ns() // 1_000_000 // _MINUTE_MS
    first, counts, complete = now - minutes + 1, Counter[int](), True
    for partition, end in enumerate(await ledger.ends()):
        least = max(0, end - limits.ACTIVITY_RECORDS)
        until, reached = end, False
        while until > least and not reached:
            start = max(least, until - _CHUNK)
            async for batch in ledger.read(partition, start, until):
                times = [batch.time_of(number) // _MINUTE_MS for number in range(len(batch.records))]
                counts.update(minute for minute in times if minute >= first)
                reached = reached or any(minute < first for minute in times)
            until = start
        complete = complete and (reached or least == 0)
    shown = [
        ActivityMinute(at=moment_of(minute * _MINUTE_MS * 1_000), events=counts[minute])
        for minute in range(first, now + 1)
    ]
    return Activity(minutes=tuple(shown), complete=complete)
