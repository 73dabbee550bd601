"""Recall: the memories that answer a query.

Candidates come from the index and, for records that the index has not processed yet, from the words of the views.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from recallog.index.indexer import IndexSnapshot
from recallog.reading.filters import Passes
from recallog.reading.read_session import Snapshot, position
from recallog.reading.readings import AgentReading
from recallog.reading.source_classes import mark_classes
from recallog.reading.subject import of_agent, own_log
from recallog.retrieval import (
    by_index,
    by_words,
    closeness,
    filtered,
    index_lag,
    lists,
    named_times,
    nicknames,
    persons,
    quoting,
    ranking,
    said_once,
    stretches,
    time_relations,
    time_scope,
)
from recallog.retrieval import sources as all_sources
from recallog.retrieval.attempts import attempt
from recallog.retrieval.candidates import Candidate, RankingQuery, set_apart
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC, STRUCTURE
from recallog.retrieval.query import QueryTerms, RecallQuery, now_of, possible_names, query_terms
from recallog.retrieval.ranking import Ranked
from recallog.retrieval.searcher import Searcher
from recallog.retrieval.sources import CandidateSource, Kept, SourceQuery
from recallog.retrieval.time_scope import TimeScope
from recallog_projections.index import terms
from recallog_projections.index.language import questions
from recallog_projections.tables import RowKey
from recallog_projections.views import activity, clock, episodic, outline, salience, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Position, codec
from recallog_schemas.errors import IndexUnavailable
from recallog_schemas.timestamps import micros
from recallog_schemas.views import RecallHit, RecallView


@dataclass(slots=True)
class _Gathered:
    """Candidates of the index and of the views."""

    candidates: list[Candidate] = field(default_factory=list)
    sessions: dict[str, float] = field(default_factory=dict)
    idf: Mapping[str, float] = field(default_factory=dict)
    memories: dict[int, RememberedEvent] = field(default_factory=dict)
    """By offset: the memories that came from the views."""
    texts: dict[int, Kept] = field(default_factory=dict)
    """By offset: the texts of the candidates that are not events."""
    index: IndexSnapshot | None = None
    """The generation of the index that answered; None if none did."""
    points: Collection[str] = ()
    """The points that pass the filter of the query."""


async def recall(reading: AgentReading, query: RecallQuery, compared: int | None = None) -> RecallView:
    """The memories that answer the query best. Without an index the result is not degraded.

    The words of the newest `compared` events are compared; None means all events that the views retain. If the index
    fails at any step, only words are compared, and `degraded` says why.
    """
    searcher: Searcher = reading.searcher
    events = reading.log_events if compared is None else compared
    if query.preset is not None:
        source = next(each for each in searcher.sources if query.preset in each.presets)
        return await source.recall(reading, query)
    if searcher.index is None:
        return await _recall_events(reading, query, events)
    answer = await attempt(searcher.index, reading.partition, partial(_recall_events, reading, query, events))
    if not isinstance(answer, IndexUnavailable):
        return answer
    view = await _recall_events(reading.without_index(), query, events)
    return view.model_copy(update={"degraded": f"only words were compared: {answer}"})


async def _ask(reading: AgentReading, query: RecallQuery, events: int, words: str) -> RecallView:
    """The memories nearest to `words` in the past that the query refers to. Its filters do not apply."""
    about = RecallQuery(query.space, query.agent, words, asked=False)
    return await _recall_events(
        reading, replace(about, offset_until=query.offset_until, at_until=query.at_until), events
    )


async def _recall_events(reading: AgentReading, query: RecallQuery, events: int) -> RecallView:
    searcher: Searcher = reading.searcher
    index, sources = searcher.index, searcher.sources
    spellings = possible_names(query.text)
    rows = [RowKey(activity.AGENTS.name, query.space, name) for name in spellings]
    rows += [RowKey(salience.CLOCK.name, query.space), RowKey(outline.OUTLINES.name, query.space)]
    rows += [*clock.keys(query.space, query.agent), RowKey(clock.AHEAD.name, query.space)]
    rows += [RowKey(settings.AGENTS.name, query.space, query.agent), RowKey(settings.SPACES.name, query.space)]
    rows += [row for source in sources for row in source.rows(query)]
    logs = episodic.logs(query.space, query.agent, events)
    # The logs have thousands of entries, and few queries need them while the index is available.
    times = time_relations.find(query.text) if query.asked and query.memories else []
    own = [own_log(query.space, query.agent)]
    opened = None if index is None or not query.text.strip() else await index.open(reading.partition)
    if opened is not None and query.memories and by_index.compares_meaning(query):
        opened.questions.begin(opened.embedder, query.text)
    snapshot = await reading.snapshot(rows, logs if index is None else own)
    if opened is not None and index is not None and opened.checkpoint < snapshot.processed:
        opened = await index.open(reading.partition)  # it may have processed more since
    space = snapshot.row(outline.OUTLINES, query.space)
    agents = [name for name in spellings if snapshot.row(activity.AGENTS, query.space, name)]
    agents += [each.name for each in space.participants] if space is not None else []
    agents = agents if query.memories else []
    terms_of, scope = partial(query_terms, agents=agents), None
    words = terms_of(query.text)
    if agents and query.asked and not words.authors:
        given = await nicknames.find_nicknames(query, snapshot, opened)
        terms_of = partial(terms_of, nicknames=given)
        words = terms_of(query.text) if given else words
    if times:
        events_named = await named_times.events_of(times, partial(_ask, reading, query, events))
        scope = time_scope.scope(times, now_of(snapshot, query), space, events_named)
        words, scope = named_times.words_beside(query.text, times, scope, terms_of)
    query = replace(query, apart=_kinds_apart(snapshot, query, sources), hidden=all_sources.hidden_kinds(sources))
    asked = SourceQuery(query, reading, snapshot, opened, searcher.cache)
    gathered = await _from_index(asked, sources, words, scope)
    compared = await _take_present(gathered, asked, sources)
    memories: Sequence[RememberedEvent] = ()
    if query.text.strip() and query.memories:
        if asked.index_checkpoint < snapshot.processed:
            if index is not None:
                snapshot = await reading.snapshot(rows, logs)
                asked = replace(asked, snapshot=snapshot)
            memories = snapshot.memories(query.space, query.agent)
        for source in sources:
            for text in await source.newer(asked, gathered.texts.keys()):
                compared[text.offset] = Kept(source, text)
        if memories or compared:
            _add_by_words(gathered, asked, memories, compared, words)
    if query.text.strip():
        await _add_apart(gathered, asked, sources)
    set_apart(gathered.candidates)
    lag = index_lag.of(gathered.index, snapshot)
    turn = snapshot.row(salience.CLOCK, query.space)
    noted = snapshot.row(clock.AHEAD, query.space)
    ahead = frozenset() if noted is None else frozenset(noted.offsets)
    context = RankingQuery(
        authors=words.authors,
        persons=persons.find_meant(query.text, query.agent, words.authors, space.participants)
        if space and query.asked
        else {},
        is_question=questions.is_question(query.text),
        scope=scope,
        sessions=gathered.sessions,
        idf=gathered.idf,
        channels=query.channels,
        fusion=query.fusion,
        now=max((each.at for each in gathered.candidates if each.offset not in ahead), default=0),
        turn=turn.turn if turn else 0,
    )
    ranked = [one for one in ranking.rank(gathered.candidates, context) if one.score > 0]
    if query.is_filtered:
        ranked = [one for one in ranked if query.wants(one.candidate)]
    if scope is not None and scope.is_all:
        ranked = [one for one in ranked if scope.holds(one.candidate.session, one.candidate.at)]
    if query.has_fields is not None:
        ranked = [one for one in ranked if _has_fields(gathered, query.has_fields, one.candidate)]
    if query.tiers is not None:
        wanted = await _in_tiers(gathered, asked, sources)
        ranked = [one for one in ranked if one.candidate.is_entry and one.candidate.offset in wanted]
    least = query.min_similarity
    if least is not None:
        ranked = [one for one in ranked if one.candidate.semantic is None or one.candidate.semantic >= least]
    if query.asked and STRUCTURE in query.channels and lists.asks_for_list(query.text):
        ranked = lists.spread(ranked)
    hits: Sequence[RecallHit] = await _best_hits(snapshot.partition, query, gathered, ranked, words)
    for source in sources:
        of_source = {offset: kept.text for offset, kept in gathered.texts.items() if kept.source is source}
        hits = await source.mark(reading, query, hits, of_source)
    hits = stretches.join_stretches(hits, gathered.candidates)
    return RecallView(
        **await of_agent(reading, snapshot),
        query=query.text,
        top_k=query.top_k,
        channels=_list_channels(gathered.candidates, query),
        fusion=query.fusion,
        now=now_of(snapshot, query),
        times=await named_times.name_times(scope, query, gathered.candidates, gathered.index, hits),
        hits=mark_classes(snapshot, query.space, hits),
        considered=len(gathered.candidates),
        index=gathered.index.generation if gathered.index else None,
        index_checkpoint=position(snapshot.partition, gathered.index.checkpoint) if gathered.index else None,
        index_behind=lag.positions,
        degraded=lag.degraded,
    )


def _kinds_apart(snapshot: Snapshot, query: RecallQuery, sources: Sequence[CandidateSource]) -> Sequence[str]:
    """The kinds of texts that are searched separately from events. If the query names types or tiers, these are all
    kinds; otherwise the kinds of which the space has texts."""
    is_chosen = query.types is not None or query.tiers is not None
    return [each.kind for each in sources if each.kind and (is_chosen or each.has_texts(snapshot, query.space))]


async def _from_index(
    asked: SourceQuery, sources: Sequence[CandidateSource], words: QueryTerms, scope: TimeScope | None
) -> _Gathered:
    if asked.index is None or not asked.query.memories:
        return _Gathered(index=asked.index)
    query = await filtered.narrow_query(asked, sources)
    found = await by_index.find(asked.index, query, words, scope)
    points = frozenset(query.points or ())
    return _Gathered(found.candidates, found.sessions, found.idf, index=asked.index, points=points)


async def _take_present(gathered: _Gathered, asked: SourceQuery, sources: Sequence[CandidateSource]) -> dict[int, Kept]:
    """Drop candidates whose text the agent may not read, or whose text has been removed.

    Returns, by offset, the texts that differ from those in the index: they are compared by words.
    """
    texts: dict[int, Kept] = {}
    for source in sources:
        of_kind = [each for each in gathered.candidates if each.is_entry and each.kind == source.kind]
        if of_kind:
            texts |= {offset: Kept(source, text) for offset, text in (await source.read(asked, of_kind)).items()}
    known = []
    for each in gathered.candidates:
        kept = texts.get(each.offset)
        if each.is_entry and (kept is None or kept.source.point_of(kept.text) != each.id):
            continue
        if kept is not None:
            gathered.texts[each.offset] = kept
            each.importance, each.type = kept.text.importance, kept.text.type
        known.append(each)
    gathered.candidates = known
    return {offset: kept for offset, kept in texts.items() if offset not in gathered.texts}


def _add_by_words(
    gathered: _Gathered,
    asked: SourceQuery,
    memories: Sequence[RememberedEvent],
    texts: Mapping[int, Kept],
    words: QueryTerms,
) -> None:
    """Add the `memories` that the index has not processed yet, and `texts`."""
    generation = asked.snapshot.computed_at["generation"]
    query = asked.query
    until = query.offset_until
    compared = by_words.Compared(
        [memory for memory in memories if until is None or memory.offset <= until],
        [kept.text for kept in texts.values() if until is None or kept.text.offset <= until],
        asked.index_checkpoint,
    )
    newer = by_words.candidates(compared, generation, asked.cache, words.terms)
    if query.at_until is not None:
        newer.candidates = [each for each in newer.candidates if each.at <= micros(query.at_until)]
    known = {each.offset for each in gathered.candidates}
    gathered.candidates += [each for each in newer.candidates if each.offset not in known]
    gathered.memories = newer.memories
    gathered.texts |= texts
    gathered.idf = gathered.idf or newer.idf
    if gathered.index is None or gathered.sessions:
        best = {session: max(gathered.sessions.get(session, 0.0), idf) for session, idf in newer.sessions.items()}
        gathered.sessions = gathered.sessions | best


async def _add_apart(gathered: _Gathered, asked: SourceQuery, sources: Sequence[CandidateSource]) -> None:
    """Add the candidates that are not searched together with events."""
    for source in sources:
        found = await source.find(asked, gathered.idf)
        gathered.candidates += found.candidates
        gathered.texts |= {text.offset: Kept(source, text) for text in found.texts}
        gathered.idf = found.idf


def _has_fields(gathered: _Gathered, has_fields: Passes, candidate: Candidate) -> bool:
    """Whether a memory passes the filter of fields."""
    if candidate.is_entry:
        kept = gathered.texts[candidate.offset]
        return has_fields(kept.source.show(kept.text).event)
    if candidate.id:
        return candidate.id in gathered.points
    return has_fields(codec.decode(gathered.memories[candidate.offset].data))


async def _in_tiers(gathered: _Gathered, asked: SourceQuery, sources: Sequence[CandidateSource]) -> Collection[int]:
    """The offsets of the texts that are in one of the tiers of the query."""
    found: set[int] = set()
    for source in sources:
        texts = [kept.text for kept in gathered.texts.values() if kept.source is source]
        found.update(await source.in_tiers(asked, texts))
    return found


async def _best_hits(
    partition: int, query: RecallQuery, gathered: _Gathered, ranked: Sequence[Ranked], words: QueryTerms
) -> list[RecallHit]:
    """The `query.top_k` best memories. If a memory was made from a better one, or is its source, the next best memory
    takes its place."""
    found = [one.candidate for one in ranked]
    measure = partial(closeness.weak, found, gathered.candidates, words.terms, is_english=terms.is_english(query.text))

    async def hits_of(first: int, end: int) -> list[RecallHit]:
        weak = measure(first=end)
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
        offset, lines = each.offset, None
        if each.is_entry:
            kept = gathered.texts[each.offset]
            event, shown, offset, lines = kept.source.show(kept.text)
        elif each.id:
            data, text = stored[each.id]
            event = codec.decode(data)
            shown = event.text if text is None else text
        else:
            memory = gathered.memories[each.offset]
            event = codec.decode(memory.data)
            shown = event.text if memory.text is None else memory.text
        hits.append(
            RecallHit.model_construct(
                position=Position(partition, offset),
                event=event,
                text=shown,
                score=one.score,
                parts=one.parts,
                similarity=each.semantic,
                source="index" if each.id else "views",
                passage=quoting.find_quote(shown, each.passage, gathered.idf),
                lines=lines,
                weak=each.offset in weak,
            )
        )
    return hits


def _list_channels(candidates: Sequence[Candidate], query: RecallQuery) -> tuple[str, ...]:
    """The channels that scored at least one candidate."""
    unknown = {SEMANTIC, LATE_INTERACTION}
    if any(each.semantic is not None for each in candidates):
        unknown.discard(SEMANTIC)
    if any(each.late_interaction is not None for each in candidates):
        unknown.discard(LATE_INTERACTION)
    return tuple(sorted(query.channels - unknown))
