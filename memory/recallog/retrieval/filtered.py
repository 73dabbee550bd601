"""The points of an index that pass a filter of fields. The searches of a query are restricted to them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from recallog.index.indexer import IndexSnapshot
from recallog.reading.filters import Passes
from recallog.retrieval import sources as all_sources
from recallog.retrieval.by_index import readable_payloads
from recallog.retrieval.query import RecallQuery
from recallog.retrieval.sources import CandidateSource, SourceQuery
from recallog_projections.index.engines.engine import Filter, Hit, Search
from recallog_schemas import codec, limits


async def narrow_query(asked: SourceQuery, sources: Sequence[CandidateSource]) -> RecallQuery:
    """The query, restricted to the points that pass its filter; without a filter the query itself.

    Events are read from the index, and texts of models from the views. Raises `IndexUnavailable`, and `IndexDamaged`
    for a payload that cannot be read.
    """
    query, index = asked.query, asked.index
    if query.has_fields is None or index is None:
        return query
    events = replace(query.make_filter(), kinds_except=all_sources.kinds_of_texts(sources))
    found = await _passing(index, events, query.has_fields, 0, index.checkpoint)
    for source in sources:
        found += await source.points(asked, query.has_fields)
    return replace(query, points=found)


async def _passing(index: IndexSnapshot, wanted: Filter, has_fields: Passes, first: int, last: int) -> list[str]:
    """The points of events at the offsets `first` to `last` that pass, read in parts of bounded size."""
    within = replace(wanted, offset_from=first, offset_until=_least(last, wanted.offset_until))
    hits = None
    if first == last or await index.engine.estimate_count(index.collection, within) <= limits.FILTERED_POINTS:
        # One more than fits tells that the estimate was too low.
        search = Search(within, limits.FILTERED_POINTS + 1, payload=("event",))
        [hits] = await index.engine.search(index.collection, [search])
    if hits is None or (len(hits) > limits.FILTERED_POINTS and first < last):
        middle = (first + last) // 2
        older = await _passing(index, wanted, has_fields, first, middle)
        return older + await _passing(index, wanted, has_fields, middle + 1, last)
    # There may be thousands of events, and a filter of any length. The thread keeps the event loop free for other
    # queries.
    return await asyncio.to_thread(_ids_of_passing, hits, has_fields)


def _ids_of_passing(hits: Sequence[Hit], has_fields: Passes) -> list[str]:
    with readable_payloads():
        return [hit.id for hit in hits if has_fields(codec.decode(str(hit.payload["event"]).encode()))]


def _least(last: int, until: int | None) -> int:
    return last if until is None else min(last, until)
