"""Entries with a tier that are similar to a text, by the model of the index: the best of each tier, in a given order.

The engine searches each tier by the vectors that it has stored, which are slightly rounded. Only the texts of the
entries that are shown are embedded again, so that their similarities are exact; of long texts they are rounded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from recallog.index.indexer import IndexSnapshot
from recallog.models.long_term import entry_presence, live_entries
from recallog.models.long_term.similar import DECIMALS, STORED_ERROR, cosine
from recallog.models.tiers.entries import ADDITION
from recallog.reading.filters import Passes
from recallog.reading.readings import AgentReading
from recallog.retrieval.query import RecallQuery
from recallog_projections.index import passages
from recallog_projections.index.embedders.embedder import Vectors
from recallog_projections.index.engines.engine import Search
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.documents import point_id_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas.models.long_term import limits as long_term_limits

_CANDIDATES = 8
"""The number of points of a tier that are searched beyond the entries that are wanted, since some may have changed."""


_BEHIND = 200
"""The least number of entries that are searched in any tier if the index may have them in another one."""


class EntryInTier(NamedTuple):
    row: EntryRow
    tier: str | None
    """The tier that it is in; None without one."""
    similarity: float
    """The cosine of its text and the other one, rounded to 6 decimals. For a long text, that of its best passage."""


Order = Callable[[EntryInTier], Any]
"""A sorting key. The best entry has the lowest key."""


@dataclass(frozen=True, slots=True)
class WantedSimilar:
    """The wanted entries: the first `limit` in `tiers` whose similarity is at least `least`, in `order`."""

    tiers: Sequence[str | None]
    """None stands for the entries without a tier."""
    least: float
    order: Order
    limit: int
    has_fields: Passes | None = None
    """The filter of fields."""


async def similar(reading: AgentReading, text: str, wanted: WantedSimilar) -> list[EntryInTier]:
    """The live entries that are wanted, that the agent may read, and that are similar to `text`.

    Entries that the index has not processed are compared too, the newest `limits.SIMILAR_ENTRIES` of them, and entries
    that entered one of `tiers` after that position, if they are among the `_BEHIND` most similar entries of all. If the
    model cannot read the text, no entry is similar to it. Raises `IndexUnavailable`.
    """
    least, order, limit = wanted.least, wanted.order, wanted.limit
    opened: IndexSnapshot = await reading.searcher.open_index(reading.partition)
    asked = (await opened.questions.vectors(opened.embedder, [text]))[text]
    if asked is None:
        return []
    candidates = await _candidates(reading, opened, asked, wanted)
    left = sorted((each for each in candidates if each.similarity >= least - STORED_ERROR), key=order)
    found: list[EntryInTier] = []
    while left and len(found) < limit:
        missing = limit - len(found)
        compared = await _exactly(opened, asked, [each for each in left[:missing] if not _is_long(each)])
        compared += [each for each in left[:missing] if _is_long(each)]
        found += [each for each in compared if each.similarity >= least]
        left = left[missing:]
    return sorted(found, key=order)


async def _candidates(
    reading: AgentReading, index: IndexSnapshot, asked: Vectors, wanted: WantedSimilar
) -> list[EntryInTier]:
    """The best entries of each tier by their stored vectors, and the entries that have changed since the index
    processed them."""
    space, agent, tiers, limit = reading.space, reading.agent, wanted.tiers, wanted.limit
    visible = RecallQuery.create(space, agent, "", reading.as_of).visible()
    readable = replace(visible, kinds=[entry_reading.KIND, entry_reading.CAPTURED])
    if wanted.has_fields is not None:
        passing = await live_entries.passing(reading, space, agent, wanted.has_fields)
        readable = replace(readable, ids=[point_id_of(row) for row in passing])
    searched = {tier or "": (replace(readable, tiers=[tier or ""]), limit + _CANDIDATES) for tier in tiers}
    present = await reading.snapshot(entry_presence.rows(space))
    is_present = entry_presence.are_as_at(present, space, index.checkpoint, captured=True)
    is_behind = reading.as_of is not None or not is_present  # the index has only the present tiers
    if is_behind:
        searched["any"] = readable, max(_BEHIND, limit + _CANDIDATES)
    searches = [
        Search(within, most, dense=asked, payload=("agent", "offset", "since")) for within, most in searched.values()
    ]
    hits = {
        hit.payload["offset"]: hit
        for of_tier in await index.engine.search(index.collection, searches)
        for hit in of_tier
    }
    keys = [_key(space, hit.payload["agent"], offset) for offset, hit in hits.items()]
    snapshot = await reading.snapshot(RowKey(tables.ROWS.name, *key) for key in keys)
    rows = [row for key in keys if (row := snapshot.row(tables.ROWS, *key)) is not None]
    stored = {row.offset: hits[row.offset].score for row in rows if hits[row.offset].payload["since"] == row.since}
    if is_behind:
        most = long_term_limits.SIMILAR_ENTRIES
        newest = await live_entries.newest(reading, space, agent, most, wanted.has_fields)
        rows += [row for row in newest if row.offset > index.checkpoint]
    rows = [row for row in rows if entry_reading.may_read(agent, row) and _has_fields(row, wanted)]
    tier_of = await ADDITION.tiers_of(reading, rows)
    found = [
        EntryInTier(row, tier, round(stored.get(row.offset, 0.0), DECIMALS))
        for row in {row.offset: row for row in rows}.values()
        if (tier := tier_of.get(row.offset)) in tiers
    ]
    unknown = [each for each in found if each.row.offset not in stored]
    return [*(each for each in found if each.row.offset in stored), *await _exactly(index, asked, unknown)]


def _has_fields(row: EntryRow, wanted: WantedSimilar) -> bool:
    return wanted.has_fields is None or entry_reading.has_fields(row, wanted.has_fields)


async def _exactly(index: IndexSnapshot, asked: Vectors, found: Sequence[EntryInTier]) -> list[EntryInTier]:
    """Entries with the exact similarities of their texts. Entries that the model cannot read are left out."""
    parts = {each.row.offset: _passages(each.row.text) for each in found}
    vectors = await index.questions.vectors(index.embedder, chain.from_iterable(parts.values()))
    compared = []
    for each in found:
        read = [vector for part in parts[each.row.offset] if (vector := vectors[part]) is not None]
        if read:
            compared.append(each._replace(similarity=max(cosine(asked, vector) for vector in read)))
    return compared


def _is_long(entry: EntryInTier) -> bool:
    """Whether the text has several passages. Embedding all of them again would take too long."""
    return len(passages.select_embedded(entry.row.text)) > 1


def _passages(text: str) -> list[str]:
    return [text[start:end] for start, end in passages.select_embedded(text)]


def _key(space: str, owner: str, offset: int) -> tuple[str, str, str]:
    return space, owner, tables.key_of(offset)
