"""How far the index that answered a query is behind the views: by new records, and by vectors that are missing."""

from typing import NamedTuple

from recallog.index.indexer import IndexSnapshot
from recallog.reading.read_session import Snapshot
from recallog_schemas import limits


class IndexLag(NamedTuple):
    """How many records the views have processed and the index has not, or has processed without vectors."""

    positions: int
    degraded: str | None
    """What this means for the answer; None if the lag is within `limits.RECALL_INDEX_LAG_MAX`."""


def of(index: IndexSnapshot | None, snapshot: Snapshot) -> IndexLag:
    """The lag of `index`; zero if it did not answer."""
    if index is None:
        return IndexLag(0, None)
    behind = max(0, snapshot.processed - index.checkpoint) + index.unread
    if behind <= limits.RECALL_INDEX_LAG_MAX:
        return IndexLag(behind, None)
    done = 100 * max(0, snapshot.processed + 1 - behind) // (snapshot.processed + 1)
    which = "older" if index.unread else "newer"
    why = f"the index is {behind:,} positions behind, {done} % done; of {which} memories only words were compared"
    return IndexLag(behind, why)
