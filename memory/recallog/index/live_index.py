"""The index as a live projector maintains it: each partition with the model that its active generation names."""

from recallog.index.indexer import Indexer
from recallog_projections.index import points
from recallog_projections.stores.store import Store
from recallog_schemas.errors import IndexUnavailable, RecallogError
from recallog_streams.fold import Fold
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.projector import Projector


class LiveIndex:
    """The index that `indexer` builds on a server, for a `LiveProjector`."""

    def __init__(self, indexer: Indexer) -> None:
        self._indexer = indexer

    @property
    def ledger(self) -> Ledger:
        return self._indexer.ledger

    @property
    def rows(self) -> Store:
        return self._indexer.rows

    @property
    def code(self) -> str:
        """The versions of its code. They do not include the model, which a cutover may change."""
        return f"{Fold(self._indexer.projections({}), unique_ids=self.ledger.unique_ids).code} {points.VERSION}"

    async def projector(self, partition: int) -> Projector:
        """As in `LiveViews`. Errors of a user's embedder are raised as `IndexUnavailable`."""
        try:
            return (await self._indexer.views(partition)).builder
        except RecallogError:
            raise
        except Exception as error:
            raise IndexUnavailable(f"{type(error).__name__}: {error}") from error
