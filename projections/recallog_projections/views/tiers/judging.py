"""What a plan may still change: entries of its agent that nothing has touched since the planner read them.

The view of entries asks this for what a plan archives (`entries.planned.Plans`), and the view of tiers for its moves.
"""

from collections.abc import Iterable

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey
from recallog_projections.views import uses
from recallog_projections.views.entries import tables as entries
from recallog_projections.views.tiers import tables
from recallog_projections.views.tiers.tables import TierRow
from recallog_schemas import Event


def needs(rows: Rows, space: str, id_: str) -> Iterable[RowKey]:
    """The rows that `untouched` reads, if the verdict on the entry is loaded."""
    ref = rows.get(entries.IDS, space, "", id_)
    if ref is not None and ref.status == entries.LIVE:
        key = entries.key_of(ref.offset)
        yield RowKey(tables.ROWS.name, space, ref.owner, key)
        yield RowKey(uses.ROWS.name, space, ref.owner, key)


def untouched(rows: Rows, event: Event, id_: str) -> TierRow | None:
    """The row of an entry that the plan in `event` may change; None if it may not."""
    ref = rows.get(entries.IDS, event.space, "", id_)
    if ref is None or ref.status != entries.LIVE or ref.owner != event.agent:
        return None
    key, seen = entries.key_of(ref.offset), event.payload["seen"]
    row = rows.get(tables.ROWS, event.space, ref.owner, key)
    use = rows.get(uses.ROWS, event.space, ref.owner, key)
    if row is None or row.touched > seen or (use is not None and use.offset > seen):
        return None
    return row


def may_archive(rows: Rows, event: Event, id_: str) -> bool:
    """Whether the plan in `event` may archive an entry."""
    row = untouched(rows, event, id_)
    return row is not None and not row.exempt
