"""Tiers: the entries that match a question, one entry, the changes of a plan, and how full the tiers are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Literal

from recallog.models.long_term import live_entries, standing
from recallog.models.long_term import queries as long_term
from recallog.models.long_term.entry_lookup import entries_by_id
from recallog.models.tiers import plan as planning
from recallog.models.tiers import retrieval as in_tiers
from recallog.models.tiers.entries import ADDITION
from recallog.models.tiers.plan import Aging, ConsolidationPlan
from recallog.models.tiers.retrieval import EntryInTier, Order, WantedSimilar
from recallog.reading.filters import Passes
from recallog.reading.read_session import ReadSession, Snapshot
from recallog.reading.readings import AgentReading
from recallog.reading.subject import of_agent, own_log
from recallog_projections.index.terms import count_shares
from recallog_projections.models.long_term import tables as entries
from recallog_projections.models.long_term import uses
from recallog_projections.models.long_term.reading import event_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.models.long_term.uses import AgentUses, UseRow
from recallog_projections.models.tiers import rules, scheduling, tables
from recallog_projections.models.tiers.tables import AgentTiers, Moves
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import clock, settings
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.kinds import TierSettings
from recallog_schemas.kinds.payload import Tier
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.models.tiers import limits as tiers_limits
from recallog_schemas.models.tiers.views import (
    TierEntry,
    TierEntryFound,
    TierHit,
    TierHits,
    TierLoad,
    TierPressure,
    TierStats,
)
from recallog_schemas.timestamps import micros, moment_of

Strategy = Literal["weighted", "fast_first", "comprehensive"]
Status = Literal["normal", "elevated", "high", "critical"]

WEIGHTS: Mapping[str | None, float] = {
    rules.FAST: 1.0,
    rules.MEDIUM: 0.8,
    rules.SLOW: 0.6,
    None: 0.6,
    rules.GLACIAL: 0.4,
}
"""The factor of a similarity in the strategy "weighted", by tier. Entries without a tier rank with those of SLOW."""
_STATUS: Sequence[tuple[float, Status]] = ((0.5, "normal"), (0.8, "elevated"), (0.9, "high"))
"""The upper limits of the filled share for each status."""
_HOUR = timedelta(hours=1)
_DECIMALS = 6


# One entry


async def entry(reading: AgentReading, entry_id: str, now: datetime | None) -> TierEntryFound:
    """A live entry that carries a tier, if `agent` may read it."""

    space, agent = reading.space, reading.agent

    async def read(session: AgentReading) -> TierEntryFound:
        snapshot = await _of_agent(session)
        at = now or snapshot.time_of(space, agent)
        found = (await entries_by_id(session, space, [entry_id])).get(entry_id)
        row = None if found is None or found.ref.status != entries.LIVE else found.readable_by(agent)
        shown = None if row is None else await _tier_entry(session, row, at)
        return TierEntryFound(**await of_agent(session, snapshot), now=at, found=shown)

    return await reading.steady(read)


async def _tier_entry(session: ReadSession, row: EntryRow, now: datetime | None) -> TierEntry | None:
    owner = RowKey(settings.AGENTS.name, row.space, row.owner)
    snapshot = await session.snapshot([*_keys(row), owner])
    aging = _aging(snapshot, row)
    if aging is None:
        return None
    configured = rules.settings_of(snapshot.row(settings.AGENTS, row.space, row.owner))
    at = row.at if now is None else micros(now)
    tier, use = aging.row, aging.use
    places = await standing.places_of(session, [row])
    return TierEntry(
        entry=long_term.entry_view(session.partition, row, tier.tier, places[row.offset]),
        importance=round(planning.decay_importance(tier, at, configured), _DECIMALS),
        undecayed=round(tier.importance, _DECIMALS),
        last_access=None if use is None else moment_of(use.last_at),
        accesses=0 if use is None else use.accesses,
        accesses_since_move=aging.accesses,
        surprise=round(tier.surprise, _DECIMALS),
        successes=tier.successes,
        reports=tier.reports,
        promoted_at=None if tier.promoted_at is None else moment_of(tier.promoted_at),
        exempt=tier.exempt,
    )


# Entries that answer a question


_ORDERS: Mapping[Strategy, Order] = {
    "weighted": lambda each: (-each.similarity * WEIGHTS[each.tier], -each.row.offset),
    "fast_first": lambda each: (-WEIGHTS[each.tier], -each.similarity, -each.row.offset),
    "comprehensive": lambda each: (-each.similarity, -each.row.offset),
}


@dataclass(frozen=True, slots=True)
class TierQuery:
    """A question to entries."""

    text: str
    tiers: Sequence[str] | None
    """None means all entries, also those without a tier."""
    limit: int
    min_similarity: float
    strategy: Strategy
    now: datetime | None
    """None means the time of the agent."""
    has_fields: Passes | None
    """The filter of fields; None means no filter."""


async def retrieve(reading: AgentReading, query: TierQuery) -> TierHits:
    """The entries that the agent may read and that match a question, in the order of the strategy."""
    space, strategy = reading.space, query.strategy
    tiers = (*rules.TIERS, None) if query.tiers is None else tuple(tier for tier in rules.TIERS if tier in query.tiers)
    wanted = WantedSimilar(tiers, query.min_similarity, _ORDERS[strategy], query.limit, query.has_fields)
    snapshot = await _of_agent(reading)
    by: Literal["semantic", "words"] = "semantic"
    try:
        found = await in_tiers.similar(reading, query.text, wanted)
    except IndexUnavailable:
        by = "words"
        found = await _by_words(reading, query)
        shown = (each for each in found if each.tier in tiers and each.similarity >= wanted.least)
        found = sorted(shown, key=wanted.order)[: wanted.limit]
    places = await standing.places_of(reading, [each.row for each in found])
    return TierHits(
        **await of_agent(reading, snapshot),
        hits=tuple(
            TierHit(
                entry=long_term.entry_view(reading.partition, row, tier, places[row.offset]),
                score=round(similarity * WEIGHTS[tier], _DECIMALS) if strategy == "weighted" else similarity,
                similarity=similarity,
            )
            for row, tier, similarity in found
        ),
        strategy=strategy,
        relevance_by=by,
        now=query.now or snapshot.time_of(space, reading.agent),
    )


async def _by_words(reading: AgentReading, query: TierQuery) -> list[EntryInTier]:
    """The newest entries, each with the share of the query's terms that it contains. With a filter, all entries that
    pass it."""
    found = await _compared_by_words(reading, query.has_fields)
    shares = count_shares(query.text, (row.text for row, _ in found))
    return [EntryInTier(row, tier, round(share, _DECIMALS)) for (row, tier), share in zip(found, shares, strict=True)]


async def _compared_by_words(reading: AgentReading, has_fields: Passes | None) -> list[tuple[EntryRow, str | None]]:
    """Entries that the agent may read, each with its tier: the newest ones of all, and its newest ones with a tier."""
    space, agent = reading.space, reading.agent
    if has_fields is not None:
        passing = await live_entries.passing(reading, space, agent, has_fields)
        known = await ADDITION.tiers_of(reading, passing)
        return [(row, known.get(row.offset)) for row in passing]
    page = await reading.page(tables.ROWS, space, agent, newest_first=True, limit=long_term_limits.RECALL_ENTRIES)
    keys = [RowKey(entries.ROWS.name, space, agent, key) for key, _ in page.items]
    snapshot = await reading.snapshot(keys)
    own = [row for key in keys if (row := snapshot.row(entries.ROWS, *key[1:])) is not None]
    tier_of: dict[int, str] = {row.offset: row.tier for _, row in page.items}
    others = [row for row in await live_entries.newest(reading, space, agent) if row.offset not in tier_of]
    tier_of |= await ADDITION.tiers_of(reading, others)
    return [(row, tier_of.get(row.offset)) for row in (*own, *others)]


# Plans


@dataclass(frozen=True, slots=True)
class PlannedConsolidation:
    """The changes that a plan would make now."""

    plan: ConsolidationPlan
    payloads: Sequence[Mapping[str, Any]]
    """The payloads of its events."""
    ordinal: int
    """The number of the agent's earlier plans."""
    now: datetime
    """The time of the plan."""
    unfinished: bool
    """Whether it completes a plan that was interrupted. It then has the time of that plan."""


async def plan_consolidation(reading: AgentReading, now: datetime | None) -> PlannedConsolidation | None:
    """The plan for the entries of `agent` at the time `now`; None if none of its entries carries a tier.

    If only the first parts of a plan were written, it has the remaining changes. A later change of an entry prevents
    its move.
    """
    space, agent = reading.space, reading.agent
    snapshot = await _of_agent(reading)
    state = snapshot.row(tables.AGENTS, space, agent) or AgentTiers()
    unfinished = state.unfinished and state.planned_at is not None
    at = now or snapshot.time_of(space, agent)
    if unfinished and state.planned_at is not None:
        at = moment_of(state.planned_at)
    if at is None or not (state.entries or unfinished):
        return None
    configured = rules.settings_of(snapshot.row(settings.AGENTS, space, agent))
    ordinal = state.plans
    found = await _all_of(reading, space, agent)
    plan = planning.plan(found, at, configured, unfinished=ordinal if unfinished else None)
    payloads = planning.payloads(plan, now=at, ordinal=ordinal, settings=configured)
    return PlannedConsolidation(plan, payloads, ordinal, at, unfinished)


async def _all_of(reading: ReadSession, space: str, agent: str) -> list[Aging]:
    """All entries of an agent that carry a tier."""
    found: list[Aging] = []
    after, last = None, False
    while not last:
        page = await reading.page(tables.ROWS, space, agent, after=after, limit=limits.SCAN_ITEMS)
        used = await reading.snapshot(RowKey(uses.ROWS.name, space, agent, key) for key, _ in page.items)
        found += [Aging(row, used.row(uses.ROWS, space, agent, key)) for key, row in page.items]
        last, after = page.last, page.items[-1][0] if page.items else None
    return found


async def find_archived(reading: AgentReading, ids: Sequence[str]) -> list[EntryRow]:
    """The entries with these ids that `agent` owns, that are archived, and from which the space makes summaries, in the
    order in which they were retained."""
    space, agent = reading.space, reading.agent
    found = await entries_by_id(reading, space, ids)
    snapshot = await reading.snapshot([RowKey(settings.SPACES.name, space)])
    sources = SourceClasses(snapshot.row(settings.SPACES, space))
    rows = [each.row for each in found.values() if each.ref.status == entries.ARCHIVED and each.ref.owner == agent]
    allowed = (row for row in rows if row is not None and sources.allows("consolidation", event_of(row)))
    return sorted(allowed, key=attrgetter("offset"))


# Numbers


async def stats(reading: AgentReading, now: datetime | None) -> TierStats:
    """How many entries of an agent are in each tier, and how they have moved."""
    space, agent = reading.space, reading.agent
    moved = LogName(tables.MOVES.name, space, agent)
    snapshot = await _of_agent(reading, (moved, tiers_limits.MOVES_KEPT))
    at = now or snapshot.time_of(space, agent)
    state = snapshot.row(tables.AGENTS, space, agent) or AgentTiers()
    used = snapshot.row(uses.AGENTS, space, agent) or AgentUses(0, 0)
    recent = _recent(tables.MOVES.decode_all(snapshot.tail(tables.MOVES, space, agent).entries), at)
    due_at = scheduling.due_at(state, rules.settings_of(snapshot.row(settings.AGENTS, space, agent)))
    return TierStats(
        **await of_agent(reading, snapshot),
        tier_counts=_counts(state),
        promotions_last_hour=sum(each.promoted for each in recent),
        demotions_last_hour=sum(each.demoted for each in recent),
        archived={rules.EXPIRED: state.expired, rules.TIER_LIMIT: state.evicted},
        lookups=used.lookups,
        hit_rate=round(used.hits / used.lookups, _DECIMALS) if used.lookups else 0.0,
        avg_surprise_score=round(state.surprise / state.entries, _DECIMALS) if state.entries else 0.0,
        planned_at=None if state.planned_at is None else moment_of(state.planned_at),
        due_at=None if due_at is None else moment_of(due_at),
        now=at,
    )


def _recent(moves: Sequence[Moves], now: datetime | None) -> list[Moves]:
    """The moves in the hour before `now`, inclusive."""
    if now is None:
        return []
    return [each for each in moves if micros(now - _HOUR) <= each.at <= micros(now)]


async def pressure(reading: AgentReading) -> TierPressure:
    """How full the tiers of an agent are."""
    space, agent = reading.space, reading.agent
    snapshot = await _of_agent(reading)
    configured = rules.settings_of(snapshot.row(settings.AGENTS, space, agent))
    counts = _counts(snapshot.row(tables.AGENTS, space, agent) or AgentTiers())
    loads = {tier: _load(tier, count, configured) for tier, count in counts.items()}
    share = max(load.share for load in loads.values())
    return TierPressure(
        **await of_agent(reading, snapshot),
        tiers=loads,
        share=share,
        status=next((status for below, status in _STATUS if share < below), "critical"),
    )


def _load(tier: Tier, count: int, configured: TierSettings) -> TierLoad:
    most = getattr(configured.max, tier)
    return TierLoad(
        count=count,
        limit=most,
        share=round(count / most, _DECIMALS) if most else float(count),
        ttl_seconds=getattr(configured.ttl, tier),
        half_life_hours=getattr(configured.half_life, tier),
    )


def _counts(state: AgentTiers) -> dict[Tier, int]:
    return {"fast": state.fast, "medium": state.medium, "slow": state.slow, "glacial": state.glacial}


# What all of them read


async def _of_agent(reading: AgentReading, *logs: tuple[LogName, int]) -> Snapshot:
    space, agent = reading.space, reading.agent
    keys = [
        RowKey(settings.AGENTS.name, space, agent),
        RowKey(tables.AGENTS.name, space, agent),
        RowKey(uses.AGENTS.name, space, agent),
        *clock.keys(space, agent),
    ]
    return await reading.snapshot(keys, [own_log(space, agent), *logs])


def _keys(row: EntryRow) -> list[RowKey]:
    key = entries.key_of(row.offset)
    return [RowKey(table, row.space, row.owner, key) for table in (tables.ROWS.name, uses.ROWS.name)]


def _aging(snapshot: Snapshot, row: EntryRow) -> Aging | None:
    key = entries.key_of(row.offset)
    tier = snapshot.row(tables.ROWS, row.space, row.owner, key)
    use: UseRow | None = snapshot.row(uses.ROWS, row.space, row.owner, key)
    return None if tier is None else Aging(tier, use)
