"""Whether a space has ever had entries: a query of one that has none reads no more than without them."""

from recallog.reading.read_session import Snapshot
from recallog_projections.tables import RowKey
from recallog_projections.views import activity
from recallog_projections.views.entries.kinds import RETAINING


def rows(space: str) -> list[RowKey]:
    """The rows that `has_entries` reads."""
    return [RowKey(activity.KINDS.name, space, kind) for kind in sorted(RETAINING)]


def has_entries(snapshot: Snapshot, space: str) -> bool:
    """Whether there is an event of `space` that may have retained an entry. The snapshot has `rows`."""
    return any(snapshot.row(activity.KINDS, *row_key[1:]) is not None for row_key in rows(space))
