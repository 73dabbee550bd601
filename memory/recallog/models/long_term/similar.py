"""Similar entries: those whose texts have the highest cosine with a text, by the model of the index.

The cosine depends only on the two texts. Writers record it as `nearest`, and lessons are ranked by it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from recallog.index.indexer import IndexSnapshot
from recallog.models.long_term import live_entries
from recallog.reading.readings import AgentReading
from recallog_projections.index.embedders.embedder import Vectors
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Search
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.documents import point_id_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas.models.long_term import limits as long_term_limits

_CANDIDATES = 4
"""The factor between the points that are searched and the entries that are wanted, since some may have changed."""
_CANDIDATES_LEAST = 32
STORED_ERROR = 0.01
"""The largest difference between a cosine of stored vectors and that of the texts: ten times the error that 8 bits per
number cause."""
DECIMALS = 6


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
    readable: bool
    """Whether the model can read the text. If not, no entry is similar to it."""


class _Asked(NamedTuple):
    """A text with which entries are compared."""

    text: str
    vector: Vectors | None
    """Its vector, possibly as stored in the index; None if the model cannot read the text."""
    types: Collection[str] | None
    """The types of the entries; None: all."""
    offset: int | None = None
    """The offset of the entry that has the text, which is not compared with itself."""


def compared_by(row: EntryRow) -> tuple[object, ...]:
    """A key that two entries of one owner and type share if one may duplicate the other."""
    return row.audience, row.shared, row.subject


async def similar(
    reading: AgentReading,
    text: str,
    *,
    owned: bool,
    types: Collection[str] | None = None,
    wants: Callable[[EntryRow], bool] = lambda row: True,
    limit: int,
) -> SimilarEntries:
    """The live entries most similar to `text`, among those that the agent owns, or all that it may read, of some types
    or all.

    Entries that the index has not processed are compared too, the newest `limits.SIMILAR_ENTRIES` of them. If the model
    cannot read the text, no entry is similar to it. Entries that are not wanted are left out. Raises
    `IndexUnavailable`.
    """
    opened: IndexSnapshot = await reading.searcher.open_index(reading.partition)
    vectors = await opened.questions.vectors(opened.embedder, [text])
    compared = _Comparison(reading, opened, owned, wants, limit, -1.0)
    (found,) = await compared.of([_Asked(text, vectors[text], types)])
    return found


async def similar_to_each(
    reading: AgentReading, rows: Sequence[EntryRow], *, least: float, limit: int
) -> list[SimilarEntries]:
    """For each of `rows`, the other entries of its agent and type that are most similar to it.

    Entries whose similarity is below `least` may be missing. Raises `IndexUnavailable`.
    """
    opened: IndexSnapshot = await reading.searcher.open_index(reading.partition)
    compared = _Comparison(reading, opened, True, lambda row: True, limit, least)
    vectors = await compared.fetch_vectors(rows)
    return await compared.of([_Asked(row.text, vectors[row.offset], [row.type], row.offset) for row in rows])


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares texts with the live entries of an agent, or with all that it may read, at one moment."""

    reading: AgentReading
    index: IndexSnapshot
    owned: bool
    wants: Callable[[EntryRow], bool]
    limit: int
    least: float

    async def of(self, texts: Sequence[_Asked]) -> list[SimilarEntries]:
        """The entries that are most similar to each of `texts`.

        The vectors in the index choose which texts are embedded and compared exactly.
        """
        found = iter(await self._candidates([asked for asked in texts if asked.vector is not None]))
        candidates = [next(found) if asked.vector is not None else [] for asked in texts]
        stored = await self.fetch_vectors({row.offset: row for rows in candidates for row in rows}.values())
        close = [self._close(asked, rows, stored) for asked, rows in zip(texts, candidates, strict=True)]
        needed = [text for asked, rows in zip(texts, close, strict=True) if rows for text in self._texts(asked, rows)]
        vectors = await self.index.questions.vectors(self.index.embedder, needed)
        return [
            SimilarEntries(self._best(asked, rows, vectors), self.index.embedder.model, asked.vector is not None)
            for asked, rows in zip(texts, close, strict=True)
        ]

    async def fetch_vectors(self, rows: Collection[EntryRow]) -> dict[int, Vectors | None]:
        """By offset: the vector of an entry's text, as stored in the index; None if the model cannot read the text."""
        ids = {row.offset: point_id_of(row) for row in rows}
        points = await self.index.engine.retrieve(self.index.collection, list(ids.values()), payload=(), vectors=True)
        found: dict[int, Vectors | None] = {}
        for row in rows:
            point = points.get(ids[row.offset])
            # A longer text has a vector for each of its passages, and no vector for the whole.
            if point is not None and point.dense is not None and len(point.dense) == 1:
                found[row.offset] = point.dense[0]
        others = [row for row in rows if row.offset not in found]
        vectors = await self.index.questions.vectors(self.index.embedder, [row.text for row in others])
        return found | {row.offset: vectors[row.text] for row in others}

    async def _candidates(self, texts: Sequence[_Asked]) -> list[list[EntryRow]]:
        """For each text, the entries that may be similar."""
        searches = [
            Search(
                Filter(
                    self.reading.space,
                    (self.reading.agent, EVERYBODY),
                    [self.reading.agent] if self.owned else None,
                    [entry_reading.KIND, entry_reading.CAPTURED],
                    types=asked.types,
                ),
                max(_CANDIDATES * self.limit, _CANDIDATES_LEAST),
                dense=asked.vector,
                payload=("agent", "offset"),
            )
            for asked in texts
        ]
        if not searches:
            return []
        needs = [
            [
                RowKey(tables.ROWS.name, self.reading.space, hit.payload["agent"], tables.key_of(hit.payload["offset"]))
                for hit in hits
            ]
            for hits in await self.index.engine.search(self.index.collection, searches)
        ]
        snapshot = await self.reading.snapshot(need for of_text in needs for need in of_text)
        newest: Sequence[EntryRow] = ()
        if self.index.checkpoint != snapshot.processed:
            rows = await live_entries.newest(
                self.reading, self.reading.space, self.reading.agent, long_term_limits.SIMILAR_ENTRIES
            )
            newest = [row for row in rows if row.offset > self.index.checkpoint]
        found = []
        for asked, of_text in zip(texts, needs, strict=True):
            known = [row for need in of_text if (row := snapshot.row(tables.ROWS, *need[1:])) is not None]
            by_offset = {row.offset: row for row in (*known, *newest) if self._wants(row, asked)}
            found.append(list(by_offset.values()))
        return found

    def _wants(self, row: EntryRow, asked: _Asked) -> bool:
        if row.offset == asked.offset or (self.owned and row.owner != self.reading.agent):
            return False
        if asked.types is not None and row.type not in asked.types:
            return False
        return entry_reading.may_read(self.reading.agent, row) and self.wants(row)

    def _close(
        self, asked: _Asked, rows: Sequence[EntryRow], stored: Mapping[int, Vectors | None]
    ) -> Sequence[EntryRow]:
        """The `rows` that may be among the most similar ones."""
        if asked.vector is None:
            return []
        readable = [(row, vector) for row in rows if (vector := stored[row.offset]) is not None]
        cosines = [cosine(asked.vector, vector) for _, vector in readable]
        last = sorted(cosines, reverse=True)[: self.limit][-1:]
        least = max([self.least, *last]) - 2 * STORED_ERROR
        return [row for (row, _), cosine in zip(readable, cosines, strict=True) if cosine >= least]

    @staticmethod
    def _texts(asked: _Asked, rows: Sequence[EntryRow]) -> list[str]:
        return [asked.text, *(row.text for row in rows)]

    def _best(
        self, asked: _Asked, rows: Sequence[EntryRow], vectors: Mapping[str, Vectors | None]
    ) -> list[SimilarEntry]:
        vector = vectors.get(asked.text)
        found = [
            SimilarEntry(row, cosine(vector, other))
            for row in rows
            if vector is not None and (other := vectors[row.text]) is not None
        ]
        return sorted(found, key=lambda one: (-one.similarity, one.row.offset))[: self.limit]


def cosine(one: Vectors, other: Vectors) -> float:
    return round(float(np.dot(one.astype(np.float64), other.astype(np.float64))), DECIMALS)
