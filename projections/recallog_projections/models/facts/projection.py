"""The projection of the entity graph. It follows the rows of entries, and does not repeat their rules."""

import bisect
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import ClassVar, NamedTuple

from recallog_projections.models.facts import tables
from recallog_projections.models.facts.entities import VERSION, entities, words_of
from recallog_projections.models.facts.tables import Counts, Entity, EntityFact, EntityWord, Link
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.kinds import CAPTURING
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.rows import Rows
from recallog_schemas import Record
from recallog_schemas.errors import InvariantViolation
from recallog_schemas.models.facts import limits as facts_limits

TOOL_USAGE = "tool_usage"
"""The type of entries that are in no graph, because a call of a tool names all its data."""

_NEW = Entity(0, (), ())
_NEVER = -1
"""The offset of the newest common entry of two entities, where it has been left out."""
_by_offset, _by_key = attrgetter("offset"), attrgetter("key")


class GraphProjection:
    """Fold of the live entries of each reader into the entities that they name. It follows `entries`."""

    name: ClassVar[str] = "graph"
    version: ClassVar[int] = VERSION
    kinds = EntriesProjection.kinds - {"memory.metered", CAPTURING}
    tables = tables.ALL

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        changed = [(_place(before), _place(after)) for before, after in rows.list_written(entries.ROWS)]
        for before, after in changed:
            if before == after:
                continue
            if before is not None:
                _remove(rows, before)
            if after is not None:
                _add(rows, after)


class GraphPlace(NamedTuple):
    """Where a live entry is in the graphs."""

    space: str
    fact: EntityFact
    graphs: Sequence[str]
    """The owners of the graphs: its readers, or "" if the whole space may read it."""
    keys: Sequence[str]
    """The entities that it names."""


def place_of(row: EntryRow) -> GraphPlace | None:
    """None for an entry that names no entity, and for the captured call of a tool, which is found as its event."""
    keys = () if row.type == TOOL_USAGE or row.captured else entities(row.text, row.entity)
    graphs = ("",) if row.shared else (row.owner, *row.audience)
    return GraphPlace(row.space, EntityFact(row.offset, row.owner), graphs, keys) if keys else None


def _place(row: EntryRow | None) -> GraphPlace | None:
    return None if row is None else place_of(row)


def _add(rows: Rows, place: GraphPlace) -> None:
    offset = place.fact.offset
    for graph in place.graphs:
        known = _read_known(rows, place, graph)
        changed = {}
        for key, entity in known.items():
            facts = list(entity.facts)
            bisect.insort(facts, place.fact, key=_by_offset)
            links = {link.key: link for link in entity.links}
            for other in place.keys:
                if other != key:
                    link = links.get(other) or Link(other, 0, _NEVER)
                    links[other] = Link(other, link.count + 1, max(link.newest, offset))
            changed[key] = _bound_entity(entity.total + 1, facts, links)
        _write(rows, place.space, graph, known, changed)


def _remove(rows: Rows, place: GraphPlace) -> None:
    offset = place.fact.offset
    for graph in place.graphs:
        known = _read_known(rows, place, graph)
        facts = {key: [fact for fact in entity.facts if fact.offset != offset] for key, entity in known.items()}
        changed = {}
        for key, entity in known.items():
            if entity.total < 1:
                raise InvariantViolation(f"the graph lacks an entity that the entry at {offset} names")
            links = {link.key: link for link in entity.links}
            for other in place.keys:
                link = links.pop(other, None)
                if link is not None and link.count > 1:
                    newest = _common(facts[key], facts[other]) if link.newest == offset else link.newest
                    links[other] = Link(other, link.count - 1, newest)
            changed[key] = _bound_entity(entity.total - 1, facts[key], links)
        _write(rows, place.space, graph, known, changed)


def _read_known(rows: Rows, place: GraphPlace, graph: str) -> dict[str, Entity]:
    return {key: rows.get(tables.ENTITIES, place.space, graph, key) or _NEW for key in place.keys}


def _common(facts: Iterable[EntityFact], others: Iterable[EntityFact]) -> int:
    """The offset of the newest entry among both, `_NEVER` if it has been left out of one of them."""
    return max({fact.offset for fact in facts} & {fact.offset for fact in others}, default=_NEVER)


def _bound_entity(total: int, facts: Sequence[EntityFact], links: Mapping[str, Link]) -> Entity:
    kept = sorted(links.values(), key=_by_key)
    while len(kept) > facts_limits.GRAPH_LINKS_KEPT:
        kept.remove(min(kept, key=lambda link: (link.count, link.newest, link.key)))
    return Entity(total, tuple(facts[-facts_limits.GRAPH_FACTS_KEPT :]), tuple(kept))


def _write(rows: Rows, space: str, graph: str, before: Mapping[str, Entity], after: Mapping[str, Entity]) -> None:
    """Write the entities of one entry, and what follows from them: their words, and the size of the graph."""
    more, more_links = 0, 0
    for key, entity in after.items():
        known = before[key]
        more_links += _links(key, entity) - _links(key, known)
        if entity.total:
            rows.put(tables.ENTITIES, entity, space, graph, key)
            if not known.total:
                more += 1
                for word in words_of(key):
                    rows.put(tables.WORDS, EntityWord(), space, graph, tables.word_key(word, key))
        else:
            more -= 1
            rows.delete(tables.ENTITIES, space, graph, key)
            for word in words_of(key):
                rows.delete(tables.WORDS, space, graph, tables.word_key(word, key))
    if more or more_links:
        counts = rows.get(tables.COUNTS, space, graph) or Counts(0, 0)
        counts = Counts(counts.entities + more, counts.links + more_links)
        if counts.entities:
            rows.put(tables.COUNTS, counts, space, graph)
        else:
            rows.delete(tables.COUNTS, space, graph)


def _links(key: str, entity: Entity) -> int:
    """The links that are counted at this entity."""
    return len(entity.links) - bisect.bisect(entity.links, key, key=_by_key)
