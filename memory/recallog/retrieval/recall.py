"""The answer to "what do I remember about this?": from the index as far as it goes, from the views' words beyond it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from recallog.index.indexer import IndexSnapshot
from recallog.index.semantic_index import SemanticIndex
from recallog.reading.read_session import ReadSession, Snapshot, position
from recallog.retrieval import by_index, by_words, ranking
from recallog.retrieval.channels import LATE_INTERACTION, SEMANTIC
from recallog.retrieval.question import RecallQuery, Words, micros, possible_names, words_of
from recallog.retrieval.ranking import Candidate, Ranked, RankingQuery
from recallog.retrieval.reranker import Reranker
from recallog_projections.projection import RowKey
from recallog_projections.views import activity, episodic, salience
from recallog_projections.views.episodic import RememberedEvent
from recallog_schemas import Position, codec, limits
from recallog_schemas.errors import IndexLost, IndexUnavailable
from recallog_schemas.views import RecallHit, RecallView

_TRIES = 3


@dataclass(slots=True)
class _Gathered:
    """Candidates of both sources."""

    candidates: list[Candidate] = field(default_factory=list)
    sessions: dict[str, float] = field(default_factory=dict)
    idf: dict[str, float] = field(default_factory=dict)
    memories: dict[int, RememberedEvent] = field(default_factory=dict)
    """By offset, what the views gave."""
    opened: IndexSnapshot | None = None
    """The index, where it answered."""
    behind: int = 0
    degraded: str | None = None

    @property
    def newest_known(self) -> int:
        """The last offset that the index has decided, -1 where it did not answer."""
        return -1 if self.opened is None else self.opened.checkpoint


async def recall(
    reading: ReadSession,
    asking: SemanticIndex | None,
    question: RecallQuery,
    log_events: int,
    reranker: Reranker | None = None,
) -> RecallView:
    """The memories that answer best. `asking` asks the index; None: it is off, which is no fault.

    An index that fails at any step costs the answer its vectors, never the answer.
    """
    failed: IndexUnavailable | None = None
    for _ in range(_TRIES if asking is not None else 0):
        try:
            return await _recalled(reading, asking, question, log_events, reranker)
        except IndexLost as error:
            failed = error  # another generation took its place meanwhile
        except IndexUnavailable as error:
            failed = error
            break
    view = await _recalled(reading, None, question, log_events, reranker)
    if failed is None:
        return view
    return view.model_copy(update={"degraded": f"only words were compared: {failed}"})


async def _recalled(
    reading: ReadSession,
    asking: SemanticIndex | None,
    question: RecallQuery,
    log_events: int,
    reranker: Reranker | None,
) -> RecallView:
    names = possible_names(question.query)
    rows = [RowKey(activity.AGENTS.name, question.space, name) for name in names]
    rows.append(RowKey(salience.CLOCK.name, question.space))
    logs = episodic.logs(question.space, question.agent, log_events)
    # Thousands of entries, which hardly any question needs while the index is being served.
    snapshot = await reading.snapshot(rows, logs if asking is None else ())
    words = words_of(question.query, [name for name in names if snapshot.row(activity.AGENTS, question.space, name)])
    gathered = await _of_index(snapshot, asking, question, words)
    if question.query.strip() and gathered.newest_known < snapshot.processed:
        if asking is not None:
            snapshot = await reading.snapshot(rows, logs)
        _add_by_words(gathered, snapshot, question, words)
    _say_how_far_behind(gathered, snapshot)
    turn = snapshot.row(salience.CLOCK, question.space)
    asked = RankingQuery(
        authors=words.authors,
        sessions=gathered.sessions,
        idf=gathered.idf,
        channels=question.channels,
        fusion=question.fusion,
        now=max((each.at for each in gathered.candidates), default=0),
        turn=turn.turn if turn else 0,
    )
    ranked = [
        one for one in ranking.rank(gathered.candidates, asked) if one.score > 0 and question.wants(one.candidate)
    ]
    least = question.min_similarity
    if least is not None:
        ranked = [one for one in ranked if one.candidate.semantic is None or one.candidate.semantic >= least]
    hits = await _hits(snapshot.partition, gathered, ranked[: max(question.top_k, limits.RERANKED if reranker else 0)])
    if reranker is not None and hits:
        hits = await _reranked(reranker, question, hits, gathered)
    return RecallView(
        **snapshot.computed_at,
        space=question.space,
        agent=question.agent,
        query=question.query,
        top_k=question.top_k,
        channels=_used(gathered.candidates, question),
        fusion=question.fusion,
        hits=tuple(hits[: question.top_k]),
        considered=len(gathered.candidates),
        index=gathered.opened.generation if gathered.opened else None,
        index_checkpoint=position(snapshot.partition, gathered.opened.checkpoint) if gathered.opened else None,
        index_behind=gathered.behind,
        degraded=gathered.degraded,
    )


async def _of_index(snapshot: Snapshot, asking: SemanticIndex | None, question: RecallQuery, words: Words) -> _Gathered:
    if asking is None or not question.query.strip():
        return _Gathered()
    opened = await asking.open(snapshot.partition)
    found = await by_index.find(opened, question, words)
    return _Gathered(found.candidates, idf=found.idf, opened=opened)


def _say_how_far_behind(gathered: _Gathered, snapshot: Snapshot) -> None:
    if gathered.opened is not None:
        gathered.behind = max(0, snapshot.processed - gathered.newest_known)
        if gathered.behind > limits.RECALL_BEHIND:
            gathered.degraded = (
                f"the index is {gathered.behind:,} positions behind; of what is newer only words were compared"
            )


def _add_by_words(gathered: _Gathered, snapshot: Snapshot, question: RecallQuery, words: Words) -> None:
    """What the views know and the index does not."""
    memories = [
        memory
        for memory in snapshot.memories(question.space, question.agent)
        if question.offset_until is None or memory.offset <= question.offset_until
    ]
    newer = by_words.candidates(memories, words.terms, gathered.newest_known)
    if question.at_until is not None:
        newer.candidates = [each for each in newer.candidates if each.at <= micros(question.at_until)]
    known = {each.offset for each in gathered.candidates}
    gathered.candidates += [each for each in newer.candidates if each.offset not in known]
    gathered.memories = newer.memories
    gathered.idf = gathered.idf or newer.idf
    if gathered.opened is None:
        gathered.sessions = newer.sessions


async def _hits(partition: int, gathered: _Gathered, best: Sequence[Ranked]) -> list[RecallHit]:
    ids = [one.candidate.id for one in best if one.candidate.id]
    stored = await by_index.events(gathered.opened, ids) if gathered.opened is not None and ids else {}
    hits = []
    for one in best:
        each = one.candidate
        if each.id:
            data, text = stored[each.id]
        else:
            memory = gathered.memories[each.offset]
            data, text = memory.data, memory.text
        event = codec.decode(data)
        hits.append(
            RecallHit.model_construct(
                position=Position(partition, each.offset),
                event=event,
                text=event.text if text is None else text,
                score=one.score,
                parts=dict(one.parts),
                similarity=each.semantic,
                source="index" if each.id else "views",
            )
        )
    return hits


async def _reranked(
    reranker: Reranker, question: RecallQuery, hits: Sequence[RecallHit], gathered: _Gathered
) -> list[RecallHit]:
    """The hits by what the reranker says of them; as they were where it fails."""
    try:
        scores = await asyncio.to_thread(reranker.score, question.query, [hit.text for hit in hits])
        scored = list(zip(scores, hits, strict=True))
    except Exception as error:  # noqa: BLE001 - somebody else's model may raise anything
        gathered.degraded = f"the reranker failed: {type(error).__name__}: {error}"
        return list(hits)
    scored.sort(key=lambda pair: -pair[0])
    return [hit.model_copy(update={"score": score, "parts": {"reranker": score}}) for score, hit in scored]


def _used(candidates: Sequence[Candidate], question: RecallQuery) -> tuple[str, ...]:
    """The channels that had something to say."""
    unknown = {SEMANTIC, LATE_INTERACTION}
    if any(each.semantic is not None for each in candidates):
        unknown.discard(SEMANTIC)
    if any(each.late_interaction is not None for each in candidates):
        unknown.discard(LATE_INTERACTION)
    return tuple(sorted(question.channels - unknown))
