"""Chunks of the documents of a workspace that recall may show: those that the documents of the agent have now.

The index finds chunks by their texts. What it found is looked up in the view of items: a chunk that its document does
not have any more is dropped, and its lines are those of the present document. Of documents that have changed since the
index processed them, the words are compared.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recallog.reading.read_session import ReadSession
from recallog.retrieval import by_index, by_words
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.query import query_terms
from recallog.retrieval.sources import Asked, CandidateSource, Found, Shown
from recallog_projections.index.documents import text_key
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.workspace.chunks import Chunk
from recallog_projections.models.workspace.documents import KIND, TYPE, chunks_of
from recallog_projections.tables import RowKey
from recallog_schemas import Event, kinds, limits
from recallog_schemas.timestamps import moment_of

_NUMBERS = 1 << 12
"""More than the chunks of any document: 64 KiB have at most 1,093 times 60 lines, and 256 headings."""
_PAGE_DOCUMENTS = 100
_NAMED_CHARS_MAX = 100
"""With the lines, an id of at most `limits.ID_CHARS_MAX`."""


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A chunk of a present document, as a text of recall."""

    space: str
    owner: str
    key: str
    """The key of the document."""
    row: ItemRow
    number: int
    """Its number in the document, from 0."""
    chunk: Chunk
    session: None = None
    turn: int = 0
    kind: str = KIND
    type: str = TYPE
    importance: float = kinds.DEFAULT_IMPORTANCE

    @property
    def offset(self) -> int:
        """A negative number, since it shares the offset of its document with the other chunks."""
        return -1 - self.row.offset * _NUMBERS - self.number

    @property
    def at(self) -> int:
        return self.row.at

    @property
    def version(self) -> int:
        return self.row.version

    @property
    def text(self) -> str:
        return self.chunk.text

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
            agent=self.owner,
            kind=self.kind,
            at=moment_of(self.at),
            payload={"namespace": list(fact_blocks.WORKSPACE), "key": self.key, "value": self.chunk.lines},
        )


class ChunkCandidates(CandidateSource):
    """Finds chunks, which the index has in a space of their own."""

    async def find(self, asked: Asked, idf: Mapping[str, float]) -> Found:
        """The chunks that the index found, and others of documents that it does not have as they are now, or were
        then."""
        query, index, processed = asked.query, asked.index, asked.snapshot.processed
        if not query.documents:
            return Found(idf=idf)
        candidates: list[Candidate] = []
        chunks: list[DocumentChunk] = []
        beyond, words = -1, query_terms(query.text, ())  # a document may name an agent, and is no memory of it
        if index is not None:
            by_meaning = await by_index.find(index, query.in_space_apart(), words)
            candidates, chunks = await _present(asked, by_meaning.candidates)
            idf = {**by_meaning.idf, **idf}
            # Of the past, it has the chunks of a limited number of changes.
            is_past = query.at_until is not None or index.checkpoint > processed
            beyond = -1 if is_past else index.checkpoint
        if beyond < processed:
            known = {chunk.offset for chunk in chunks}
            others = [chunk for chunk in await _newest(asked, beyond) if chunk.offset not in known]
            generation = asked.snapshot.computed_at["generation"]
            newer = by_words.candidates((), others, generation, asked.cache, words.terms, idf=idf, are_parts=True)
            candidates += newer.candidates
            chunks += others
            idf = {**newer.idf, **idf}  # of memories, names of agents are no terms
        return Found(candidates, chunks, idf)

    def shown(self, text: DocumentChunk) -> Shown:
        return Shown(text.event, text.text, text.row.offset, (text.chunk.first, text.chunk.last))


SOURCE = ChunkCandidates()


async def _present(asked: Asked, candidates: Iterable[Candidate]) -> tuple[list[Candidate], list[DocumentChunk]]:
    """Those of the candidates that documents of the agent have, and their chunks."""
    space, agent = asked.query.space, asked.query.agent
    by_path: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_path.setdefault(each.entry, []).append(each)
    rows = await _rows(asked.reading, space, agent, by_path)
    kept, found = [], []
    for path, of_document in by_path.items():
        present: dict[int | None, list[DocumentChunk]] = {}
        for chunk in _chunks(space, agent, path, rows[path]):
            present.setdefault(text_key(chunk.text), []).append(chunk)
        for each in of_document:
            if same := present.get(each.text_key):
                found.append(same.pop(0))
                each.offset, each.type = found[-1].offset, TYPE
                kept.append(each)
    return kept, found


async def _newest(asked: Asked, beyond: int) -> list[DocumentChunk]:
    """The chunks of the documents of the agent that have changed after the offset `beyond`, of the newest first, at
    most `limits.DOCUMENT_CHUNKS_COMPARED` and those of one document more."""
    prefix = items.newest_prefix(fact_blocks.WORKSPACE)
    space, agent = asked.query.space, asked.query.agent

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

    return await asked.reading.steady(read)


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
