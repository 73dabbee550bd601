"""Entries that are linked to the entities of a query, and the number of links."""

from collections.abc import Sequence

from recallog.models.facts import by_entities
from recallog.models.long_term.additions import EntryAddition
from recallog.reading.read_session import ReadSession
from recallog_projections.models.facts import tables
from recallog_projections.tables import RowKey


class EntriesByEntities(EntryAddition):
    """Finds entries by the graph of entities."""

    async def find_linked(
        self, session: ReadSession, space: str, agent: str, query: str, *, limit: int
    ) -> Sequence[tuple[int, str]]:
        found = await by_entities.rank_entries(session, space, agent, query, limit=limit)
        return [(each.offset, each.owner) for each in found]

    async def count_links(self, session: ReadSession, space: str, agent: str) -> int:
        keys = [RowKey(tables.COUNTS.name, space, owner) for owner in (agent, "")]
        snapshot = await session.snapshot(keys)
        sizes = [snapshot.row(tables.COUNTS, *key[1:]) for key in keys]
        return sum(size.links for size in sizes if size is not None)


ADDITION = EntriesByEntities()
