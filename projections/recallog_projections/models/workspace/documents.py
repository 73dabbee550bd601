"""The documents of workspaces in the semantic index, in chunks: one document of the index for each form of a chunk.

A chunk whose text leaves its document ends. Chunks are in a space of the engine of their own, so that queries for other
memories do not pass them.
"""

from collections.abc import Iterable, Sequence

import msgspec

from recallog_projections.index import passages
from recallog_projections.index.documents import (
    DOCUMENTS,
    Document,
    DocumentMaker,
    text_key,
    uuid_of,
    without_surrogates,
)
from recallog_projections.index.engines.engine import apart_from
from recallog_projections.models.items import fact_blocks
from recallog_projections.models.items import projection as items
from recallog_projections.models.items.projection import ItemRow, ItemsProjection
from recallog_projections.models.workspace import chunk_forms
from recallog_projections.models.workspace.chunk_forms import ChunkForm, DocumentChunks
from recallog_projections.models.workspace.chunks import DocumentChunk, chunks
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Event, Record

TYPE = "document"
"""The type of chunks."""
KIND = "item.put"
"""The kind of chunks in the index. Events and entries there have other kinds."""

CHUNKS = Table("index.chunks", DocumentChunks)
"""At (space, agent, path of the row of a document)."""


class ChunkDocuments(DocumentMaker):
    """Makes the documents of chunks, from the rows of items."""

    version = 1
    kinds = ItemsProjection.kinds
    tables = (CHUNKS,)

    def projections(self) -> Sequence[Projection]:
        return [ItemsProjection(fact_blocks.WORKSPACE)]

    def apply(self, rows: Rows, record: Record) -> int:
        return sum(_apply(rows, record, path) for path in _list_changed(record.event))


MAKER = ChunkDocuments()


def _list_changed(event: Event) -> Iterable[str]:
    """The paths of the rows of the documents of its workspace that an event may change."""
    if event.payload["namespace"] != list(fact_blocks.WORKSPACE):
        return ()
    keys = (event.payload["key"], event.payload["to"]) if event.kind == "item.moved" else (event.payload["key"],)
    return dict.fromkeys(items.path_of(fact_blocks.WORKSPACE, key) for key in keys)


def _apply(rows: Rows, record: Record, path: str) -> int:
    """Write the chunks that the record has added to a document, and end those that it has removed."""
    space, agent = record.event.space, record.event.agent
    before, after = rows.before(items.ROWS, space, agent, path), rows.get(items.ROWS, space, agent, path)
    if before is after:
        return 0
    known = rows.get(CHUNKS, space, agent, path) or DocumentChunks((), ())
    at = record.time
    changed = chunk_forms.changes(
        known.present,
        _number_chunks(chunks_of(path, before)),
        _number_chunks(chunks_of(path, after)),
        record.offset,
        at,
    )
    for form, chunk in changed.begun:
        document = _document_of(space, agent, path, form, chunk)
        rows.put(DOCUMENTS, document, "", key=_point_id_of(space, agent, path, form))
    points = list(known.ended)
    for form, chunk in changed.ended:
        points.append(_point_id_of(space, agent, path, form))
        document = _document_of(space, agent, path, form, chunk)
        document = msgspec.structs.replace(document, until=record.offset, until_at=at, written=record.offset)
        rows.put(DOCUMENTS, document, "", key=points[-1])
    retained = chunk_forms.select_retained(points)
    for key in points[: len(points) - len(retained)]:
        rows.delete(DOCUMENTS, "", key=key)
    if changed.present or retained:
        rows.put(CHUNKS, DocumentChunks(changed.present, retained), space, agent, path)
    return len(changed.begun) - (len(points) - len(retained))


def chunks_of(path: str, row: ItemRow | None) -> list[DocumentChunk]:
    """The chunks of the document with this row, at this path of rows; none if its value is not a text."""
    value = None if row is None or row.index is False else items.value_of(row)
    return chunks(items.names_of(path)[1], without_surrogates(value)) if isinstance(value, str) else []


def _number_chunks(found: Sequence[DocumentChunk]) -> list[tuple[int, DocumentChunk]]:
    return [(text_key(chunk.text), chunk) for chunk in found]


def _document_of(space: str, agent: str, path: str, form: ChunkForm, chunk: DocumentChunk) -> Document:
    return Document(
        space=apart_from(space),
        agent=agent,
        kind=KIND,
        readers=(agent,),
        length=passages.length(chunk.text),
        at=form.since_at,
        offset=form.since,
        text_key=form.text_key,
        text=chunk.text,
        entry=path,
        type=TYPE,
        since=form.since,
        since_at=form.since_at,
        written=form.since,
    )


def _point_id_of(space: str, agent: str, path: str, form: ChunkForm) -> str:
    """The id (a UUID) of the point of a form of a chunk."""
    return uuid_of(f"{space}\0{agent}\0{form.since}\0{form.number}\0{path}", b"chunk")
