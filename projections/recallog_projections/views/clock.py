"""Clock view: what time it is in each space, by its events.

The time of a space is the `at` of its newest event in the order of the ledger. It is not the latest `at`: one event of
a producer whose clock is wrong would otherwise age everything until the real time has caught up.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Event, Record, kinds, timestamps, triggers


class Now(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The time of a space."""

    at: int
    """Microseconds since 1970."""


NOW = Table("clock.now", Now, write_only=True)
"""At (space)."""


class Clock:
    """Fold of the events of a space, including bookkeeping, into its time.

    Events that the memory writes by itself do not move it, or reading a space of last year would age it by a year:
    counts of reads, and answers to triggers.
    """

    name: ClassVar[str] = "clock"
    version: ClassVar[int] = 1
    ends_runs: ClassVar[Sequence[str]] = ()
    independent = True
    tables = (NOW,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in reversed(run):
            if record.reached and sets_time(record.event):
                rows.put(NOW, Now(timestamps.micros(record.event.at)), record.event.space)
                return


def sets_time(event: Event) -> bool:
    """Whether the time of the space follows from an event: the memory has not written it by itself."""
    return kinds.kind_of(event.kind).moves_time and triggers.parse(event.causation_id) is None
