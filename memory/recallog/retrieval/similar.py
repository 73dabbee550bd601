"""Similar entries: those whose texts have the highest cosine with a text, by the model of the index.

The cosine is that of two texts alone: what a writer records as `nearest`, and what lessons are ranked by.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from recallog.index.indexer import IndexSnapshot
from recallog.index.semantic_index import SemanticIndex
from recallog.reading.read_session import ReadSession
from recallog.retrieval import entries
from recallog_projections.index.embedders.embedder import Embedding, Passage, Vectors
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Search
from recallog_projections.tables import RowKey
from recallog_projections.views.entries import reading as entry_reading
from recallog_projections.views.entries import tables
from recallog_projections.views.entries.tables import EntryRow
from recallog_schemas import limits

_CANDIDATES = 4
"""How many times as many points are searched as entries are wanted: some of them may have changed since."""
_DECIMALS = 6


class SimilarEntry(NamedTuple):
    row: EntryRow
    similarity: float
    """The cosine, rounded to 6 decimals."""


class SimilarEntries(NamedTuple):
    """Entries that are similar to a text."""

    found: Sequence[SimilarEntry]
    """Most similar first; of equal ones the older."""
    model: str
    """The identity of the model that compared them."""


async def similar(
    reading: ReadSession,
    index: SemanticIndex,
    space: str,
    agent: str,
    text: str,
    *,
    owned: bool,
    types: Collection[str] | None = None,
    limit: int,
) -> SimilarEntries:
    """The live entries most similar to `text`: those that `agent` owns, or all that it may read; of some types, or all.

    Entries that the index has not processed are compared too, the newest `limits.SIMILAR_ENTRIES` of them. A text that
    the model cannot read is similar to none. Raises `IndexUnavailable`.
    """
    opened = await index.open(reading.partition)
    (asked,) = await _embedded(opened, [text])
    if not asked.readable:
        return SimilarEntries([], opened.embedder.model)

    def wanted(row: EntryRow) -> bool:
        if (types is not None and row.type not in types) or (owned and row.owner != agent):
            return False
        return entry_reading.may_read(agent, row)

    known = Filter(
        space, (agent, EVERYBODY), [agent] if owned else None, [entry_reading.KIND, entry_reading.CAPTURED], types=types
    )
    search = Search(known, _CANDIDATES * limit, dense=asked.vector, payload=("agent", "offset"))
    (hits,) = await opened.engine.search(opened.collection, [search])
    needs = [
        RowKey(tables.ROWS.name, space, hit.payload["agent"], tables.key_of(hit.payload["offset"])) for hit in hits
    ]
    snapshot = await reading.snapshot(needs)
    rows = [row for need in needs if (row := snapshot.row(tables.ROWS, *need[1:])) is not None]
    if opened.checkpoint != snapshot.processed:
        newest = await entries.newest(reading, space, agent)
        rows += [row for row in newest if row.offset > opened.checkpoint][-limits.SIMILAR_ENTRIES :]
    chosen = list({row.offset: row for row in rows if wanted(row)}.values())
    return SimilarEntries(await _compared(opened, asked.vector, chosen, limit), opened.embedder.model)


async def _compared(index: IndexSnapshot, asked: Vectors, rows: Sequence[EntryRow], limit: int) -> list[SimilarEntry]:
    embedded = await _embedded(index, [row.text for row in rows])
    found = [
        SimilarEntry(row, _cosine(asked, embedding.vector))
        for row, embedding in zip(rows, embedded, strict=True)
        if embedding.readable
    ]
    return sorted(found, key=lambda one: (-one.similarity, one.row.offset))[:limit]


def _cosine(one: Vectors, other: Vectors) -> float:
    return round(float(np.dot(one.astype(np.float64), other.astype(np.float64))), _DECIMALS)


async def _embedded(index: IndexSnapshot, texts: Iterable[str]) -> list[Embedding]:
    return await index.questions.of_texts(index.embedder, [Passage(text) for text in texts])
