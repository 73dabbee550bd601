"""Chunks of the present documents of an agent's workspace, which recall may show.

The index finds chunks by their texts. They are then looked up in the view of items: a chunk that is no longer in its
document is dropped, and its lines are those in the present document. Documents that have changed since the index
processed them are compared by words.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recallog.reading.read_session import ReadSession
from recallog.retrieval import by_index, by_words
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.query import RecallQuery, query_terms
from recallog.retrieval.sources import CandidateSource, PlainText, ShownText, SourceQuery, SourceResult
from recallog_projections.index.documents import text_key
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow
from recallog_projections.models.workspace.chunks import DocumentChunk
from recallog_projections.models.workspace.documents import KIND, TYPE, chunks_of
from recallog_projections.tables import RowKey
from recallog_schemas import Event
from recallog_schemas.models.workspace import limits as workspace_limits
from recallog_schemas.timestamps import moment_of

_NUMBERS = 1 << 12
"""More than the chunks of any document. 64 KiB have at most 1,093 times 60 lines, and 256 headings."""
_PAGE_DOCUMENTS = 100
_NAMED_CHARS_MAX = 100
"""Leaves room for the lines in an id of at most `limits.ID_CHARS_MAX`."""


class _Place(NamedTuple):
    """The place of a chunk."""

    key: str
    """The key of its document."""
    offset: int
    """The offset of the last change of its document."""
    chunk: DocumentChunk


class ChunkCandidates(CandidateSource):
    """Finds chunks, which are in a separate space of the index."""

    async def find(self, asked: SourceQuery, idf: Mapping[str, float]) -> SourceResult:
        """The chunks that the index found, and chunks of documents whose state at the query's time is not in the index.
        The index does not know the events that show chunks: with a filter of fields, only words are compared."""
        query, processed = asked.query, asked.snapshot.processed
        index = asked.index if query.has_fields is None else None
        if not query.documents:
            return SourceResult(idf=idf)
        candidates: list[Candidate] = []
        chunks: list[PlainText] = []
        beyond, words = -1, query_terms(query.text, ())  # a document that names an agent is not its memory
        if index is not None:
            by_meaning = await by_index.find(index, query.in_space_apart(), words)
            candidates, chunks = await _present(asked, by_meaning.candidates)
            idf = {**by_meaning.idf, **idf}
            # For the past, the index has the chunks of a limited number of changes.
            is_past = query.at_until is not None or index.checkpoint > processed
            beyond = -1 if is_past else index.checkpoint
        if beyond < processed:
            known = {chunk.offset for chunk in chunks}
            others = [chunk for chunk in await _newest(asked, beyond) if chunk.offset not in known]
            generation = asked.snapshot.computed_at["generation"]
            compared = by_words.Compared(texts=others, are_parts=True)
            newer = by_words.candidates(compared, generation, asked.cache, words.terms, idf)
            candidates += newer.candidates
            chunks += others
            idf = {**newer.idf, **idf}  # in memories, names of agents are not terms
        return SourceResult(candidates, chunks, idf)

    def show(self, text: PlainText) -> ShownText:
        """The chunk as the event that would replace its document by the chunk alone."""
        key, offset, chunk = text.details
        event = Event.model_construct(
            id=_id_of(key, chunk),
            space=text.space,
            agent=text.owner,
            kind=text.kind,
            at=moment_of(text.at),
            payload={"namespace": list(fact_blocks.WORKSPACE), "key": key, "value": chunk.lines},
        )
        return ShownText(event, text.text, offset, (chunk.first, chunk.last))


SOURCE = ChunkCandidates()


async def _present(asked: SourceQuery, candidates: Iterable[Candidate]) -> tuple[list[Candidate], list[PlainText]]:
    """The candidates whose chunks are still in documents of the agent, and these chunks."""
    space, agent = asked.query.space, asked.query.agent
    by_path: dict[str, list[Candidate]] = {}
    for each in candidates:
        by_path.setdefault(each.entry, []).append(each)
    rows = await _rows(asked.reading, space, agent, by_path)
    kept, found = [], []
    for path, of_document in by_path.items():
        present: dict[int | None, list[PlainText]] = {}
        for chunk in _chunks(space, agent, path, rows[path]):
            present.setdefault(text_key(chunk.text), []).append(chunk)
        for each in of_document:
            if same := present.get(each.text_key):
                found.append(same.pop(0))
                each.offset, each.type = found[-1].offset, TYPE
                kept.append(each)
    return kept, found


async def _newest(asked: SourceQuery, beyond: int) -> list[PlainText]:
    """Chunks of the agent's documents that have changed after the offset `beyond`, of the newest document first.
    Documents are added until there are at least `workspace_limits.DOCUMENT_CHUNKS_COMPARED` chunks."""
    prefix = items.newest_prefix(fact_blocks.WORKSPACE)
    space, agent = asked.query.space, asked.query.agent

    async def read(session: ReadSession) -> list[PlainText]:
        found: list[PlainText] = []
        after: str | None = None
        while len(found) < workspace_limits.DOCUMENT_CHUNKS_COMPARED:
            page = await session.page(
                items.NEWEST, space, agent, prefix=prefix, newest_first=True, after=after, limit=_PAGE_DOCUMENTS
            )
            paths = [row.path for key, row in page.items if int(key.removeprefix(prefix)) > beyond]
            rows = await _rows(session, space, agent, [path for path in paths if _is_document(path)])
            for path, row in rows.items():
                if len(found) < workspace_limits.DOCUMENT_CHUNKS_COMPARED:
                    found += [each for each in _chunks(space, agent, path, row) if _passes(asked.query, each)]
            after = page.next
            if after is None or len(paths) < len(page.items):
                break
        return found

    return await asked.reading.steady(read)


def _passes(query: RecallQuery, chunk: PlainText) -> bool:
    return query.has_fields is None or query.has_fields(SOURCE.show(chunk).event)


def _is_document(path: str) -> bool:
    return tuple(items.names_of(path)[0]) == fact_blocks.WORKSPACE


def _chunks(space: str, agent: str, path: str, row: ItemRow | None) -> list[PlainText]:
    if row is None:
        return []
    key = items.names_of(path)[1]
    return [
        PlainText(
            space=space,
            owner=agent,
            offset=-1 - row.offset * _NUMBERS - number,  # unique: chunks share the offset of their document
            at=row.at,
            kind=KIND,
            type=TYPE,
            text=chunk.text,
            version=row.version,
            details=_Place(key, row.offset, chunk),
        )
        for number, chunk in enumerate(chunks_of(path, row))
    ]


def _id_of(key: str, chunk: DocumentChunk) -> str:
    """The document and the lines: `workspace/notes.md:12-40`. A longer key is replaced by its digest."""
    document = f"{'/'.join(fact_blocks.WORKSPACE)}/{key}"
    if len(document) > _NAMED_CHARS_MAX:
        document = hashlib.blake2b(document.encode(), digest_size=16).hexdigest()
    return f"{document}:{chunk.first}-{chunk.last}"


async def _rows(reading: ReadSession, space: str, agent: str, paths: Iterable[str]) -> dict[str, ItemRow | None]:
    needs = [RowKey(items.ROWS.name, space, agent, path) for path in paths]
    if not needs:
        return {}
    snapshot = await reading.snapshot(needs)
    return {need.key: snapshot.row(items.ROWS, *need[1:]) for need in needs}
