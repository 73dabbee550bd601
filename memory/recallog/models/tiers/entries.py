"""The tiers of entries, for views that show entries and for searches in some tiers."""

from collections.abc import Iterable

from recallog.models.long_term.additions import EntryAddition
from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.tiers import tables
from recallog_projections.tables import RowKey


class TiersOfEntries(EntryAddition):
    """Determines the tiers of entries."""

    async def tiers_of(self, reading: ReadSession, rows: Iterable[EntryRow]) -> dict[int, str]:
        keys = [RowKey(tables.ROWS.name, row.space, row.owner, entries.key_of(row.offset)) for row in rows]
        if not keys:
            return {}
        snapshot = await reading.snapshot(keys)
        found = (snapshot.row(tables.ROWS, *key[1:]) for key in keys)
        return {row.offset: row.tier for row in found if row is not None}


ADDITION = TiersOfEntries()
