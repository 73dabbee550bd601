"""Entries by time and use: the temporal channel of presets. Pure."""

import math
from collections.abc import Iterable, Mapping

from recallog_projections.models.long_term.tables import EntryRow

_DAY = 86_400 * 1_000_000
_MOST_USED = 2.0


def rank_by_recency(rows: Iterable[EntryRow], accesses: Mapping[int, int], now: int) -> list[int]:
    """The offsets of entries, the highest `worth` first; of equal ones the newer first.

    `accesses` has the number of uses of each entry by its offset; an entry without a number was never used. `now` is in
    microseconds since 1970.
    """
    scored = [(-worth(row, accesses.get(row.offset, 0), now), -row.offset) for row in rows]
    return [-offset for _, offset in sorted(scored)]


def worth(row: EntryRow, accesses: int, now: int) -> float:
    """1 / max(1, days) * min(ln(accesses + 1) + .5, 2) * confidence, where days is the age of the entry's text."""
    days = max(1.0, (now - row.since_at) / _DAY)
    return min(math.log(accesses + 1) + 0.5, _MOST_USED) * row.confidence / days
