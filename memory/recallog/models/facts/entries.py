"""Entries that are linked to the entities of a query, for recall that ranks entries."""

from collections.abc import Sequence

from recallog.models.facts import by_entities
from recallog.models.long_term.additions import EntryAddition
from recallog.reading.read_session import ReadSession


class EntriesByEntities(EntryAddition):
    """Finds entries by the graph of entities."""

    async def linked(
        self, session: ReadSession, space: str, agent: str, query: str, *, limit: int
    ) -> Sequence[tuple[int, str]]:
        found = await by_entities.ranked(session, space, agent, query, limit=limit)
        return [(each.offset, each.owner) for each in found]


ADDITION = EntriesByEntities()
