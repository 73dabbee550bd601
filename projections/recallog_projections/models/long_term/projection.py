"""The projection of entries, and the rules over several events.

These are decided here, in the order of the ledger, and never by an exception: only its owner changes an entry, equal
texts are kept once, at most five entries of an agent are pinned, and a balance covers the cost. The publisher of such
an event reads the verdict by the event's id.
"""

from collections.abc import Sequence
from typing import ClassVar

from recallog_projections.models.long_term import accounts, capturing, changing, planned, retaining, tables
from recallog_projections.models.long_term.kinds import CAPTURING, CHANGING, MOVED, PLAN, RETAINING
from recallog_projections.models.long_term.planned import KnownPlans
from recallog_projections.rows import Rows
from recallog_schemas import Record, rules

_METERING = "memory.metered"


class EntriesProjection:
    """Fold of what agents keep on purpose. Events that time travel has not reached change nothing."""

    name: ClassVar[str] = "entries"
    version: ClassVar[int] = 6
    kinds = RETAINING | CHANGING | {_METERING, CAPTURING, PLAN, MOVED}
    tables = tables.ALL

    def __init__(self, plans: KnownPlans | None = None) -> None:
        """`plans` decides which entries a plan may archive, from the rows of tiers, which must be folded in the same
        group. Without it, plans archive nothing, and changes of tiers restore nothing."""
        self._plans = plans

    def ignores(self, rows: Rows, record: Record) -> bool:
        return capturing.ignores(rows, record)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if not record.reached:
                continue
            kind = record.event.kind
            if kind in RETAINING:
                retaining.apply(rows, record)
            elif kind == CAPTURING:
                capturing.apply(rows, record)
            elif kind == _METERING:
                accounts.apply(rows, record)
            elif kind == PLAN:
                if self._plans is not None:
                    planned.apply(rows, record, self._plans)
            elif kind != MOVED or (self._plans is not None and rules.rule_of(record.event) > rules.FIRST):
                changing.apply(rows, record)
