"""Recall: the memories that answer a query.

Candidates come from the index and, for records that the index has not processed yet, from the words of the views.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from recallog.index.indexer import IndexSnapshot
from recallog.index.semantic_index import SemanticIndex
from recallog.models.long_term import candidates as entries_of
from recallog.models.long_term import entry_presence, presets
from recallog.models.working import candidates as blocks
from recallog.models.workspace import candidates as documents
from recallog.models.workspace.candidates import DocumentChunk
from recallog.reading.read_session import ReadSession, Snapshot, position
from recallog.reading.subject import of_agent, own_log
from recallog.retrieval import (
    by_index,
    by_words,
    closeness,
    dates,
    index_lag,
    persons,
    quoting,
    ranking,
    said_once,
    time_scope,
)
from recallog.retrieval.attempts import attempted
from recallog.retrieval.candidates import Candidate, RankingQuery
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.retrieval.query import QueryTerms, RecallQuery, possible_names, query_terms
from recallog.retrieval.ranking import Ranked
from recallog.retrieval.term_cache import TermCache
from recallog.retrieval.time_scope import TimeScope
from recallog_projections.index.language import questions
from recallog_projections.models.long_term import reading as entry_reading
from recallog_projections.models.long_term.documents import point_id_of
from recallog_projections.models.long_term.tables import EntryRow
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, clock, episodic, outline, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Position, codec
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.timestamps import micros
from recallog_schemas.views import RecallHit, RecallView


@dataclass(slots=True)
class _Gathered:
    """Candidates of both sources."""

    candidates: list[Candidate] = field(default_factory=list)
    sessions: dict[str, float] = field(default_factory=dict)
    idf: dict[str, float] = field(default_factory=dict)
    memories: dict[int, RememberedEvent] = field(default_factory=dict)
    """By offset: the memories that came from the views."""
    entries: dict[int, EntryRow] = field(default_factory=dict)
    """By offset: the rows of all candidates that are entries."""
    chunks: dict[int, DocumentChunk] = field(default_factory=dict)
    """By `place`: the candidates that are chunks of documents."""
    index: IndexSnapshot | None = None
    """The generation of the index that answered; None if none did."""

    @property
    def index_checkpoint(self) -> int:
        """The last offset that the index has processed; -1 if it did not answer."""
        return -1 if self.index is None else self.index.checkpoint


async def recall(
    reading: ReadSession,
    index: SemanticIndex | None,
    cache: TermCache,
    query: RecallQuery,
    log_events: int,
) -> RecallView:
    """The memories that answer the query best. `index` is None if the index is off; the result is then not degraded.

    If the index fails at any step, only words are compared, and `degraded` says why.
    """
    if query.preset is not None:
        return await presets.recall(reading, index, cache, query)
    if index is None:
        return await _recalled(reading, None, cache, query, log_events)
    answer = await attempted(index, reading.partition, lambda: _recalled(reading, index, cache, query, log_events))
    if not isinstance(answer, IndexUnavailable):
        return answer
    view = await _recalled(reading, None, cache, query, log_events)
    return view.model_copy(update={"degraded": f"only words were compared: {answer}"})


async def _recalled(
    reading: ReadSession,
    index: SemanticIndex | None,
    cache: TermCache,
    query: RecallQuery,
    log_events: int,
) -> RecallView:
    spellings = possible_names(query.text)
    rows = [RowKey(activity.AGENTS.name, query.space, name) for name in spellings]
    rows += [RowKey(salience.CLOCK.name, query.space), RowKey(outline.OUTLINES.name, query.space)]
    rows += [RowKey(settings.AGENTS.name, query.space, query.agent), *entry_presence.rows(query.space)]
    rows.append(RowKey(clock.NOW.name, query.space))
    logs = episodic.logs(query.space, query.agent, log_events)
    # The logs have thousands of entries, and few queries need them while the index is served.
    times = dates.find(query.text) if query.asked and query.memories else []
    newest = episodic.logs(query.space, query.agent, 1) if times else [own_log(query.space, query.agent)]
    snapshot = await reading.snapshot(rows, logs if index is None else newest)
    space = snapshot.row(outline.OUTLINES, query.space)
    agents = [name for name in spellings if snapshot.row(activity.AGENTS, query.space, name)]
    agents += [each.name for each in space.participants] if space is not None else []
    words = query_terms(query.text, agents if query.memories else ())
    scope = time_scope.scope(times, _now(snapshot, query), space) if times else None
    query = replace(query, has_entries=entry_presence.has_entries(snapshot, query.space))
    gathered = await _from_index(snapshot, index, query, words, scope)
    entries = await _resolved_entries(gathered, reading, query)
    memories: Sequence[RememberedEvent] = ()
    if query.text.strip() and query.memories:
        if gathered.index_checkpoint < snapshot.processed:
            if index is not None:
                snapshot = await reading.snapshot(rows, logs)
            memories = snapshot.memories(query.space, query.agent)
        same = query.at_until is None and entry_presence.are_as_at(snapshot, query.space, gathered.index_checkpoint)
        if not same and entry_presence.has_entries(snapshot, query.space):
            newest_entries = await entries_of.newest(reading, query.space, query.agent)
            # A captured call of a tool is found as its event.
            others = [row for row in newest_entries if row.offset not in gathered.entries and not row.captured]
            if gathered.index is not None and gathered.index_checkpoint >= snapshot.processed:
                # It has the forms of the past too, unless there were too many.
                others = await by_index.without_points(gathered.index, others)
            entries |= {row.offset: row for row in others}
        own_settings = snapshot.row(settings.AGENTS, query.space, query.agent)
        for block in await blocks.included(reading, query.space, query.agent, own_settings):
            entries[block.offset] = block
        if memories or entries:
            _add_by_words(gathered, snapshot, memories, entries.values(), cache, query, words)
    if query.text.strip() and query.documents:
        await _add_documents(gathered, reading, snapshot, cache, query)
    entries_of.set_apart(gathered.candidates)
    lag = index_lag.of(gathered.index, snapshot)
    turn = snapshot.row(salience.CLOCK, query.space)
    context = RankingQuery(
        authors=words.authors,
        persons=persons.meant(query.text, query.agent, words.authors, space.participants)
        if space and query.asked
        else {},
        is_question=questions.is_question(query.text),
        scope=scope,
        sessions=gathered.sessions,
        idf=gathered.idf,
        channels=query.channels,
        fusion=query.fusion,
        now=max((each.at for each in gathered.candidates), default=0),
        turn=turn.turn if turn else 0,
    )
    ranked = [one for one in ranking.rank(gathered.candidates, context) if one.score > 0 and query.wants(one.candidate)]
    if query.tiers is not None:
        in_tiers = await entries_of.in_tiers(reading, [*gathered.entries.values()], query.tiers)
        wanted = {row.offset for row in in_tiers}
        ranked = [one for one in ranked if one.candidate.is_entry and one.candidate.offset in wanted]
    least = query.min_similarity
    if least is not None:
        ranked = [one for one in ranked if one.candidate.semantic is None or one.candidate.semantic >= least]
    hits = await _best_hits(snapshot.partition, query, gathered, ranked, words)
    return RecallView(
        **await of_agent(reading, snapshot, query.space, query.agent),
        query=query.text,
        top_k=query.top_k,
        channels=_used(gathered.candidates, query),
        fusion=query.fusion,
        now=presets.now_of(snapshot, query),
        hits=tuple(hits),
        considered=len(gathered.candidates),
        index=gathered.index.generation if gathered.index else None,
        index_checkpoint=position(snapshot.partition, gathered.index.checkpoint) if gathered.index else None,
        index_behind=lag.positions,
        degraded=lag.degraded,
    )


async def _from_index(
    snapshot: Snapshot,
    index: SemanticIndex | None,
    query: RecallQuery,
    words: QueryTerms,
    scope: TimeScope | None,
) -> _Gathered:
    if index is None or not query.text.strip():
        return _Gathered()
    opened = await index.open(snapshot.partition)
    if not query.memories:
        return _Gathered(index=opened)
    found = await by_index.find(opened, query, words, scope)
    return _Gathered(found.candidates, found.sessions, found.idf, index=opened)


def _now(snapshot: Snapshot, query: RecallQuery) -> datetime | None:
    """The time of the question: `now` or `as_of` of the query, else that of the newest memory; None without one."""
    if query.now is not None or query.at_until is not None:
        return query.now or query.at_until
    newest = snapshot.memories(query.space, query.agent)[-1:]
    return codec.decode(newest[0].data).at if newest else None


async def _resolved_entries(gathered: _Gathered, reading: ReadSession, query: RecallQuery) -> dict[int, EntryRow]:
    """Drop the candidates that are no entries which the agent may read.

    Returns the rows of those whose text is another one than the index has: they are compared by words.
    """
    rows = await entries_of.of_candidates(reading, query.space, query.agent, gathered.candidates)
    known = []
    for each in gathered.candidates:
        row = rows.get(each.offset)
        if each.is_entry and (row is None or point_id_of(row) != each.id):
            continue
        if row is not None:
            gathered.entries[each.offset] = row
            each.importance, each.type = row.importance, row.type
        known.append(each)
    gathered.candidates = known
    return {offset: row for offset, row in rows.items() if offset not in gathered.entries}


def _add_by_words(
    gathered: _Gathered,
    snapshot: Snapshot,
    memories: Sequence[RememberedEvent],
    entries: Collection[EntryRow],
    cache: TermCache,
    query: RecallQuery,
    words: QueryTerms,
) -> None:
    """Add those of `memories` that the index has not processed yet, and `entries`."""
    generation = snapshot.computed_at["generation"]
    until = query.offset_until
    newer = by_words.candidates(
        [memory for memory in memories if until is None or memory.offset <= until],
        [row for row in entries if until is None or row.offset <= until],
        generation,
        cache,
        words.terms,
        gathered.index_checkpoint,
    )
    if query.at_until is not None:
        newer.candidates = [each for each in newer.candidates if each.at <= micros(query.at_until)]
    known = {each.offset for each in gathered.candidates}
    gathered.candidates += [each for each in newer.candidates if each.offset not in known]
    gathered.memories = newer.memories
    gathered.entries |= {row.offset: row for row in entries}
    gathered.idf = gathered.idf or newer.idf
    if gathered.index is None or gathered.sessions:
        best = {session: max(gathered.sessions.get(session, 0.0), idf) for session, idf in newer.sessions.items()}
        gathered.sessions = gathered.sessions | best


async def _add_documents(
    gathered: _Gathered,
    reading: ReadSession,
    snapshot: Snapshot,
    cache: TermCache,
    query: RecallQuery,
) -> None:
    """Add the chunks of documents: those that the index found, and others of documents that it does not have as they
    are now, or were then."""
    beyond, words = -1, query_terms(query.text, ())  # a document may name an agent, and is no memory of it
    if gathered.index is not None:
        found = await by_index.find(gathered.index, query.of_documents(), words)
        candidates, chunks = await documents.of_candidates(reading, query.space, query.agent, found.candidates)
        gathered.candidates += candidates
        gathered.chunks = {chunk.place: chunk for chunk in chunks}
        gathered.idf = found.idf | gathered.idf
        # Of the past, it has the chunks of a limited number of changes.
        is_past = query.at_until is not None or gathered.index.checkpoint > snapshot.processed
        beyond = -1 if is_past else gathered.index.checkpoint
    if beyond < snapshot.processed:
        others = await documents.newest(reading, query.space, query.agent, beyond)
        others = [chunk for chunk in others if chunk.place not in gathered.chunks]
        generation = snapshot.computed_at["generation"]
        newer = documents.by_their_words(others, generation, cache, words.terms, gathered.idf)
        gathered.candidates += newer.candidates
        gathered.chunks |= {chunk.place: chunk for chunk in others}
        gathered.idf = newer.idf | gathered.idf  # of memories, names of agents are no terms


def _weak(gathered: _Gathered, ranked: Sequence[Ranked], words: QueryTerms, first: int) -> frozenset[int]:
    """The offsets of the weak memories among the `first` of `ranked`."""
    found = [one.candidate for one in ranked]
    return closeness.weak(found, gathered.candidates, words.terms, first=first)


async def _best_hits(
    partition: int, query: RecallQuery, gathered: _Gathered, ranked: Sequence[Ranked], words: QueryTerms
) -> list[RecallHit]:
    """The `query.top_k` best memories, of which none is made from another; if some are, further ones follow."""

    async def hits_of(first: int, end: int) -> list[RecallHit]:
        weak = _weak(gathered, ranked, words, end)
        return await _hits(partition, query, gathered, ranked[first:end], weak)

    return await said_once.best(query.top_k, len(ranked), hits_of)


async def _hits(
    partition: int, query: RecallQuery, gathered: _Gathered, best: Sequence[Ranked], weak: Collection[int]
) -> list[RecallHit]:
    indexed = [one.candidate for one in best if one.candidate.id]
    stored = await by_index.events(gathered.index, query, indexed) if gathered.index is not None and indexed else {}
    hits = []
    for one in best:
        each = one.candidate
        chunk = gathered.chunks.get(each.offset)
        if chunk is not None:
            event, text = chunk.event, chunk.chunk.text
        elif each.is_entry:
            event, text = entry_reading.event_of(gathered.entries[each.offset]), None
        elif each.id:
            data, text = stored[each.id]
            event = codec.decode(data)
        else:
            memory = gathered.memories[each.offset]
            event, text = codec.decode(memory.data), memory.text
        shown = event.text if text is None else text
        hits.append(
            RecallHit.model_construct(
                position=Position(partition, each.offset if chunk is None else chunk.row.offset),
                event=event,
                text=shown,
                score=one.score,
                parts=one.parts,
                similarity=each.semantic,
                source="index" if each.id else "views",
                passage=quoting.quoted(shown, each.passage, gathered.idf),
                lines=None if chunk is None else (chunk.chunk.first, chunk.chunk.last),
                weak=each.offset in weak,
            )
        )
    return hits


def _used(candidates: Sequence[Candidate], query: RecallQuery) -> tuple[str, ...]:
    """The channels that scored at least one candidate."""
    unknown = {SEMANTIC, LATE_INTERACTION}
    if any(each.semantic is not None for each in candidates):
        unknown.discard(SEMANTIC)
    if any(each.late_interaction is not None for each in candidates):
        unknown.discard(LATE_INTERACTION)
    return tuple(sorted(query.channels - unknown))
