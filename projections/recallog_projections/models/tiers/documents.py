"""The tiers of entries in the semantic index: the document of an entry says which tier the entry is in."""

from collections.abc import Iterable, Sequence

import msgspec

from recallog_projections.index.documents import DOCUMENTS, DocumentMaker, clean
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.documents import document_of, point_id_of
from recallog_projections.models.long_term.kinds import RETAINING
from recallog_projections.models.long_term.projection import EntriesProjection
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.long_term.uses import Uses
from recallog_projections.models.tiers import tables
from recallog_projections.models.tiers.projection import TiersProjection
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_schemas import Record


class TiersInDocuments(DocumentMaker):
    """Adds the tier of an entry to its document, whenever the entry or its tier changes."""

    version = 1
    kinds = EntriesProjection.kinds

    def projections(self) -> Sequence[Projection]:
        return [Uses(), TiersProjection()]

    def apply(self, rows: Rows, record: Record) -> int:
        written = [row for _, row in rows.list_written(entries.ROWS) if row is not None]
        if record.event.kind in RETAINING:  # an entry that the record has just retained without a tier has none
            written = [row for row in written if row.tier is not None]
        for row in {row.offset: row for row in (*written, *_in_other_tiers(rows))}.values():
            tier = rows.get(tables.ROWS, row.space, row.owner, entries.key_of(row.offset))
            if tier is not None and clean(row.text):
                document = msgspec.structs.replace(document_of(row, record.offset), tier=tier.tier)
                rows.put(DOCUMENTS, document, "", key=point_id_of(row))
        return 0


MAKER = TiersInDocuments()


def _in_other_tiers(rows: Rows) -> Iterable[EntryRow]:
    """The live entries that the record has moved to another tier, or given one."""
    for before, now in rows.list_written(tables.ROWS):
        if now is not None and (before is None or before.tier != now.tier):
            row = rows.get(entries.ROWS, now.space, now.owner, entries.key_of(now.offset))
            if row is not None:
                yield row
