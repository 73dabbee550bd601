"""Additions to entries by the models that are built on long-term memory."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term.tables import EntryRow
from recallog_schemas import models


class EntryAddition:
    """The additions of one model to entries. A model overrides what it needs."""

    async def tiers_of(self, reading: ReadSession, rows: Sequence[EntryRow]) -> Mapping[int, str]:
        """The tiers of live entries that have one, by offset."""
        return {}

    async def find_linked(
        self, session: ReadSession, space: str, agent: str, query: str, *, limit: int
    ) -> Sequence[tuple[int, str]]:
        """The offsets and owners of at most `limit` entries that are linked to the names in a query, best first."""
        return ()

    async def count_links(self, session: ReadSession, space: str, agent: str) -> int:
        """The number of links between the entities named by an agent's entries, or by a space's shared entries."""
        return 0


def _built_in() -> Sequence[EntryAddition]:
    return [module.ADDITION for module in models.import_parts("recallog", "entries")]


async def tiers_of(reading: ReadSession, rows: Iterable[EntryRow]) -> Mapping[int, str]:
    """The tiers of live entries that have one, by offset."""
    live, found = list(rows), dict[int, str]()
    for addition in _built_in():
        found |= await addition.tiers_of(reading, live)
    return found


async def in_tiers(reading: ReadSession, rows: Sequence[EntryRow], tiers: Collection[str] | None) -> Sequence[EntryRow]:
    """The given live entries that are in one of `tiers`; all of them if that is None."""
    if tiers is None:
        return rows
    tier_of = await tiers_of(reading, rows)
    return [row for row in rows if tier_of.get(row.offset) in tiers]


async def find_linked(
    session: ReadSession, space: str, agent: str, query: str, *, limit: int
) -> Sequence[tuple[int, str]]:
    """The offsets and owners of entries that are linked to the names in a query, best first; at most `limit` of each
    model."""
    return [each for one in _built_in() for each in await one.find_linked(session, space, agent, query, limit=limit)]


async def count_links(session: ReadSession, space: str, agent: str) -> int:
    """The number of links between the names in entries, in all models."""
    return sum([await each.count_links(session, space, agent) for each in _built_in()])
