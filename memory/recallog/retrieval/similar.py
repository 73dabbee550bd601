"""Similar entries: those whose texts have the highest cosine with a text, by the model of the index.

The cosine is that of two texts alone: what a writer records as `nearest`, and what lessons are ranked by.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from recallog.index.indexer import IndexSnapshot
from recallog.index.semantic_index import SemanticIndex
from recallog.reading.read_session import ReadSession
from recallog.retrieval import entries
from recallog_projections.index.embedders.embedder import Passage, Vectors
from recallog_projections.index.engines.engine import EVERYBODY, Filter, Search
from recallog_projections.tables import RowKey
from recallog_projections.views.entries import reading as entry_reading
from recallog_projections.views.entries import tables
from recallog_projections.views.entries.tables import EntryRow
from recallog_schemas import limits

_CANDIDATES = 4
"""How many times as many points are searched as entries are wanted: some of them may have changed since."""
_DECIMALS = 6
_EMBEDDED_TEXTS = 32
"""Texts of one call of the embedder: an embedder on another machine has one deadline for them."""
_VECTORS_KEPT = 20_000
"""Vectors that are kept while many texts are compared: about 30 MB."""


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


class TextOfTypes(NamedTuple):
    """A text, and the types of the entries that it is compared with."""

    text: str
    types: Collection[str] | None


class TextVectors:
    """The vectors of the texts that were compared last, which are then embedded once."""

    def __init__(self) -> None:
        self._model = ""
        self._vectors: OrderedDict[str, Vectors | None] = OrderedDict()

    async def of(self, index: IndexSnapshot, texts: Iterable[str]) -> dict[str, Vectors | None]:
        """By text: its vector; None for one that the model cannot read. Raises `EmbedderUnavailable`."""
        if index.embedder.model != self._model:
            self._model = index.embedder.model
            self._vectors.clear()
        wanted = list(dict.fromkeys(texts))
        found = {text: self._vectors[text] for text in wanted if text in self._vectors}
        new = [text for text in wanted if text not in found]
        for first in range(0, len(new), _EMBEDDED_TEXTS):
            part = new[first : first + _EMBEDDED_TEXTS]
            embedded = await index.questions.of_texts(index.embedder, [Passage(text) for text in part])
            found |= {text: each.vector if each.readable else None for text, each in zip(part, embedded, strict=True)}
        self._vectors |= found
        while len(self._vectors) > _VECTORS_KEPT:
            self._vectors.popitem(last=False)
        return found


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
    compared = _Comparison(reading, await index.open(reading.partition), space, agent, owned=owned, limit=limit)
    (found,) = await compared.of([TextOfTypes(text, types)])
    return found


async def similar_to_each(
    reading: ReadSession,
    index: SemanticIndex,
    space: str,
    agent: str,
    rows: Sequence[EntryRow],
    vectors: TextVectors,
    *,
    limit: int,
) -> list[SimilarEntries]:
    """For each of `rows`, the entries of the agent of its type that are most similar to it, itself among them.

    `vectors` are those of earlier calls. Raises `IndexUnavailable`.
    """
    compared = _Comparison(
        reading, await index.open(reading.partition), space, agent, owned=True, limit=limit, vectors=vectors
    )
    return await compared.of([TextOfTypes(row.text, [row.type]) for row in rows])


@dataclass(slots=True)
class _Comparison:
    """Compares texts with the live entries of an agent, or with all that it may read, at one moment."""

    reading: ReadSession
    index: IndexSnapshot
    space: str
    agent: str
    owned: bool
    limit: int
    vectors: TextVectors = field(default_factory=TextVectors)

    async def of(self, texts: Sequence[TextOfTypes]) -> list[SimilarEntries]:
        """The entries that are most similar to each of `texts`."""
        asked = await self.vectors.of(self.index, [each.text for each in texts])
        found = iter(await self._candidates([each for each in texts if asked[each.text] is not None], asked))
        candidates = [next(found) if asked[each.text] is not None else [] for each in texts]
        compared = await self.vectors.of(self.index, [row.text for rows in candidates for row in rows])
        return [
            SimilarEntries(self._best(asked[each.text], rows, compared), self.index.embedder.model)
            for each, rows in zip(texts, candidates, strict=True)
        ]

    async def _candidates(
        self, texts: Sequence[TextOfTypes], vectors: Mapping[str, Vectors | None]
    ) -> list[list[EntryRow]]:
        """For each text: entries that may be similar."""
        searches = [
            Search(
                Filter(
                    self.space,
                    (self.agent, EVERYBODY),
                    [self.agent] if self.owned else None,
                    [entry_reading.KIND, entry_reading.CAPTURED],
                    types=each.types,
                ),
                _CANDIDATES * self.limit,
                dense=vectors[each.text],
                payload=("agent", "offset"),
            )
            for each in texts
        ]
        if not searches:
            return []
        needs = [
            [
                RowKey(tables.ROWS.name, self.space, hit.payload["agent"], tables.key_of(hit.payload["offset"]))
                for hit in hits
            ]
            for hits in await self.index.engine.search(self.index.collection, searches)
        ]
        snapshot = await self.reading.snapshot(need for of_text in needs for need in of_text)
        newest: Sequence[EntryRow] = ()
        if self.index.checkpoint != snapshot.processed:
            rows = await entries.newest(self.reading, self.space, self.agent)
            newest = [row for row in rows if row.offset > self.index.checkpoint][-limits.SIMILAR_ENTRIES :]
        found = []
        for each, of_text in zip(texts, needs, strict=True):
            known = [row for need in of_text if (row := snapshot.row(tables.ROWS, *need[1:])) is not None]
            by_offset = {row.offset: row for row in (*known, *newest) if self._wants(row, each.types)}
            found.append(list(by_offset.values()))
        return found

    def _wants(self, row: EntryRow, types: Collection[str] | None) -> bool:
        if (types is not None and row.type not in types) or (self.owned and row.owner != self.agent):
            return False
        return entry_reading.may_read(self.agent, row)

    def _best(
        self, asked: Vectors | None, rows: Sequence[EntryRow], vectors: Mapping[str, Vectors | None]
    ) -> list[SimilarEntry]:
        found = [
            SimilarEntry(row, _cosine(asked, vector))
            for row in rows
            if asked is not None and (vector := vectors[row.text]) is not None
        ]
        return sorted(found, key=lambda one: (-one.similarity, one.row.offset))[: self.limit]


def _cosine(one: Vectors, other: Vectors) -> float:
    return round(float(np.dot(one.astype(np.float64), other.astype(np.float64))), _DECIMALS)
