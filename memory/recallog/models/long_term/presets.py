"""Presets of recall: rankings of the entries that an agent may read, by the ranks of several channels.

`four_channel` fuses meaning, words, entities, and time and use, each with the same weight. `hybrid` fuses meaning and
words. A channel that fails is left out, and the weights of the others stay as they are.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from recallog.index.semantic_index import SemanticIndex
from recallog.models.long_term import additions, by_recency, entry_presence, live_entries, standing
from recallog.models.long_term import by_index as entries_by_index
from recallog.models.long_term.by_index import EntriesByIndex
from recallog.reading.read_session import ReadSession, Snapshot, position
from recallog.reading.readings import AgentReading
from recallog.reading.source_classes import mark_classes
from recallog.reading.subject import of_agent, own_log
from recallog.retrieval import by_index, by_words, closeness, index_lag, quoting, said_once
from recallog.retrieval.attempts import note
from recallog.retrieval.candidates import set_apart
from recallog.retrieval.channels import ENTITY, HYBRID, KEYWORD, RRF, SEMANTIC, TEMPORAL, Channel
from recallog.retrieval.fusing import RRF_K, fuse
from recallog.retrieval.query import RecallQuery, now_of, query_terms
from recallog.retrieval.term_cache import TermCache
from recallog_projections.concurrency import cancel_all
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term import uses
from recallog_projections.models.long_term.documents import point_id_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_projections.views import clock, settings
from recallog_schemas import Position
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.timestamps import micros
from recallog_schemas.views import RecallHit, RecallView

SIMILARITY_MIN = 0.5
"""The least cosine of hits of the channel `semantic` in the preset `hybrid`."""


@dataclass(slots=True)
class _Rankings:
    """The entries that the channels found at one moment of the views."""

    rows: dict[int, EntryRow] = field(default_factory=dict)
    """By offset: the entries that may be hits."""
    offsets: dict[Channel, list[int]] = field(default_factory=dict)
    """By channel: the entries that it found, best first. A channel that did not answer is absent."""
    cosines: Mapping[int, float] = field(default_factory=dict)
    points: dict[int, str] = field(default_factory=dict)
    """By offset: the points of the entries that the index found."""
    idf: Mapping[str, float] | None = None
    """By term of the query; None if words were not compared."""


async def recall(reading: AgentReading, query: RecallQuery) -> RecallView:
    """The entries that best answer a query with a preset. All rows are read at one moment.

    If the index is off, `semantic` finds nothing, and `keyword` compares the newest entries; the answer is not
    degraded. If the index fails, `degraded` names the affected channels.
    """
    index: SemanticIndex | None = reading.searcher.index
    is_chosen = query.types is not None or query.tiers is not None
    query = replace(query, apart=[entry_reading.KIND] if is_chosen else [], hidden=[entry_reading.CAPTURED])
    if query.has_fields is not None and index is not None:
        passing = await live_entries.passing(reading, query.space, query.agent, query.has_fields)
        query = replace(query, points=[point_id_of(row) for row in passing])
    # The engine and the model work while the views are read.
    searching = asyncio.create_task(entries_by_index.find(index, reading.partition, query, _depth(query)))
    try:
        return await _recall_preset(reading, query, searching)
    except IndexUnavailable as error:
        note(index, reading.partition, error)
        failed: asyncio.Future[EntriesByIndex] = asyncio.get_running_loop().create_future()
        failed.set_result(EntriesByIndex.failed_with(query, error))
        return await _recall_preset(reading, query, failed)
    finally:
        await cancel_all(searching)


def _depth(query: RecallQuery) -> int:
    """The number of entries that each channel ranks."""
    return max(long_term_limits.PRESET_CANDIDATES, 2 * query.top_k)


async def _recall_preset(
    reading: AgentReading, query: RecallQuery, searching: asyncio.Future[EntriesByIndex]
) -> RecallView:
    cache: TermCache = reading.searcher.cache
    needs = [RowKey(settings.AGENTS.name, query.space, query.agent), *clock.keys(query.space, query.agent)]
    needs += [*entry_presence.rows(query.space), RowKey(settings.SPACES.name, query.space)]

    async def read(session: AgentReading) -> tuple[Snapshot, _Rankings]:
        snapshot = await session.snapshot(needs, [own_log(query.space, query.agent)])
        if not query.text.strip() or not entry_presence.has_entries(snapshot, query.space):
            return snapshot, _Rankings()
        return snapshot, await _rankings(session, snapshot, cache, query, searching)

    snapshot, found = await reading.steady(read)
    indexed = await searching
    lag = index_lag.of(indexed.index, snapshot)
    hits = await _hits(snapshot, cache, query, indexed, found)
    degraded = [*indexed.degraded, *([lag.degraded] if lag.degraded else [])]
    return RecallView(
        **await of_agent(reading, snapshot),
        query=query.text,
        top_k=query.top_k,
        channels=tuple(sorted(found.offsets)),
        fusion=RRF,
        preset=query.preset,
        now=now_of(snapshot, query),
        hits=mark_classes(snapshot, query.space, await standing.mark_standing(reading, query, hits, found.rows)),
        considered=len(set().union(*found.offsets.values())),
        index=indexed.index.generation if indexed.index else None,
        index_checkpoint=position(snapshot.partition, indexed.index.checkpoint) if indexed.index else None,
        index_behind=lag.positions,
        degraded="; ".join(degraded) or None,
    )


async def _rankings(
    session: ReadSession,
    snapshot: Snapshot,
    cache: TermCache,
    query: RecallQuery,
    searching: asyncio.Future[EntriesByIndex],
) -> _Rankings:
    """The entries that the channels of the query find."""
    newest = await _newest(session, query) if TEMPORAL in query.weights else []
    linked: Sequence[tuple[int, str]] = ()
    if ENTITY in query.weights:
        # More are read if the query has filters, since few of them may pass.
        limit = long_term_limits.RECALL_ENTRIES if query.is_filtered else _depth(query)
        linked = await additions.find_linked(session, query.space, query.agent, query.text, limit=limit)
    indexed = await searching
    # A past view may also have entries that the index no longer has.
    same = (
        indexed.index is not None
        and query.at_until is None
        and entry_presence.are_as_at(snapshot, query.space, indexed.index.checkpoint)
    )
    by_words_too = KEYWORD in query.weights and not (same and KEYWORD in indexed.found)
    if by_words_too and TEMPORAL not in query.weights:
        newest = await _newest(session, query)
    found = _Rankings({row.offset: row for row in newest}, idf=indexed.idf)
    addresses = {(each.owner, each.offset) for entries in indexed.found.values() for each in entries}
    addresses |= {(owner, offset) for offset, owner in linked}
    unknown = [address for address in addresses if address[1] not in found.rows]
    others = await live_entries.at(session, query.space, query.agent, unknown)
    found.rows |= {row.offset: row for row in await _filter_wanted(session, query, others.values())}
    scores = _scores_by_index(found, indexed)
    if SEMANTIC in scores:
        found.cosines = scores[SEMANTIC]
        least = SIMILARITY_MIN if query.preset == HYBRID else -1.0
        scores[SEMANTIC] = {offset: cosine for offset, cosine in found.cosines.items() if cosine >= least}
    if by_words_too:
        terms = query_terms(query.text, ()).terms
        generation = snapshot.computed_at["generation"]
        by_words_alone, found.idf = by_words.scores(newest, generation, cache, terms, indexed.idf)
        scores[KEYWORD] = by_words_alone | scores.get(KEYWORD, {})
    ranked: dict[Channel, list[int]] = {channel: _best_first(of) for channel, of in scores.items()}
    ranked[ENTITY] = [offset for offset, _ in linked if offset in found.rows]
    if TEMPORAL in query.weights:
        ranked[TEMPORAL] = await _by_recency(session, query, now_of(snapshot, query), found.rows)
    found.offsets = {channel: ranked[channel][: _depth(query)] for channel in query.weights if channel in ranked}
    return found


async def _newest(session: ReadSession, query: RecallQuery) -> Sequence[EntryRow]:
    newest = await live_entries.newest(session, query.space, query.agent, has_fields=query.has_fields)
    return await _filter_wanted(session, query, newest)


async def _filter_wanted(session: ReadSession, query: RecallQuery, rows: Iterable[EntryRow]) -> Sequence[EntryRow]:
    """The live entries among `rows` that pass the filters of the query."""
    return await additions.in_tiers(session, [row for row in rows if _wants(query, row)], query.tiers)


def _wants(query: RecallQuery, row: EntryRow) -> bool:
    """Whether an entry passes the filters, including time travel, except for the filter of tiers."""
    return (
        not row.captured  # it is found as its event
        and (query.kinds is None or row.kind in query.kinds)
        and (query.types is None or row.type in query.types)
        and (query.min_importance is None or row.importance >= query.min_importance)
        and (query.offset_until is None or row.offset <= query.offset_until)
        and (query.at_until is None or row.at <= micros(query.at_until))
        and query.is_within(row.owner, row.session, row.at)
        and (query.has_fields is None or entry_reading.has_fields(row, query.has_fields))
    )


def _scores_by_index(found: _Rankings, indexed: EntriesByIndex) -> dict[Channel, dict[int, float]]:
    """By channel: the scores of the entries whose present text is in the index, by their offsets."""
    scores: dict[Channel, dict[int, float]] = {}
    for channel, entries in indexed.found.items():
        scores[channel] = {}
        for each in entries:
            row = found.rows.get(each.offset)
            if row is not None and point_id_of(row) == each.point:
                scores[channel][each.offset], found.points[each.offset] = each.score, each.point
    return scores


def _best_first(scores: Mapping[int, float]) -> list[int]:
    """Offsets by their scores; of equal ones the newer first."""
    return sorted(scores, key=lambda offset: (-scores[offset], -offset))


async def _by_recency(
    session: ReadSession, query: RecallQuery, now: datetime | None, rows: Mapping[int, EntryRow]
) -> list[int]:
    """The offsets of entries by age, use and confidence."""
    own = await session.page(
        uses.ROWS, query.space, query.agent, newest_first=True, limit=long_term_limits.RECALL_ENTRIES
    )
    accesses = {int(key): row.accesses for key, row in own.items}
    oldest = min(accesses, default=0) if not own.last else 0
    needs = {offset: uses.row_key(row) for offset, row in rows.items() if row.owner != query.agent or offset < oldest}
    snapshot = await session.snapshot(needs.values())
    for offset, key in needs.items():
        used = snapshot.row(uses.ROWS, *key[1:])
        if used is not None:
            accesses[offset] = used.accesses
    return by_recency.rank_by_recency(rows.values(), accesses, 0 if now is None else micros(now))


async def _hits(
    snapshot: Snapshot, cache: TermCache, query: RecallQuery, indexed: EntriesByIndex, found: _Rankings
) -> list[RecallHit]:
    """The `query.top_k` best entries. If one was made from another, only the better one counts, and further entries
    follow.

    Raises `IndexDamaged` if a point of one of them is damaged, and `IndexUnavailable`.
    """
    weights = [query.weights[channel] for channel in found.offsets]
    fused = fuse(list(found.offsets.values()), weights=weights)
    least = query.min_similarity
    if least is not None:
        fused = [one for one in fused if found.cosines.get(one[0], least) >= least]
    ranked = sorted(fused, key=lambda one: (-one[1], -one[0]))
    ranks = {channel: {each: rank for rank, each in enumerate(of, 1)} for channel, of in found.offsets.items()}

    def parts_of(offset: int) -> dict[str, float]:
        found_by = [channel for channel, of in ranks.items() if offset in of]
        return {channel: query.weights[channel] / (RRF_K + ranks[channel][offset]) for channel in found_by}

    async def hits_of(first: int, end: int) -> list[RecallHit]:
        batch = ranked[first:end]
        weak = await _weak(snapshot, cache, query, indexed, found, [offset for offset, _ in batch])
        return [
            _hit(snapshot.partition, found, offset, score, parts_of(offset), weak=offset in weak)
            for offset, score in batch
        ]

    return await said_once.best(query.top_k, len(ranked), hits_of)


async def _weak(
    snapshot: Snapshot,
    cache: TermCache,
    query: RecallQuery,
    indexed: EntriesByIndex,
    found: _Rankings,
    offsets: Sequence[int],
) -> Collection[int]:
    """The offsets of the weak hits: those that are neither close to the query nor linked to an entity that it names.

    Checks the points of the hits. Raises `IndexDamaged`, and `IndexUnavailable`.
    """
    terms, generation = query_terms(query.text, ()).terms, snapshot.computed_at["generation"]
    rows = [found.rows[offset] for offset in offsets]
    measured = by_words.candidates(by_words.Compared(texts=rows), generation, cache, terms, found.idf).candidates
    set_apart(measured)
    for each in measured:
        each.id, each.semantic = found.points.get(each.offset, ""), found.cosines.get(each.offset)
    if indexed.index is not None and (pointed := [each for each in measured if each.id]):
        await by_index.events(indexed.index, query, pointed)
    return closeness.weak(measured, measured, terms).difference(found.offsets.get(ENTITY, ()))


def _hit(
    partition: int, found: _Rankings, offset: int, score: float, parts: dict[str, float], *, weak: bool
) -> RecallHit:
    row = found.rows[offset]
    event = entry_reading.event_of(row)
    return RecallHit.model_construct(
        position=Position(partition, offset),
        event=event,
        text=event.text,
        score=score,
        parts=parts,
        similarity=found.cosines.get(offset),
        source="index" if offset in found.points else "views",
        passage=quoting.find_quote(event.text, None, found.idf or {}),
        weak=weak,
    )
