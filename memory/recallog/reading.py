"""One consistent look at the views, live or past."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from recallog_projections.projection import LogName, Need
from recallog_projections.stores.store import Generation, Item, Snapshot, Store
from recallog_schemas import Position, limits


@dataclass(frozen=True, slots=True)
class Reading:
    """A generation to read from."""

    store: Store
    partition: int
    generation: Generation

    async def read(self, rows: Sequence[Need] = (), logs: Sequence[tuple[LogName, int]] = ()) -> Snapshot:
        """Rows and log tails in one atomic call. Raises `Rebuilding` where the generation was replaced meanwhile."""
        return await self.store.read(self.partition, rows, logs, self.generation)

    async def scan(self, table: str, space: str | None = None) -> AsyncIterator[tuple[Item, int]]:
        """All rows of a table, in order, each with the offset it was read at; of one space, where it is given."""
        after = None
        while True:
            chunk = await self.store.scan(self.generation, table, space=space, after=after, limit=limits.SCAN_ITEMS)
            for item in chunk.items:
                yield item, chunk.checkpoint.offset
            if chunk.last:
                return
            after = chunk.items[-1].place


def position(partition: int, offset: int) -> Position | None:
    """None for the offset before the first."""
    return Position(partition, offset) if offset >= 0 else None
