"""Entries that recall may show: those of the view of entries, whose rows alone say what they are and who may read them.

The index finds entries by the form that it has processed. What it found is compared with the rows: an entry that has
ended, or that the agent may not read, is dropped, and one with a newer text is compared by words.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from recallog.reading.read_session import Page, ReadSession
from recallog.retrieval.candidates import Candidate
from recallog.retrieval.weights import REACH
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.linking import NORMAL
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.tiers import tables as tier_tables
from recallog_projections.tables import RowKey
from recallog_schemas import kinds, limits

_ALONE = 1 << 41
"""The ordinal of the first entry: behind all of events."""


async def of_candidates(
    reading: ReadSession, space: str, agent: str, candidates: Iterable[Candidate]
) -> dict[int, EntryRow]:
    """By offset: the rows of those of the candidates that are live entries which `agent` may read."""
    return await at(reading, space, agent, [(each.agent, each.offset) for each in candidates if each.is_entry])


async def at(
    reading: ReadSession, space: str, agent: str, addresses: Collection[tuple[str, int]]
) -> dict[int, EntryRow]:
    """By offset: the rows of those live entries at these owners and offsets that `agent` may read."""
    needs = [RowKey(tables.ROWS.name, space, owner, tables.key_of(offset)) for owner, offset in addresses]
    if not needs:
        return {}
    snapshot = await reading.snapshot(needs)
    rows = [snapshot.row(tables.ROWS, *need[1:]) for need in needs]
    return {row.offset: row for row in rows if row is not None and entry_reading.may_read(agent, row)}


async def tiers_of(reading: ReadSession, rows: Iterable[EntryRow]) -> dict[int, str]:
    """The tiers that live entries are in, by offset, of those that have one."""
    keys = [RowKey(tier_tables.ROWS.name, row.space, row.owner, tables.key_of(row.offset)) for row in rows]
    if not keys:
        return {}
    snapshot = await reading.snapshot(keys)
    found = (snapshot.row(tier_tables.ROWS, *key[1:]) for key in keys)
    return {row.offset: row.tier for row in found if row is not None}


async def in_tiers(reading: ReadSession, rows: Sequence[EntryRow], tiers: Collection[str] | None) -> Sequence[EntryRow]:
    """Those of some live entries that are in one of `tiers`; all of them if that is None."""
    if tiers is None:
        return rows
    tier_of = await tiers_of(reading, rows)
    return [row for row in rows if tier_of.get(row.offset) in tiers]


async def page_of(
    session: ReadSession, space: str, agent: str, entry_type: str | None, after: str | None, limit: int
) -> Page[EntryRow]:
    """The live entries of an agent, of one type or of all, newest first, behind the key `after`."""
    if entry_type is None:
        return await session.page(tables.ROWS, space, agent, newest_first=True, after=after, limit=limit)
    prefix = f"{entry_type}/"
    behind = None if after is None else f"{prefix}{after}"
    page = await session.page(tables.OF_TYPE, space, agent, prefix=prefix, newest_first=True, after=behind, limit=limit)
    keys = [key.removeprefix(prefix) for key, _ in page.items]
    snapshot = await session.snapshot([RowKey(tables.ROWS.name, space, agent, key) for key in keys])
    rows = [(key, snapshot.row(tables.ROWS, space, agent, key)) for key in keys]
    return Page([(key, row) for key, row in rows if row is not None], page.last)


async def newest_of_type(reading: ReadSession, space: str, agent: str, entry_type: str) -> Sequence[EntryRow]:
    """The newest live entries of a type: of the agent's own, and of all that it may read, `limits.RECALL_ENTRIES`."""

    async def read(session: ReadSession) -> list[EntryRow]:
        own = await page_of(session, space, agent, entry_type, None, limits.RECALL_ENTRIES)
        return [*(row for _, row in own.items), *await _newest(session, space, agent, limits.RECALL_ENTRIES)]

    found = {row.offset: row for row in await reading.steady(read) if row.type == entry_type}
    return [row for row in found.values() if entry_reading.may_read(agent, row)]


async def newest(reading: ReadSession, space: str, agent: str, most: int = limits.RECALL_ENTRIES) -> Sequence[EntryRow]:
    """The newest live entries that `agent` may read, at most `most`, in ledger order."""
    found = await reading.steady(lambda session: _newest(session, space, agent, most))
    return [row for row in found if entry_reading.may_read(agent, row)]


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


def standing_for(
    space: str,
    owner: str,
    id_: str,
    offset: int,
    at: int,
    *,
    text: str,
    type: str,  # noqa: A002
    source: str,
    version: int,
) -> EntryRow:
    """An entry in place of something else that an agent keeps and recall finds. No view has it."""
    return EntryRow(
        space=space,
        owner=owner,
        id=id_,
        offset=offset,
        at=at,
        turn=0,
        session=None,
        text=text,
        type=type,
        entity=None,
        category=None,
        source=source,
        topic=None,
        importance=kinds.DEFAULT_IMPORTANCE,
        confidence=1.0,
        tier=None,
        priority=NORMAL,
        red_line=False,
        metadata=b"",
        sources=(),
        subject=None,
        version=version,
        updated_at=at,
        audience=(),
        shared=False,
        preseeded=False,
        since=offset,
        since_at=at,
    )


def set_apart(candidates: Iterable[Candidate]) -> None:
    """Give entries ordinals at which none of them has a neighbour."""
    for number, each in enumerate(each for each in candidates if each.is_entry):
        each.ordinal = _ALONE + number * (2 * REACH + 1)
