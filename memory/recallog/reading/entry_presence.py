"""Whether a space has ever had entries: a query of one that has none reads no more than without them."""

from recallog.reading.read_session import Snapshot
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_projections.views.entries.kinds import RETAINING

_KINDS = sorted(RETAINING | {"memory.transferred"})
"""Captured calls of tools are found as events; only one that another agent was given is found as an entry."""


def rows(space: str) -> list[RowKey]:
    """The rows that `has_entries` reads."""
    return [RowKey(activity.KINDS.name, space, kind) for kind in _KINDS]


def has_entries(snapshot: Snapshot, space: str) -> bool:
    """Whether `space` may have an entry that is not found as an event. The snapshot has `rows`."""
    return any(snapshot.row(activity.KINDS, *row_key[1:]) is not None for row_key in rows(space))
