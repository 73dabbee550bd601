"""What a plan may still change: entries of its agent that have not changed since the planner read them.

The planner states for each entry how many changes and reads it knew. These numbers count only events of the
space, so that a copy of the ledger has the same ones, in any partition.

The view of entries uses this for archivals (`entries.planned.KnownPlans`), and the view of tiers for its
moves.
"""

from collections.abc import Mapping
from typing import Any

from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term import uses
from recallog_projections.models.long_term.uses import UseRow
from recallog_projections.models.tiers import tables
from recallog_projections.models.tiers.tables import TierRow
from recallog_projections.rows import Rows
from recallog_schemas import Event, limits


def changes_of(row: TierRow, use: UseRow | None) -> int:
    """How many changes and reads of an entry there were: each further one raises it, up to `limits.INTEGER_MAX`."""
    return min(limits.INTEGER_MAX, row.changes + (0 if use is None else use.accesses))


def find_untouched(rows: Rows, event: Event, planned: Mapping[str, Any]) -> TierRow | None:
    """The row of an entry that the plan in `event` may change; None if it may not.

    `planned` is the move or the archival of the entry in its payload.
    """
    ref = rows.get(entries.IDS, event.space, "", planned["id"])
    if ref is None or ref.status != entries.LIVE or ref.owner != event.agent:
        return None
    key = entries.key_of(ref.offset)
    row = rows.get(tables.ROWS, event.space, ref.owner, key)
    use = rows.get(uses.ROWS, event.space, ref.owner, key)
    return row if row is not None and _is_as_planned(row, use, event, planned) else None


def may_archive(rows: Rows, event: Event, planned: Mapping[str, Any]) -> bool:
    """Whether the plan in `event` may archive an entry."""
    row = find_untouched(rows, event, planned)
    return row is not None and not row.exempt


def _is_as_planned(row: TierRow, use: UseRow | None, event: Event, planned: Mapping[str, Any]) -> bool:
    known = planned.get("changes")
    if known is not None:
        return bool(known == changes_of(row, use))
    # A plan of an earlier version. It is right in the ledger in which it was written, and only there.
    seen = event.payload["seen"]
    return row.touched <= seen and (use is None or use.offset <= seen)
