"""The progress of the first generation of an index."""

from recallog_projections.stores.store import Store
from recallog_schemas.errors import IndexUnavailable
from recallog_streams.ledgers.ledger import Ledger

ROWS_LOST = "the rows of the index were lost or damaged"
"""The cause if the engine has a collection that the rows do not name."""


async def not_built(ledger: Ledger, rows: Store, partition: int, cause: str = "") -> IndexUnavailable:
    """The error of a query while a generation of a partition is being built that readers have to wait for.

    It reports the progress of the generation and, if there was an index before, the `cause` of its loss.
    """
    building = (await rows.pointer(partition)).building
    done = await rows.checkpoint(building) if building is not None else None
    end = (await ledger.ends())[partition]
    share = 100 * ((done.offset if done else -1) + 1) // max(1, end)
    begun = f"{cause}; it is being rebuilt" if cause else "the index is being built"
    return IndexUnavailable(f"{begun}, {share} % done; try again")
