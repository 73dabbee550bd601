"""Live entries that an agent may read: by their addresses, the newest ones, and pages of them."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter

from recallog.models.long_term import additions
from recallog.reading.filters import Passes
from recallog.reading.read_session import ReadSession, RowPage
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_schemas import limits
from recallog_schemas.models.long_term import limits as long_term_limits


@dataclass(frozen=True, slots=True)
class WantedEntries:
    """Which of its live entries an agent requests. None in a field means no restriction."""

    type: str | None = None
    tier: str | None = None
    has_fields: Passes | None = None
    """The filter of their fields."""


async def at(
    reading: ReadSession, space: str, agent: str, addresses: Collection[tuple[str, int]]
) -> dict[int, EntryRow]:
    """By offset: the rows of the live entries at these owners and offsets that `agent` may read."""
    needs = [RowKey(tables.ROWS.name, space, owner, tables.key_of(offset)) for owner, offset in addresses]
    if not needs:
        return {}
    snapshot = await reading.snapshot(needs)
    rows = [snapshot.row(tables.ROWS, *need[1:]) for need in needs]
    return {row.offset: row for row in rows if row is not None and entry_reading.may_read(agent, row)}


async def page_of(
    session: ReadSession, space: str, agent: str, wanted: WantedEntries, after: str | None, limit: int
) -> RowPage[EntryRow]:
    """The wanted live entries of an agent, newest first, after the key `after`.

    With a tier or a filter, the page is filled from as many pages of rows as needed. It then has a next page only if
    that page has an entry.
    """
    if wanted.tier is None and wanted.has_fields is None:
        return await _page_of(session, space, agent, wanted.type, after, limit)
    found: list[tuple[str, EntryRow]] = []
    while True:
        page = await _page_of(session, space, agent, wanted.type, after, limits.PAGE_ITEMS_MAX)
        found += await _choose_rows(session, page.items, wanted)
        after = page.next
        if len(found) > limit or after is None:
            return RowPage(found[:limit], last=len(found) <= limit)


async def _choose_rows(
    session: ReadSession, items: Sequence[tuple[str, EntryRow]], wanted: WantedEntries
) -> Sequence[tuple[str, EntryRow]]:
    if wanted.has_fields is not None:
        items = [(key, row) for key, row in items if entry_reading.has_fields(row, wanted.has_fields)]
    if wanted.tier is None:
        return items
    tiers = await additions.tiers_of(session, [row for _, row in items])
    return [(key, row) for key, row in items if tiers.get(row.offset) == wanted.tier]


async def _page_of(
    session: ReadSession, space: str, agent: str, entry_type: str | None, after: str | None, limit: int
) -> RowPage[EntryRow]:
    if entry_type is None:
        return await session.page(tables.ROWS, space, agent, newest_first=True, after=after, limit=limit)
    prefix = f"{entry_type}/"
    behind = None if after is None else f"{prefix}{after}"
    page = await session.page(tables.OF_TYPE, space, agent, prefix=prefix, newest_first=True, after=behind, limit=limit)
    keys = [key.removeprefix(prefix) for key, _ in page.items]
    snapshot = await session.snapshot([RowKey(tables.ROWS.name, space, agent, key) for key in keys])
    rows = [(key, snapshot.row(tables.ROWS, space, agent, key)) for key in keys]
    return RowPage([(key, row) for key, row in rows if row is not None], page.last)


async def newest_of_type(reading: ReadSession, space: str, agent: str, entry_type: str) -> Sequence[EntryRow]:
    """The newest live entries of a type: up to `limits.RECALL_ENTRIES` of the agent's own, and those among the same
    number of the newest entries that it may read."""

    async def read(session: ReadSession) -> list[EntryRow]:
        own = await page_of(session, space, agent, WantedEntries(entry_type), None, long_term_limits.RECALL_ENTRIES)
        return [*(row for _, row in own.items), *await _newest(session, space, agent, long_term_limits.RECALL_ENTRIES)]

    found = {row.offset: row for row in await reading.steady(read) if row.type == entry_type}
    return [row for row in found.values() if entry_reading.may_read(agent, row)]


async def newest(
    reading: ReadSession,
    space: str,
    agent: str,
    most: int = long_term_limits.RECALL_ENTRIES,
    has_fields: Passes | None = None,
) -> Sequence[EntryRow]:
    """The newest live entries that `agent` may read, at most `most`, in ledger order. With `has_fields`, those that
    pass it."""
    if has_fields is not None:
        return (await passing(reading, space, agent, has_fields))[-most:]
    found = await reading.steady(lambda session: _newest(session, space, agent, most))
    return [row for row in found if entry_reading.may_read(agent, row)]


async def readable(reading: ReadSession, space: str, agent: str) -> Sequence[EntryRow]:
    """All live entries that `agent` may read, in ledger order."""

    async def read(session: ReadSession) -> list[EntryRow]:
        found = {row.offset: row async for row in _every(session, space, agent) if entry_reading.may_read(agent, row)}
        return sorted(found.values(), key=attrgetter("offset"))

    return await reading.steady(read)


async def passing(reading: ReadSession, space: str, agent: str, has_fields: Passes) -> Sequence[EntryRow]:
    """All live entries that `agent` may read and that pass a filter, in ledger order."""
    rows = await readable(reading, space, agent)
    return [row for row in rows if entry_reading.has_fields(row, has_fields)]


async def _every(session: ReadSession, space: str, agent: str) -> AsyncIterator[EntryRow]:
    """The live entries of an agent, and those of others that it may read. An entry may occur twice."""
    for _, row in await session.every(tables.ROWS, space, agent):
        yield row
    for reader in (agent, ""):
        others = await session.every(tables.READERS, space, reader)
        needs = [RowKey(tables.ROWS.name, space, of.owner, key) for key, of in others]
        snapshot = await session.snapshot(needs)
        for need in needs:
            other = snapshot.row(tables.ROWS, *need[1:])
            if other is not None:
                yield other


async def _newest(session: ReadSession, space: str, agent: str, most: int) -> list[EntryRow]:
    own = await session.page(tables.ROWS, space, agent, newest_first=True, limit=most)
    found = {row.offset: row for _, row in own.items}
    needs = []
    for reader in (agent, ""):
        others = await session.page(tables.READERS, space, reader, newest_first=True, limit=most)
        needs += [RowKey(tables.ROWS.name, space, of.owner, key) for key, of in others.items]
    chosen = sorted(needs, key=attrgetter("key"))[-most:]
    snapshot = await session.snapshot(chosen)
    for need in chosen:
        row = snapshot.row(tables.ROWS, *need[1:])
        if row is not None:
            found[row.offset] = row
    return sorted(found.values(), key=attrgetter("offset"))[-most:]
