"""Entry lookup: entries by id, in their present form, for an agent that may read them."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from recallog.reading.read_session import ReadSession
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.tables import EntryRef, EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas.validation import is_text


class FoundEntry(NamedTuple):
    """The verdict on an event that would retain an entry, and the entry."""

    ref: EntryRef
    row: EntryRow | None
    """None if the entry is erased, or never existed."""

    def is_shown_to(self, agent: str) -> bool:
        """Whether the id refers to the entry for `agent`. The id of a captured call refers to its event, unless the
        agent was given the entry."""
        row = self.readable_by(agent)
        return not self.ref.captured or (row is not None and not row.captured)

    def readable_by(self, agent: str) -> EntryRow | None:
        """The entry, if `agent` may read it. A retracted or archived entry is readable only to its owner."""
        row = self.row
        return row if row is not None and entry_reading.may_read(agent, row, self.ref.status) else None


def verdict_keys(space: str, ids: Collection[str]) -> dict[str, RowKey]:
    """The keys of the verdicts on events, by their ids."""
    return {each: tables.ref_key(space, each) for each in dict.fromkeys(ids) if is_text(each)}


async def entries_by_id(reading: ReadSession, space: str, ids: Collection[str]) -> Mapping[str, FoundEntry]:
    """The verdicts and entries of one moment. Ids of other events are left out."""

    async def read(session: ReadSession) -> dict[str, FoundEntry]:
        keys = verdict_keys(space, ids)
        snapshot = await session.snapshot(keys.values())
        refs = {each: snapshot.row(tables.IDS, *key[1:]) for each, key in keys.items()}
        known = {each: (ref, tables.row_key(space, ref)) for each, ref in refs.items() if ref is not None}
        needs = [key for _, key in known.values() if key is not None]
        if not needs:
            return {each: FoundEntry(ref, None) for each, (ref, _) in known.items()}
        rows = await session.snapshot(needs)
        return {
            each: FoundEntry(ref, None if key is None else rows.row(_TABLES[key.table], *key[1:]))
            for each, (ref, key) in known.items()
        }

    return await reading.steady(read)


_TABLES = {table.name: table for table in (tables.ROWS, tables.ENDED)}
