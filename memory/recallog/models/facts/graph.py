"""The entity graph as a reader may see it: its strongest entities with their links, and one entity with its entries.

A reader sees two graphs as if they were one: its own, and the graph of the entries that the whole space may read.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from itertools import combinations
from typing import NamedTuple

from recallog.models.long_term import live_entries
from recallog.models.long_term.queries import entry_views
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, snapshot_of
from recallog_projections.models.facts import tables
from recallog_projections.models.facts.entities import key_of
from recallog_projections.models.facts.tables import Entity
from recallog_projections.models.long_term import tables as entries
from recallog_projections.tables import RowKey
from recallog_schemas import limits
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.models.facts.views import EntityFound, EntityGraph, EntityLink, NamedEntity
from recallog_schemas.models.long_term import limits as long_term_limits


class GraphQuery(NamedTuple):
    """The part of the graph to return."""

    type: str | None
    """Only entries of this type that the agent keeps; None: all entries that it may read."""
    min_entries: int
    """The least number of entries of a link."""
    limit: int


async def strongest(reading: AgentReading, query: GraphQuery) -> EntityGraph:
    """The entities that most entries name, with the links between them."""
    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> EntityGraph:
        snapshot = await snapshot_of(session)
        sizes = [RowKey(tables.COUNTS.name, space, owner) for owner in (agent, "")]
        counts = await session.snapshot(sizes)
        found = [row for key in sizes if (row := counts.row(tables.COUNTS, *key[1:])) is not None]
        sizes_of = await _sizes(session)
        if query.type is None:
            named = _first(sizes_of, query.limit)
            links = _links(await _rows(session, named), named)
        else:
            compared = await _rows(session, _first(sizes_of, facts_limits.GRAPH_ENTITIES_COMPARED))
            offsets = await _of_type(session, query.type)
            facts = {key: _offsets(rows) & offsets for key, rows in compared.items()}
            named = _first(Counter({key: len(of) for key, of in facts.items() if of}), query.limit)
            links = _common(facts, named)
        shown = sorted(links.items(), key=lambda one: (-one[1], one[0]))[: facts_limits.GRAPH_LINKS_SHOWN]
        return EntityGraph(
            **await of_agent(session, snapshot),
            entities=tuple(NamedEntity(entity=key, entries=count) for key, count in named.items()),
            links=tuple(
                EntityLink(one=one, other=other, entries=count)
                for (one, other), count in shown
                if count >= query.min_entries
            ),
            total=sum(row.entities for row in found),
        )

    return await reading.steady(read)


async def about(reading: AgentReading, name: str, limit: int) -> EntityFound:
    """The entries that name an entity, newest first, and the other entities that they name."""
    space, agent, key = reading.space, reading.agent, key_of(name)

    async def read(session: AgentReading) -> EntityFound:
        snapshot = await snapshot_of(session)
        needs = [RowKey(tables.ENTITIES.name, space, owner, key) for owner in (agent, "")]
        found = await session.snapshot(needs)
        rows = [row for need in needs if (row := found.row(tables.ENTITIES, *need[1:])) is not None]
        facts = sorted((fact for row in rows for fact in row.facts), key=lambda fact: -fact.offset)[:limit]
        live = await live_entries.at(session, space, agent, [(fact.owner, fact.offset) for fact in facts])
        related = Counter[str]()
        for link in (link for row in rows for link in row.links):
            related[link.key] += link.count
        return EntityFound(
            **await of_agent(session, snapshot),
            entity=key,
            entries=await entry_views(session, [live[fact.offset] for fact in facts if fact.offset in live]),
            related=tuple(
                NamedEntity(entity=other, entries=count)
                for other, count in sorted(related.items(), key=lambda one: (-one[1], one[0]))[: limits.PAGE_ITEMS]
            ),
        )

    return await reading.steady(read)


async def _sizes(session: AgentReading) -> Counter[str]:
    """The number of entries that name each of the first `GRAPH_ENTITIES_READ` entities of each graph."""
    sizes = Counter[str]()
    for owner in (session.agent, ""):
        page = await session.page(tables.SIZES, session.space, owner, limit=facts_limits.GRAPH_ENTITIES_READ)
        for key, row in page.items:
            sizes[key] += row.total
    return sizes


def _first(named: Counter[str], limit: int) -> Mapping[str, int]:
    """The entities that most entries name, the most frequent first."""
    return dict(sorted(named.items(), key=lambda one: (-one[1], one[0]))[:limit])


async def _rows(session: AgentReading, keys: Iterable[str]) -> Mapping[str, list[Entity]]:
    """The rows of entities, from the graphs that have them."""
    needs = [RowKey(tables.ENTITIES.name, session.space, owner, key) for key in keys for owner in (session.agent, "")]
    snapshot = await session.snapshot(needs)
    found = defaultdict[str, list[Entity]](list)
    for need in needs:
        if (row := snapshot.row(tables.ENTITIES, *need[1:])) is not None:
            found[need.key].append(row)
    return found


async def _of_type(session: AgentReading, entry_type: str) -> Set[int]:
    """The offsets of the newest entries of a type that the agent keeps."""
    prefix = f"{entry_type}/"
    page = await session.page(
        entries.OF_TYPE,
        session.space,
        session.agent,
        prefix=prefix,
        newest_first=True,
        limit=long_term_limits.RECALL_ENTRIES,
    )
    return {int(key.removeprefix(prefix)) for key, _ in page.items}


def _offsets(rows: Iterable[Entity]) -> set[int]:
    return {fact.offset for row in rows for fact in row.facts}


def _links(known: Mapping[str, list[Entity]], chosen: Mapping[str, int]) -> Counter[tuple[str, str]]:
    """The links between the chosen entities. Each is read from the entity that sorts first."""
    links = Counter[tuple[str, str]]()
    for key in chosen:
        for link in (link for row in known[key] for link in row.links):
            if key < link.key and link.key in chosen:
                links[key, link.key] += link.count
    return links


def _common(facts: Mapping[str, Set[int]], chosen: Mapping[str, int]) -> Counter[tuple[str, str]]:
    """The links between the chosen entities, by the number of entries that name both."""
    naming = defaultdict[int, list[str]](list)
    for key in sorted(chosen):
        for offset in facts[key]:
            naming[offset].append(key)
    return Counter(pair for keys in naming.values() for pair in combinations(keys, 2))
