"""Whether a space has ever had entries, and when they or their tiers last changed. Queries skip reads accordingly."""

from recallog.reading.read_session import Snapshot
from recallog_projections.models.long_term.kinds import CAPTURING, CHANGING, MOVED, PLAN, RETAINING
from recallog_projections.tables import RowKey
from recallog_projections.views import activity

_GIVING = RETAINING | {"memory.transferred"}
"""Captured calls of tools are found as events, and as entries only if another agent was given them."""
_KINDS = RETAINING | CHANGING | {PLAN, MOVED}


def rows(space: str) -> list[RowKey]:
    """The rows that the functions below need."""
    return [RowKey(activity.KINDS.name, space, kind) for kind in sorted(_KINDS | {CAPTURING})]


def has_entries(snapshot: Snapshot, space: str) -> bool:
    """Whether `space` may have an entry that is not found as an event. The snapshot has `rows`."""
    return any(snapshot.row(activity.KINDS, space, kind) is not None for kind in _GIVING)


def are_as_at(snapshot: Snapshot, space: str, checkpoint: int, *, captured: bool = False) -> bool:
    """Whether the entries of `space` and their tiers are the same as at `checkpoint`, which is not later than the
    snapshot; with `captured`, also the entries of captured calls. The snapshot has `rows`."""
    spans = [snapshot.row(activity.KINDS, space, kind) for kind in (*_KINDS, *([CAPTURING] if captured else []))]
    return max((span.last for span in spans if span is not None), default=-1) <= checkpoint <= snapshot.processed
