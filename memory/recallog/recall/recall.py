"""The answer to "what do I remember about this?": from the index as far as it goes, from the views' words beyond it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from recallog.index.asking import Asking, Opened
from recallog.reading import Look, Reading, position
from recallog.recall import by_index, by_words
from recallog.recall.question import Question, Words, micros, possible_names, words_of
from recallog_projections import activity, episodic, salience
from recallog_projections.index import ranking
from recallog_projections.index.ranking import Asked, Candidate, Ranked
from recallog_projections.projection import Need
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
    data: dict[int, bytes] = field(default_factory=dict)
    """By offset, the events that the views gave."""
    opened: Opened | None = None
    """The index, where it answered."""
    behind: int = 0
    degraded: str | None = None


async def recall(reading: Reading, asking: Asking | None, question: Question, kept: int) -> RecallView:
    """The memories that answer best. `asking` asks the index; None: it is off, which is no fault."""
    names = possible_names(question.query)
    rows = [Need(activity.AGENTS.name, question.space, name) for name in names]
    clock = Need(salience.CLOCK.name, question.space)
    look = await reading.look([*rows, clock], episodic.logs(question.space, question.agent, kept))
    words = words_of(question.query, [name for name in names if look.row(activity.AGENTS, question.space, name)])
    gathered = await _gather(look, asking, question, words)
    turn = look.row(salience.CLOCK, question.space)
    asked = Asked(
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
    best = ranked[: question.top_k]
    return RecallView(
        **look.computed_at,
        space=question.space,
        agent=question.agent,
        query=question.query,
        top_k=question.top_k,
        channels=_used(gathered.candidates, question),
        fusion=question.fusion,
        hits=tuple(await _hits(look.partition, gathered, best)),
        considered=len(gathered.candidates),
        index=gathered.opened.generation if gathered.opened else None,
        index_checkpoint=position(look.partition, gathered.opened.checkpoint) if gathered.opened else None,
        index_behind=gathered.behind,
        degraded=gathered.degraded,
    )


async def _gather(look: Look, asking: Asking | None, question: Question, words: Words) -> _Gathered:
    gathered = _Gathered()
    if not question.query.strip():
        return gathered
    if asking is not None:
        try:
            await _ask(gathered, asking, look.partition, question, words)
        except IndexUnavailable as error:
            gathered.degraded = f"only words were compared: {error}"
    decided = look.computed_at["checkpoint"]
    beyond = gathered.opened.checkpoint if gathered.opened is not None else -1
    newest = decided.offset if decided is not None else -1
    if gathered.opened is None or newest > beyond:
        _add_by_words(gathered, look, question, words, beyond)
    if gathered.opened is not None:
        gathered.behind = max(0, newest - beyond)
        if gathered.behind > limits.RECALL_BEHIND:
            gathered.degraded = (
                f"the index is {gathered.behind:,} positions behind; of what is newer only words were compared"
            )
    return gathered


async def _ask(gathered: _Gathered, asking: Asking, partition: int, question: Question, words: Words) -> None:
    for tries_left in reversed(range(_TRIES)):
        opened = await asking.open(partition)
        try:
            found = await by_index.find(opened, question, words)
        except IndexLost:
            if not tries_left:
                raise
            continue  # another generation took its place meanwhile
        gathered.opened, gathered.candidates, gathered.idf = opened, found.candidates, found.idf
        return


def _add_by_words(gathered: _Gathered, look: Look, question: Question, words: Words, beyond: int) -> None:
    """What the views know and the index does not."""
    memories = [
        memory
        for memory in look.memories(question.space, question.agent)
        if question.offset_until is None or memory.offset <= question.offset_until
    ]
    newer = by_words.candidates(memories, words.terms, beyond)
    if question.at_until is not None:
        newer.candidates = [each for each in newer.candidates if each.at <= micros(question.at_until)]
    known = {each.offset for each in gathered.candidates}
    gathered.candidates += [each for each in newer.candidates if each.offset not in known]
    gathered.data = newer.data
    gathered.idf = gathered.idf or newer.idf
    if gathered.opened is None:
        gathered.sessions = newer.sessions


async def _hits(partition: int, gathered: _Gathered, best: Sequence[Ranked]) -> list[RecallHit]:
    ids = [one.candidate.id for one in best if one.candidate.id]
    stored = await by_index.events(gathered.opened, ids) if gathered.opened is not None and ids else {}
    hits = []
    for one in best:
        each = one.candidate
        event = codec.decode(stored[each.id] if each.id else gathered.data[each.offset])
        hits.append(
            RecallHit.model_construct(
                position=Position(partition, each.offset),
                event=event,
                text=event.text,
                score=one.score,
                parts=dict(one.parts),
                similarity=each.semantic,
                source="index" if each.id else "views",
            )
        )
    return hits


def _used(candidates: Sequence[Candidate], question: Question) -> tuple[str, ...]:
    """The channels that had something to say."""
    unknown = {ranking.SEMANTIC, ranking.LATE}
    if any(each.semantic is not None for each in candidates):
        unknown.discard(ranking.SEMANTIC)
    if any(each.late is not None for each in candidates):
        unknown.discard(ranking.LATE)
    return tuple(sorted(question.channels - unknown))
