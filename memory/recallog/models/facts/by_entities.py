"""Entries by their entities: those that name an entity of a query, and those one or two hops away in the graph.

A hop goes from an entity to the entities that are named together with it. A reader follows two graphs as if they were
one: its own, and the graph of the entries that the whole space may read.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from recallog.reading.read_session import ReadSession
from recallog_projections.models.facts import tables
from recallog_projections.models.facts.entities import entities, possible, words_of
from recallog_projections.models.facts.tables import Entity, EntityFact
from recallog_projections.tables import RowKey
from recallog_schemas.models.facts import limits as facts_limits

_WEIGHTS = (1.0, 0.5, 0.25)
"""The weights of entries, by hop."""


class LinkedEntry(NamedTuple):
    """A live entry that the reader may read."""

    offset: int
    owner: str
    weight: float
    """1 if it names an entity of the query, 0.5 after one hop, 0.25 after two."""


async def rank_entries(reading: ReadSession, space: str, agent: str, query: str, *, limit: int) -> list[LinkedEntry]:
    """At most `limit` entries, best first: by weight, then by the number of entities of the query or hop that they
    name, then newest first.

    An entity of the query finds all entities that contain its words: "Acme" finds "Acme Corp". A query without capitals
    and quotes asks for the entities whose whole names it contains: "what does acme prefer".

    The newest `facts_limits.GRAPH_HOP_FACTS` entries of each entity are considered, and at each hop the
    `facts_limits.GRAPH_HOP_ENTITIES` entities with the strongest links.
    """
    return await reading.steady(lambda session: _rank_in_session(session, space, agent, query, limit))


async def _rank_in_session(session: ReadSession, space: str, agent: str, query: str, limit: int) -> list[LinkedEntry]:
    graphs = (agent, "")
    reached = await _find_named_entities(session, space, graphs, query)
    seen = set(reached)
    best: dict[EntityFact, float] = {}
    for weight in _WEIGHTS:
        known = await _entities(session, space, graphs, reached)
        named = Counter(fact for entity in known.values() for fact in _newest(entity))
        new = [fact for fact in named if fact not in best]
        best |= dict.fromkeys(sorted(new, key=lambda fact: (-named[fact], -fact.offset)), weight)
        if len(best) >= limit:
            break
        reached = _neighbours(known.values(), seen)
        seen.update(reached)
    return [LinkedEntry(fact.offset, fact.owner, weight) for fact, weight in list(best.items())[:limit]]


async def _find_named_entities(session: ReadSession, space: str, graphs: Sequence[str], query: str) -> list[str]:
    """The entities that a query names."""
    asked = entities(query)
    if asked:
        return await _matching(session, space, graphs, asked)
    known = await _entities(session, space, graphs, possible(query))
    return [key for key, rows in known.items() if rows][: facts_limits.GRAPH_HOP_ENTITIES]


async def _matching(session: ReadSession, space: str, graphs: Iterable[str], asked: Sequence[str]) -> list[str]:
    """The entities that contain all words of an entity in the query; exact matches first."""
    found = dict.fromkeys(asked)
    for graph in graphs:
        for key in asked:
            found |= dict.fromkeys(await _with_words(session, space, graph, words_of(key)))
    return list(found)[: facts_limits.GRAPH_HOP_ENTITIES]


async def _with_words(session: ReadSession, space: str, graph: str, words: Collection[str]) -> list[str]:
    """The entities of a graph that have all these words.

    Long words are rare, so they are looked up first. A word that at most `GRAPH_SAME_WORD` entities contain is enough
    to find all of them. If each word is in more entities, only the first entities of each word are searched.
    """
    found: dict[str, None] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        prefix = tables.word_key(word, "")
        page = await session.page(tables.WORDS, space, graph, prefix=prefix, limit=facts_limits.GRAPH_SAME_WORD)
        keys = [row_key.removeprefix(prefix) for row_key, _ in page.items]
        matching = [key for key in keys if words_of(key) >= set(words)]
        if page.last:
            return matching
        found |= dict.fromkeys(matching)
    return list(found)


async def _entities(
    session: ReadSession, space: str, graphs: Sequence[str], keys: Sequence[str]
) -> Mapping[str, list[Entity]]:
    """The entities with these keys, each with its rows in the graphs."""
    needs = {key: [RowKey(tables.ENTITIES.name, space, graph, key) for graph in graphs] for key in keys}
    snapshot = await session.snapshot(need for of_key in needs.values() for need in of_key)
    return {
        key: [row for need in of_key if (row := snapshot.row(tables.ENTITIES, *need[1:])) is not None]
        for key, of_key in needs.items()
    }


def _newest(entity: Sequence[Entity]) -> Sequence[EntityFact]:
    """The newest facts of an entity, in any graph."""
    if len(entity) == 1:
        return entity[0].facts[-facts_limits.GRAPH_HOP_FACTS :]
    facts = {fact for row in entity for fact in row.facts[-facts_limits.GRAPH_HOP_FACTS :]}
    return sorted(facts, key=lambda fact: -fact.offset)[: facts_limits.GRAPH_HOP_FACTS]


def _neighbours(known: Iterable[Sequence[Entity]], seen: Collection[str]) -> list[str]:
    """The entities that are most strongly linked to `known` and not in `seen`: by count, then the newest."""
    counts: Counter[str] = Counter()
    newest: dict[str, int] = {}
    for entity in known:
        for row in entity:
            for link in row.links:
                if link.key not in seen:
                    counts[link.key] += link.count
                    newest[link.key] = max(newest.get(link.key, -1), link.newest)
    return sorted(counts, key=lambda key: (-counts[key], -newest[key], key))[: facts_limits.GRAPH_HOP_ENTITIES]
