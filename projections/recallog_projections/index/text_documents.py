"""Documents of the index for the texts in the rows of one projection."""

from collections.abc import Collection, Sequence
from typing import Protocol

from recallog_projections.index import passages
from recallog_projections.index.documents import (
    DOCUMENTS,
    IMPORTANCE_DECIMALS,
    Document,
    DocumentMaker,
    clean,
    text_key,
    uuid_of,
)
from recallog_projections.index.kept_text import KeptText, KeptTexts
from recallog_projections.index.language import questions
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import Table
from recallog_schemas import Record, codec


class Folding(Projection, Protocol):
    """A projection that names the kinds that it reads."""

    @property
    def kinds(self) -> Collection[str]: ...


class TextDocuments(DocumentMaker):
    """Makes the documents of the texts in the rows of one table: a text that leaves its row leaves the index."""

    version = 1

    def __init__(self, projection: Folding, table: Table[KeptTexts]) -> None:
        """`projection` writes the rows of `table`."""
        self.kinds = projection.kinds
        self._projection, self._table = projection, table

    def projections(self) -> Sequence[Projection]:
        return [self._projection]

    def apply(self, rows: Rows, record: Record) -> int:
        more = 0
        for row_before, row in rows.list_written(self._table):
            before, now = _by_point(row_before), _by_point(row)
            for point in before:
                if point not in now:
                    rows.delete(DOCUMENTS, "", key=point)
            for point, text in now.items():
                if before.get(point) != text:
                    rows.put(DOCUMENTS, _document_of(text), "", key=point)
            more += len(now) - len(before)
        return more


def point_of(text: KeptText) -> str:
    """The id of the point of a text, a UUID."""
    return uuid_of(f"{text.space}\0{text.offset}\0{text.id}", b"kept")


def _by_point(row: KeptTexts | None) -> dict[str, KeptText]:
    return {} if row is None else {point_of(each): each for each in row.texts if clean(each.text)}


def _document_of(text: KeptText) -> Document:
    words = clean(text.text)
    return Document(
        space=text.space,
        agent=text.owner,
        kind=text.kind,
        readers=tuple(sorted({text.owner, *text.audience})),
        session=text.session or "",
        is_question=questions.is_question(words),
        length=passages.length(words),
        turn=text.turn,
        at=text.at,
        offset=text.offset,
        event=codec.encode(text.event).decode(),
        text_key=text_key(words),
        importance=round(text.importance, IMPORTANCE_DECIMALS),
        text=words,
        entry=text.id,
        type=text.type,
        version=text.version,
        since=text.offset,
        since_at=text.at,
        written=text.offset,
    )
