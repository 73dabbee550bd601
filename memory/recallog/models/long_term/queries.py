"""Long-term memory: entries by id, pages of them, the lessons for a question, counts, and recorded changes."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from recallog.models.long_term import additions, live_entries, standing
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.long_term.live_entries import WantedEntries
from recallog.reading.read_session import ReadSession
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log, snapshot_of
from recallog_projections.index.terms import count_shares
from recallog_projections.models.items import projection as items
from recallog_projections.models.long_term import tables
from recallog_projections.models.long_term.tables import ARCHIVED, LIVE, AgentEntries, EntryRef, EntryRow
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import settings
from recallog_schemas import Position, limits
from recallog_schemas.errors import IndexUnavailable, InvalidArgument
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.long_term.views import (
    AuditView,
    EntriesPage,
    EntryAudit,
    EntryErasure,
    EntryFound,
    EntryStats,
    EntryView,
    ErasuresPage,
    Lesson,
    LessonsView,
)
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views.base import fitting, json_of

LESSON = "lesson"
PINNED = "pinned"
BOOSTS = {PINNED: 1.0, "critical": 0.3, "important": 0.15, "normal": 0.0, "low": -0.1}
"""The number that the priority of a lesson adds to its cosine with the question."""
_CANDIDATES = 3
"""The factor between the lessons that are compared and those that are wanted, so that a boost can raise one of them."""
_COUNTED = ("fact", "experience", LESSON)
_WORKING_PREFIX = items.prefix_of((items.WORKING,))


async def get(reading: AgentReading, entry_id: str) -> EntryFound:
    """The entry with an id, if `agent` may read it."""

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> EntryFound:
        snapshot = await snapshot_of(session)
        found = (await entries_by_id(session, space, [entry_id])).get(entry_id)
        row = None if found is None else found.readable_by(agent)
        tier = {} if row is None else await additions.tiers_of(session, [row])
        entry = None
        if found is not None and row is not None:
            places = await standing.places_of(session, [row] if found.ref.status == LIVE else [])
            entry = entry_view(session.partition, row, tier.get(row.offset), places[row.offset], found.ref)
        return EntryFound(**await of_agent(session, snapshot), entry=entry)

    return await reading.steady(read)


@dataclass(frozen=True, slots=True)
class ListQuery:
    """The page of the live entries of an agent to list."""

    wanted: WantedEntries
    limit: int
    cursor: str | None


async def newest(reading: AgentReading, query: ListQuery) -> EntriesPage:
    """The live entries of an agent, newest first. Raises `InvalidArgument` if the cursor belongs to other pages."""
    if query.cursor is not None and not re.fullmatch("[0-9]{20}", query.cursor):
        raise _wrong_cursor()
    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> EntriesPage:
        snapshot = await snapshot_of(session)
        page = await live_entries.page_of(session, space, agent, query.wanted, query.cursor, query.limit)
        page = page.fit(_size)
        return EntriesPage(
            **await of_agent(session, snapshot),
            entries=await entry_views(session, [row for _, row in page.items]),
            next=page.next,
        )

    return await reading.steady(read)


async def by_priority(reading: AgentReading, query: ListQuery) -> EntriesPage:
    """The newest `limits.RECALL_ENTRIES` live entries of an agent: pinned ones first, then by their place and boost.

    The score of the i-th of n entries in the order of retaining is i/n plus the boost of its priority. Later pages rank
    the entries that existed at the first page. Raises `InvalidArgument` if the cursor belongs to other pages.
    """
    found = re.fullmatch("([0-9]{1,4})-([0-9]{1,19})", query.cursor or "")
    if query.cursor is not None and found is None:
        raise _wrong_cursor()
    space, agent, first = reading.space, reading.agent, int(found[1]) if found else 0
    after = tables.key_of(int(found[2]) + 1) if found else None

    async def read(session: AgentReading) -> EntriesPage:
        snapshot = await snapshot_of(session)
        most = long_term_limits.RECALL_ENTRIES
        page = await live_entries.page_of(session, space, agent, query.wanted, after, most)
        shown = [row for row, _ in prioritise([row for _, row in reversed(page.items)])]
        end = first + fitting(_size(row) for row in shown[first : first + query.limit])
        return EntriesPage(
            **await of_agent(session, snapshot),
            entries=await entry_views(session, shown[first:end]),
            next=f"{end}-{page.items[0][1].offset}" if end < len(shown) else None,
        )

    return await reading.steady(read)


def prioritise(rows: Sequence[EntryRow]) -> list[tuple[EntryRow, float]]:
    """Entries in the order of retaining, ranked without a question, each with its score."""
    return _rank_scored((row, number / len(rows) + BOOSTS[row.priority]) for number, row in enumerate(rows))


def _rank_scored(scored: Iterable[tuple[EntryRow, float]]) -> list[tuple[EntryRow, float]]:
    return sorted(scored, key=lambda one: (one[0].priority != PINNED, -one[1], -one[0].offset))


async def lessons(reading: AgentReading, query: str, limit: int) -> LessonsView:
    """The lessons that `agent` may read and that match `query`: its pinned ones first, then by cosine and boost."""
    from recallog.models.long_term.similar import similar  # imports numpy, which other queries of entries do not need

    space, agent = reading.space, reading.agent
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, agent), RowKey(tables.AGENTS.name, space, agent)], [own_log(space, agent)]
    )
    own = snapshot.row(tables.AGENTS, space, agent) or AgentEntries()
    pinned = await entries_by_id(reading, space, own.pinned)
    similarities: dict[int, float] = {}
    rows = {found.row.offset: found.row for found in pinned.values() if found.row is not None}
    rows = {offset: row for offset, row in rows.items() if row.type == LESSON}
    by: Literal["semantic", "words"] = "semantic"
    try:
        wanted = _CANDIDATES * limit + len(rows)
        found = await similar(reading, query, owned=False, types=[LESSON], limit=wanted)
        compared = [(each.row, each.similarity) for each in found.found]
    except IndexUnavailable:
        by = "words"
        compared = _by_words(query, await live_entries.newest_of_type(reading, space, agent, LESSON))
    for row, similarity in compared:
        rows[row.offset], similarities[row.offset] = row, similarity
    ranked = _rank_scored((row, similarities.get(row.offset, 0.0) + BOOSTS[row.priority]) for row in rows.values())[
        :limit
    ]
    shown = [row for row, _ in ranked]
    tiers, places = await additions.tiers_of(reading, shown), await standing.places_of(reading, shown)
    ranked.sort(key=lambda one: places[one[0].offset].now is not None)
    return LessonsView(
        **await of_agent(reading, snapshot),
        lessons=tuple(
            Lesson(
                entry=entry_view(reading.partition, row, tiers.get(row.offset), places[row.offset]),
                score=round(score, 6),
                similarity=similarities.get(row.offset),
            )
            for row, score in ranked
        ),
        relevance_by=by,
    )


def _by_words(query: str, rows: Sequence[EntryRow]) -> list[tuple[EntryRow, float]]:
    """Entries with the share of the query's terms that each contains. Entries without any are included only if they are
    preferred."""
    shares = zip(rows, count_shares(query, (row.text for row in rows)), strict=True)
    return [(row, share) for row, share in shares if share or row.priority == PINNED]


async def stats(reading: AgentReading) -> EntryStats:
    """The number of entries that an agent keeps, and its account."""

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> EntryStats:
        blocks = RowKey(items.NAMESPACES.name, space, agent, _WORKING_PREFIX)
        counts = [RowKey(tables.TYPES.name, space, agent, each) for each in _COUNTED]
        agents = [RowKey(settings.AGENTS.name, space, agent), RowKey(tables.AGENTS.name, space, agent)]
        snapshot = await session.snapshot([*agents, blocks, *counts], [own_log(space, agent)])
        types = await session.page(tables.TYPES, space, agent, limit=limits.PAGE_ITEMS_MAX)
        facts, experiences, learned = (snapshot.row(tables.TYPES, *key[1:]) for key in counts)
        account = snapshot.row(tables.AGENTS, space, agent) or AgentEntries()
        working = snapshot.row(items.NAMESPACES, *blocks[1:])
        return EntryStats(
            **await of_agent(session, snapshot),
            fact_count=0 if facts is None else facts.entries,
            experience_count=0 if experiences is None else experiences.entries,
            lesson_count=0 if learned is None else learned.entries,
            types={name: row.entries for name, row in types.items if row.entries},
            pinned=account.pinned,
            working_block_count=0 if working is None else len(working.keys),
            entity_link_count=await additions.count_links(session, space, agent),
            balance=account.balance,
            spent=account.spent,
            eur=account.eur,
        )

    return await reading.steady(read)


async def audit(reading: AgentReading, entry_id: str | None, limit: int) -> AuditView:
    """The newest changes of the entries of an agent, or of one of them, from the 2,000 that are on record."""
    space, agent = reading.space, reading.agent
    log = LogName(tables.AUDIT.name, space, agent)
    read = limit if entry_id is None else limits.LOG_EVENTS_KEPT
    snapshot = await reading.snapshot(
        [RowKey(settings.AGENTS.name, space, agent)], [own_log(space, agent), (log, read)]
    )
    changes = tables.AUDIT.decode_all(snapshot.tail(tables.AUDIT, space, agent).entries)
    chosen = [change for change in changes if entry_id is None or change.id == entry_id][-limit:]
    return AuditView(
        **await of_agent(reading, snapshot),
        changes=tuple(
            EntryAudit(
                operation=change.operation,
                id=change.id,
                at=moment_of(change.at),
                actor=change.actor,
                reason=change.reason,
            )
            for change in chosen
        ),
    )


async def erasures(reading: AgentReading, limit: int, cursor: str | None) -> ErasuresPage:
    """The erasures of the entries of an agent, by the id of the entry."""

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> ErasuresPage:
        snapshot = await snapshot_of(session)
        page = await session.page(tables.ERASURES, space, agent, after=cursor, limit=limit)
        return ErasuresPage(
            **await of_agent(session, snapshot),
            erasures=tuple(
                EntryErasure(id=id_, at=moment_of(row.at), actor=row.actor, reason=row.reason)
                for id_, row in page.items
            ),
            next=page.next,
        )

    return await reading.steady(read)


def entry_view(
    partition: int, row: EntryRow, tier: str | None, place: standing.EntryPlace, ref: EntryRef | None = None
) -> EntryView:
    """The view of an entry's row. `ref` is the verdict on an entry that may not be live, and `tier` the tier that it is
    in now."""
    return EntryView.model_construct(
        id=row.id,
        text=row.text,
        type=row.type,
        version=row.version,
        status=LIVE if ref is None else ref.status,
        owner=row.owner,
        priority=row.priority,
        tier=tier,
        importance=row.importance,
        confidence=row.confidence,
        entity=row.entity,
        category=row.category,
        source=row.source,
        topic=row.topic,
        metadata=json.loads(row.metadata) if row.metadata else {},
        sources=row.sources,
        subject=row.subject,
        red_line=row.red_line,
        preseeded=row.preseeded,
        at=moment_of(row.at),
        updated_at=moment_of(row.updated_at),
        position=Position(partition, row.offset),
        supersedes=place.supersedes,
        duplicate_of=None if ref is None or ref.status != ARCHIVED else ref.of,
        **place.fields,
    )


def _size(row: EntryRow) -> int:
    """The approximate size of an entry in an answer, in bytes."""
    return len(json_of((row.text, row.entity, row.category, row.source, row.topic, row.sources))) + len(row.metadata)


async def entry_views(reading: ReadSession, rows: Sequence[EntryRow]) -> tuple[EntryView, ...]:
    """The views of live entries, in the order of their rows."""
    tiers, places = await additions.tiers_of(reading, rows), await standing.places_of(reading, rows)
    return tuple(entry_view(reading.partition, row, tiers.get(row.offset), places[row.offset]) for row in rows)


def _wrong_cursor() -> InvalidArgument:
    return InvalidArgument("cursor: is not the `next` of a page of these entries", path="cursor", rule="cursor")
