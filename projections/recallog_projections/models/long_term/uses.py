"""Uses view: the counted reads of entries, and the hits and misses of agents' lookups.

The counts are in separate rows, so that reading an entry does not rewrite its text.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from recallog_projections.models.long_term import linking, tables
from recallog_projections.models.long_term.reading import may_read
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Record, limits


class UseRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The reads of one entry, by all agents that may read it."""

    accesses: int
    """At most `limits.INTEGER_MAX`."""
    last_at: int
    """When the newest of them in the order of the ledger happened, in microseconds since 1970."""
    offset: int
    """The offset of the record that counted it."""


class AgentUses(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One agent's lookups of entries."""

    lookups: int
    """At most `limits.INTEGER_MAX`, as `hits`."""
    hits: int
    """The lookups that found something."""


ROWS = Table("uses.rows", UseRow)
"""Entries that were read, at the address of their row in `entries.rows`."""
AGENTS = Table("uses.agents", AgentUses)
"""At (space, agent)."""

_ACCESSED = "memory.accessed"
_MOVING = frozenset({"memory.erased", "memory.transferred"})


class Uses:
    """Fold of `memory.accessed`: counts the live entries that the reading agent may see, and ignores other ids.

    The counts of an entry remain when it is retracted or archived, follow it to a new owner, and are deleted when it is
    erased. It follows the projection of entries, whose rows it reads.
    """

    name: ClassVar[str] = "uses"
    version: ClassVar[int] = 1
    kinds = _MOVING | {_ACCESSED}
    tables = (ROWS, AGENTS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if not record.reached:
                continue
            if record.event.kind == _ACCESSED:
                _count(rows, record)
            else:
                _follow(rows)


def row_key(row: EntryRow) -> RowKey:
    """The row key of the reads of an entry."""
    return RowKey(ROWS.name, row.space, row.owner, tables.key_of(row.offset))


def _count(rows: Rows, record: Record) -> None:
    event = record.event
    at = record.time
    for id_, times in event.payload.get("counts", {}).items():
        ref = rows.get(tables.IDS, event.space, "", id_)
        if ref is None or ref.status != tables.LIVE:
            continue
        entry = linking.live(rows, event.space, ref)
        if not may_read(event.agent, entry):
            continue
        address = row_key(entry)[1:]
        known = rows.get(ROWS, *address)
        accesses = _sum(known.accesses if known else 0, times)
        rows.put(ROWS, UseRow(accesses, at, record.offset), *address)
    hits, misses = event.payload.get("hits", 0), event.payload.get("misses", 0)
    if hits or misses:
        uses = rows.get(AGENTS, event.space, event.agent) or AgentUses(0, 0)
        counted = AgentUses(_sum(uses.lookups, hits, misses), _sum(uses.hits, hits))
        rows.put(AGENTS, counted, event.space, event.agent)


def _sum(*counts: int) -> int:
    return min(limits.INTEGER_MAX, sum(counts))


def _follow(rows: Rows) -> None:
    """Move or delete the counts of the entries that the record has transferred or erased."""
    written = [*rows.list_written(tables.ROWS), *rows.list_written(tables.ENDED)]
    after = {row.id: row for _, row in written if row is not None}
    for entry in (row for row, _ in written if row is not None):
        now = after.get(entry.id)
        if now is not None and now.owner == entry.owner:
            continue
        address = row_key(entry)[1:]
        counted = rows.get(ROWS, *address)
        if counted is None:
            continue
        rows.delete(ROWS, *address)
        if now is not None:
            rows.put(ROWS, counted, *row_key(now)[1:])
