"""Entries from the index, for the presets of recall: the nearest by vector, and the best by words."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self, TypeVar

from recallog.index.indexer import IndexSnapshot
from recallog.index.semantic_index import SemanticIndex
from recallog.retrieval import by_index
from recallog.retrieval.attempts import attempt
from recallog.retrieval.channels import KEYWORD, SEMANTIC, Channel
from recallog.retrieval.query import RecallQuery, query_terms
from recallog_projections.index.engines.engine import Hit, Search
from recallog_projections.models.long_term.reading import KIND
from recallog_schemas.errors import IndexDamaged, IndexLost, IndexUnavailable
from recallog_schemas.models.long_term import limits as long_term_limits

Result = TypeVar("Result")

_POINTS = 2
"""The factor between the points that are searched and the entries that are wanted, since some may have changed."""
_ADDRESS = ("agent", "offset")


class IndexedEntry(NamedTuple):
    """An entry as the index has it."""

    point: str
    owner: str
    offset: int
    score: float


@dataclass(frozen=True, slots=True)
class EntriesByIndex:
    """The entries that the index found for a query."""

    index: IndexSnapshot | None = None
    """The generation that answered; None if the index did not answer."""
    found: Mapping[Channel, Sequence[IndexedEntry]] = field(default_factory=dict)
    """By channel, best first. A channel that did not answer is absent."""
    idf: Mapping[str, float] | None = None
    """By term of the query, among the entries that the agent may see; None if words were not compared."""
    failures: Mapping[Channel, IndexUnavailable] = field(default_factory=dict)
    """The errors of the channels that did not answer."""

    @classmethod
    def failed_with(cls, query: RecallQuery, error: IndexUnavailable) -> Self:
        """The result if the index cannot answer."""
        return cls(failures={channel: error for channel in (SEMANTIC, KEYWORD) if channel in query.channels})

    @property
    def degraded(self) -> Sequence[str]:
        """The consequences of the failures for the answer."""
        said = {
            SEMANTIC: "the channel semantic was left out",
            KEYWORD: f"the channel keyword compared only the newest {long_term_limits.RECALL_ENTRIES:,} entries",
        }
        reasons: dict[str, list[str]] = {}
        for channel, error in self.failures.items():
            reasons.setdefault(str(error), []).append(said[channel])
        return [f"{' and '.join(what)}: {why}" for why, what in reasons.items()]


async def find(index: SemanticIndex | None, partition: int, query: RecallQuery, depth: int) -> EntriesByIndex:
    """The best entries of the channels `semantic` and `keyword`, if the query has them and they can answer.

    Each channel has `depth` entries and some more. Never raises `IndexUnavailable`. `index` is None if the index is
    off.
    """
    if index is None or not query.text.strip() or query.channels.isdisjoint((SEMANTIC, KEYWORD)):
        return EntriesByIndex()

    async def ask() -> EntriesByIndex:
        return await _find_in_index(await index.open(partition), query, _POINTS * depth)

    answer = await attempt(index, partition, ask)
    return EntriesByIndex.failed_with(query, answer) if isinstance(answer, IndexUnavailable) else answer


async def _find_in_index(index: IndexSnapshot, query: RecallQuery, limit: int) -> EntriesByIndex:
    nearest, worded = await asyncio.gather(
        _of_channel(_nearest(index, query, limit)), _of_channel(_find_by_words(index, query, limit))
    )
    found: dict[Channel, Sequence[IndexedEntry]] = {}
    failures: dict[Channel, IndexUnavailable] = {}
    idf: Mapping[str, float] | None = None
    if isinstance(nearest, IndexUnavailable):
        failures[SEMANTIC] = nearest
    elif nearest is not None:
        found[SEMANTIC] = nearest
    if isinstance(worded, IndexUnavailable):
        failures[KEYWORD] = worded
    elif worded is not None:
        found[KEYWORD], idf = worded
    return EntriesByIndex(index if found else None, found, idf, failures)


async def _of_channel(work: Awaitable[Result]) -> Result | IndexUnavailable:
    """The result, or the error if only this channel cannot answer. Errors of the whole index are raised."""
    try:
        return await work
    except (IndexLost, IndexDamaged):
        raise
    except IndexUnavailable as error:
        return error


async def _nearest(index: IndexSnapshot, query: RecallQuery, limit: int) -> Sequence[IndexedEntry] | None:
    """The entries with the highest cosine; None if no model can read the query, or if the query does not use this
    channel."""
    if SEMANTIC not in query.channels:
        return None
    asked = await by_index.embed_query(index, query)
    if not asked:
        return None
    return _entries(await by_index.by_meaning(index, asked, query.make_filters(), limit, _ADDRESS))


async def _find_by_words(
    index: IndexSnapshot, query: RecallQuery, limit: int
) -> tuple[Sequence[IndexedEntry], Mapping[str, float]] | None:
    """The entries with the best BM25 scores, and the idf of the query's terms; None if the query does not use this
    channel."""
    if KEYWORD not in query.channels:
        return None
    searched = query_terms(query.text, ()).terms
    if not searched:
        return [], {}
    corpus = replace(query.visible(), kinds=[KIND])
    whole = by_index.sparse_of(searched)
    searches = [
        *by_index.idf_searches(searched, corpus),
        *(Search(wanted, limit, sparse=whole, corpus=corpus, payload=_ADDRESS) for wanted in query.make_filters()),
    ]
    hits = await index.engine.search(index.collection, searches)
    idf = await by_index.frequencies(index, corpus, searched, hits)
    return _entries(hits[len(searched) :]), idf


def _entries(found: Sequence[Sequence[Hit]]) -> Sequence[IndexedEntry]:
    with by_index.readable_payloads():
        return [
            IndexedEntry(hit.id, hit.payload["agent"], hit.payload["offset"], hit.score)
            for hits in found
            for hit in hits
        ]
