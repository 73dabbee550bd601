"""Whether the statements of entries still hold: a later value of one subject and predicate supersedes earlier ones.

Values are ordered if their entries have the same owner, type, readers and person. Other values contradict each other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term import linking, statements, tables
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term.tables import EntryRow, SaidValue
from recallog_schemas import Position
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import RecallHit

if TYPE_CHECKING:
    from recallog.retrieval.query import RecallQuery


class EntryPlace(NamedTuple):
    """The place of a live entry among the entries about the same subject and predicate."""

    followed_by: SaidValue | None = None
    """The first later value that disagrees."""
    now: str | None = None
    """The id of the entry that holds now, if it is another one."""
    supersedes: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()
    """The ids of the other entries that hold now and disagree, among the given entries."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The fields of `Standing`."""
        until = None if self.followed_by is None else moment_of(self.followed_by.at)
        return {"superseded_by": self.now, "valid_until": until, "contradicts": self.contradicts}


async def places_of(reading: ReadSession, rows: Sequence[EntryRow]) -> Mapping[int, EntryPlace]:
    """The places of live entries, by offset. For any other entry, the place of an entry without others."""
    found: defaultdict[int, EntryPlace] = defaultdict(EntryPlace)
    keys = {row.offset: key for row in rows if (key := linking.statements_key(row)) is not None}
    snapshot = await reading.snapshot(set(keys.values())) if keys else None
    for row in rows:
        known = snapshot and row.offset in keys and snapshot.row(tables.STATEMENTS, *keys[row.offset][1:])
        if known:
            found[row.offset] = _place(row.id, statements.find_superseded(known.entries))
    holding = [row for row in rows if row.offset in keys and found[row.offset].now is None]
    for offset, ids in _contradictions(holding).items():
        found[offset] = found[offset]._replace(contradicts=tuple(ids))
    return found


def _place(id_: str, past: Mapping[str, SaidValue]) -> EntryPlace:
    now, by = None, past.get(id_)
    while by is not None:
        now, by = by.id, past.get(by.id)
    return EntryPlace(past.get(id_), now, tuple(each for each, of in past.items() if of.id == id_))


async def mark_standing(
    reading: ReadSession, query: "RecallQuery", hits: Sequence[RecallHit], rows: Mapping[int, EntryRow]
) -> Sequence[RecallHit]:
    """`hits`, each with its standing. An entry comes after the entry that holds now instead of it.

    If the latter is not among the hits of a query without filters, it is added in place of the weakest hit. Statements
    in events are compared only with other hits.
    """
    hits = _events_marked(hits)
    if not rows:
        return hits
    shown = {hit.event.id: rows[hit.position.offset] for hit in hits if hit.is_entry and hit.position.offset in rows}
    places = await places_of(reading, list(shown.values()))
    now = {id_: first for id_, row in shown.items() if (first := places[row.offset].now) is not None}
    missing = set() if query.is_filtered else set(now.values()) - shown.keys()
    found = await entries_by_id(reading, query.space, missing) if missing else {}
    by_id = {hit.event.id: hit for hit in hits}
    for id_, row in shown.items():
        if (place := places[row.offset]).now is not None or place.contradicts:
            by_id[id_] = by_id[id_].model_copy(update=place.fields)
    ordered: dict[str, RecallHit] = {}
    for id_, hit in by_id.items():
        first = now.get(id_, id_)
        entry = found.get(first)
        if first in by_id:
            ordered.setdefault(first, by_id[first])
        elif entry is not None and entry.row is not None:
            ordered.setdefault(first, _in_place_of(hit, entry.row))
        ordered.setdefault(id_, hit)
    return list(ordered.values())[: max(query.top_k, 1)]


def _events_marked(hits: Sequence[RecallHit]) -> Sequence[RecallHit]:
    """`hits`, in their order. An event is superseded by the first later event of the same author and readers that
    disagrees."""
    said = defaultdict[Any, list[tuple[RecallHit, statements.Statement]]](list)
    for hit in hits:
        statement = None if hit.weak or hit.is_entry else statements.statement_of(hit.text)
        if statement is not None:
            said[hit.event.agent, frozenset(hit.event.audience or ()), statement.key].append((hit, statement))
    past: dict[str, RecallHit] = {}
    for of_one in said.values():
        if len(of_one) == 1:
            continue
        in_order = sorted(of_one, key=lambda each: (each[0].at, each[0].position.offset))
        for place, (hit, one) in enumerate(in_order):
            later = (other for other, another in in_order[place + 1 :] if statements.disagree(one, another))
            if (by := next(later, None)) is not None:
                past[hit.event.id] = by
    if not past:
        return hits
    return [hit.model_copy(update=_describe_replaced(hit, past)) if hit.event.id in past else hit for hit in hits]


def _describe_replaced(hit: RecallHit, past: Mapping[str, RecallHit]) -> Mapping[str, Any]:
    by = now = past[hit.event.id]
    while now.event.id in past:
        now = past[now.event.id]
    return {**EntryPlace(now=now.event.id).fields, "valid_until": by.at}


def _in_place_of(hit: RecallHit, row: EntryRow) -> RecallHit:
    event, position = entry_reading.event_of(row), Position(hit.position.partition, row.offset)
    more = {"similarity": None, "passage": None, **EntryPlace().fields}
    return hit.model_copy(update={"event": event, "text": event.text, "position": position, **more})


def _contradictions(rows: Sequence[EntryRow]) -> Mapping[int, list[str]]:
    """By offset: the ids of the other entries that disagree with an entry. All of them hold now."""
    said = [(row, statement) for row in rows if (statement := statements.statement_of(row.text)) is not None]
    found: dict[int, list[str]] = {}
    for row, one in said:
        for other, another in said:
            if one.key == another.key and statements.disagree(one, another):
                found.setdefault(row.offset, []).append(other.id)
    return found
