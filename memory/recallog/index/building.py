"""How far the first generation of an index is."""

from recallog_projections.stores.store import Store
from recallog_schemas.errors import IndexUnavailable
from recallog_streams.ledgers.ledger import Ledger


async def not_built(ledger: Ledger, rows: Store, partition: int) -> IndexUnavailable:
    """The error of a query while the first generation of a partition is being built, which says how far it is."""
    building = (await rows.pointer(partition)).building
    done = await rows.checkpoint(building) if building is not None else None
    end = (await ledger.ends())[partition]
    share = 100 * ((done.offset if done else -1) + 1) // max(1, end)
    return IndexUnavailable(f"the index is being built, {share} % are done; try again")
