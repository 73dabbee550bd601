"""Chunks of the documents of a workspace that recall may show: those that the documents of the agent have now.

The index finds chunks by their texts. What it found is looked up in the view of items: a chunk that its document does
not have any more is dropped, and its lines are those of the present document. Of documents that have changed since the
index processed them, the words are compared.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from recallog.models.long_term import candidates as entries_of
from recallog.reading.read_session import ReadSession
from recallog.retrieval import by_words
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.term_cache import TermCache
from recallog_projections.index.documents import text_key
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.workspace.chunks import Chunk
from recallog_projections.models.workspace.documents import KIND, TYPE, chunks_of
from recallog_projections.tables import RowKey
from recallog_schemas import Event, limits
from recallog_schemas.timestamps import moment_of

_NUMBERS = 1 << 12
"""More than the chunks of any document: 64 KiB have at most 1,093 times 60 lines, and 256 headings."""
_PAGE_DOCUMENTS = 100
_NAMED_CHARS_MAX = 100
"""With the lines, an id of at most `limits.ID_CHARS_MAX`."""


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A chunk of a present document."""

    space: str
    agent: str
    key: str
    """The key of the document."""
    row: ItemRow
    number: int
    """Its number in the document, from 0."""
    chunk: Chunk

    @property
    def place(self) -> int:
        """What stands for it where memories have their offsets: a negative number, since it shares the offset of its
        document with the other chunks."""
        return -1 - self.row.offset * _NUMBERS - self.number

    @property
    def id(self) -> str:
        """The document and the lines: `workspace/notes.md:12-40`; of a longer key its digest."""
        document = f"{'/'.join(fact_blocks.WORKSPACE)}/{self.key}"
        if len(document) > _NAMED_CHARS_MAX:
            document = hashlib.blake2b(document.encode(), digest_size=16).hexdigest()
        return f"{document}:{self.chunk.first}-{self.chunk.last}"

    @property
    def event(self) -> Event:
        """The event that would put the chunk alone in place of its document."""
        return Event.model_construct(
            id=self.id,
            space=self.space,
            agent=self.agent,
            kind=KIND,
            at=moment_of(self.row.at),
            payload={"namespace": list(fact_blocks.WORKSPACE), "key": self.key, "value": self.chunk.lines},
        )

    def as_entry(self) -> EntryRow:
        """It as an entry, whose words can be compared."""
        return entries_of.standing_for(
            self.space,
            self.agent,
            self.id,
            self.place,
            self.row.at,
            text=self.chunk.text,
            type=TYPE,
            source=self.key,
            version=self.row.version,
        )


async def of_candidates(
    reading: ReadSession, space: str, agent: str, candidates: Iterable[Candidate]
) -> tuple[list[Candidate], list[DocumentChunk]]:
    """Those of the candidates that documents of `agent` have, each at its `place`, and their chunks."""
    by_path: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_path.setdefault(each.document, []).append(each)
    rows = await _rows(reading, space, agent, by_path)
    kept, found = [], []
    for path, of_document in by_path.items():
        present: dict[int | None, list[DocumentChunk]] = {}
        for chunk in _chunks(space, agent, path, rows[path]):
            present.setdefault(text_key(chunk.chunk.text), []).append(chunk)
        for each in of_document:
            if same := present.get(each.text_key):
                found.append(same.pop(0))
                each.offset = found[-1].place
                kept.append(each)
    return kept, found


async def newest(reading: ReadSession, space: str, agent: str, beyond: int) -> list[DocumentChunk]:
    """The chunks of the documents of `agent` that have changed after the offset `beyond`, of the newest first, at most
    `limits.DOCUMENT_CHUNKS_COMPARED` and those of one document more."""
    prefix = items.newest_prefix(fact_blocks.WORKSPACE)

    async def read(session: ReadSession) -> list[DocumentChunk]:
        found: list[DocumentChunk] = []
        after: str | None = None
        while len(found) < limits.DOCUMENT_CHUNKS_COMPARED:
            page = await session.page(
                items.NEWEST, space, agent, prefix=prefix, newest_first=True, after=after, limit=_PAGE_DOCUMENTS
            )
            paths = [row.path for key, row in page.items if int(key.removeprefix(prefix)) > beyond]
            rows = await _rows(session, space, agent, [path for path in paths if _is_document(path)])
            for path, row in rows.items():
                if len(found) < limits.DOCUMENT_CHUNKS_COMPARED:
                    found += _chunks(space, agent, path, row)
            after = page.next
            if after is None or len(paths) < len(page.items):
                break
        return found

    return await reading.steady(read)


def by_their_words(
    found: Sequence[DocumentChunk],
    generation: str,
    cache: TermCache,
    searched: Sequence[str],
    idf: Mapping[str, float] | None,
) -> by_words.KeywordCandidates:
    """Chunks scored by the terms `searched`; `idf` as in `by_words.candidates`."""
    rows = [each.as_entry() for each in found]
    compared = by_words.candidates((), rows, generation, cache, searched, idf=idf)
    for each in compared.candidates:
        each.kind, each.document = KIND, TYPE
    return compared


def _is_document(path: str) -> bool:
    return tuple(items.names_of(path)[0]) == fact_blocks.WORKSPACE


def _chunks(space: str, agent: str, path: str, row: ItemRow | None) -> list[DocumentChunk]:
    if row is None:
        return []
    key = items.names_of(path)[1]
    return [DocumentChunk(space, agent, key, row, number, chunk) for number, chunk in enumerate(chunks_of(path, row))]


async def _rows(reading: ReadSession, space: str, agent: str, paths: Iterable[str]) -> dict[str, ItemRow | None]:
    needs = [RowKey(items.ROWS.name, space, agent, path) for path in paths]
    if not needs:
        return {}
    snapshot = await reading.snapshot(needs)
    return {need.key: snapshot.row(items.ROWS, *need[1:]) for need in needs}
