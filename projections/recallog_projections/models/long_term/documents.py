"""The documents of entries in the semantic index: one for each form of an entry.

A change of its text, owner or type gives an entry another form, and so does its restoration. The newest
`limits.ENTRY_FORMS_ENDED` ended forms of an entry are retained; all of them are deleted when the entry is erased.
"""

from collections.abc import Sequence

import msgspec

from recallog_projections.index import passages
from recallog_projections.index.documents import (
    DOCUMENTS,
    IMPORTANCE_DECIMALS,
    SHARED,
    Document,
    DocumentMaker,
    clean,
    text_key,
    uuid_of,
)
from recallog_projections.index.language import questions
from recallog_projections.models.long_term import reading, tables
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.long_term.views import make_entries
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Record, codec
from recallog_schemas.models.long_term import limits as long_term_limits


class EndedForms(msgspec.Struct, frozen=True, array_like=True):
    """The documents of the ended forms of one entry."""

    points: tuple[str, ...]
    """The ids of their points, oldest first."""


ENDED = Table("index.ended", EndedForms)
"""At (space, "", id of the entry)."""


class EntryDocuments(DocumentMaker):
    """Makes the documents of entries: each change of an entry changes its document."""

    version = 1
    kinds = EntriesProjection.kinds
    tables = (ENDED,)

    def projections(self) -> Sequence[Projection]:
        return [make_entries()]

    def apply(self, rows: Rows, record: Record) -> int:
        live, ended = rows.list_written(tables.ROWS), rows.list_written(tables.ENDED)
        before = {row.id: row for row, _ in live if row is not None}
        after = {row.id: row for _, row in live if row is not None}
        lost = {row.id for row, _ in ended if row is not None} - after.keys()  # erased after it had ended
        erased = lost | (before.keys() - after.keys() - {row.id for _, row in ended if row is not None})
        more = 0
        for id_ in dict.fromkeys((*before, *after, *lost)):
            old, new = before.get(id_), after.get(id_)
            is_another = old is None or new is None or new.since != old.since
            if new is not None and clean(new.text):
                rows.put(DOCUMENTS, document_of(new, record.offset), "", key=point_id_of(new))
                more += is_another
            ends = old if old is not None and is_another and clean(old.text) else None
            if ends is not None or id_ in erased:
                more -= _end(rows, record, id_, ends, 0 if id_ in erased else long_term_limits.ENTRY_FORMS_ENDED)
        return more


MAKER = EntryDocuments()


def _end(rows: Rows, record: Record, id_: str, ended: EntryRow | None, most: int) -> int:
    """End the form of an entry that was `ended`, if any, and delete the ended forms beyond the newest `most`.

    Returns how many were deleted.
    """
    address = record.event.space, "", id_
    known = rows.get(ENDED, *address)
    points = () if known is None else known.points
    if ended is not None:
        offset, at = record.offset, record.time
        points = (*points, point_id_of(ended))
        document = msgspec.structs.replace(document_of(ended, offset), until=offset, until_at=at)
        rows.put(DOCUMENTS, document, "", key=points[-1])
    excess = max(0, len(points) - most)
    for key in points[:excess]:
        rows.delete(DOCUMENTS, "", key=key)
    if points[excess:]:
        rows.put(ENDED, EndedForms(points[excess:]), *address)
    elif known is not None:
        rows.delete(ENDED, *address)
    return excess


def document_of(row: EntryRow, written: int) -> Document:
    """The document of an entry after the record at the offset `written`."""
    event = reading.event_of(row)
    words = clean(row.text)
    return Document(
        space=row.space,
        agent=row.owner,
        kind=reading.CAPTURED if row.captured else event.kind,
        readers=SHARED if row.shared else tuple(sorted({row.owner, *row.audience})),
        session=row.session or "",
        is_question=questions.is_question(words),
        length=passages.length(words),
        turn=row.turn,
        at=row.at,
        offset=row.offset,
        event=codec.encode(event).decode(),
        text_key=text_key(words),
        importance=round(row.importance, IMPORTANCE_DECIMALS),
        entry=row.id,
        type=row.type,
        version=row.version,
        since=row.since,
        since_at=row.since_at,
        written=written,
    )


def point_id_of(row: EntryRow) -> str:
    """The id (a UUID) of the point of the present form of an entry."""
    return uuid_of(f"{row.space}\0{row.since}\0{row.id}", b"entry")
