"""Which of the candidates answer a question best. Pure: scores in, an order and its reasons out.

The weights were found on three public conversations and are not delicate; `docs/recall.md` has what each term is worth.
A candidate's own score is the weighted sum of its channels. Conversation structure comes on top: what was said around
it in its session, whether it follows a question, whether the question names its author, and how much of the question
its whole session speaks of.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from recallog.retrieval.channels import (
    DEFAULT_CHANNELS,
    KEYWORD,
    LATE_INTERACTION,
    RRF,
    SCORED,
    SEMANTIC,
    STRUCTURE,
    TEMPORAL,
    WEIGHTED,
)
from recallog_projections.views import salience
from recallog_schemas import kinds

RRF_K = 60
"""Cormack, Clarke and Buettcher, 2009; ranks from 1."""
LATE_IDF_POWER = 1.5
"""How much rare words of a question outweigh its common ones in late interaction."""

AROUND = 2
"""How many turns before and after count as one text with a memory."""

_LIKELY = 0.6
"""What a channel that needs vectors would likely say of a memory which has none yet and has all words of the question:
what was said just now must not drop out behind all that is indexed."""
_HALF_LIFE_DAYS = 7.0
_DAY = 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """What each term is worth."""

    keyword: float
    semantic: float = 0.0
    late_interaction: float = 0.0
    around: float = 0.0
    """Late interaction with a memory and those next to it as if they were one text."""
    temporal: float = 0.3
    salience: float = 0.3
    neighbour: float = 0.35
    """Of the better one of the two turns next to it."""
    decay: float = 0.4
    """From one step away to the next."""
    reach: int = 3
    """How many turns before and after it count."""
    floor: float = 0.3
    """The share of the best score that a neighbour has to be above to say anything: noise has neighbours everywhere."""
    answer: float = 0.2
    """Of the score of a question that it follows."""
    question: float = 0.05
    """Taken off a question: it seldom says what is asked for."""
    author: float = 0.3
    session: float = 0.0
    """Of the share of the question that its whole session speaks of."""


WITH_LATE_INTERACTION = RankingWeights(keyword=0.24, semantic=0.5, late_interaction=0.8, around=0.4)
WITHOUT_LATE_INTERACTION = RankingWeights(keyword=0.4, semantic=0.8)
BY_WORDS = RankingWeights(keyword=0.62, reach=2, floor=0.0, answer=0.4, neighbour=0.3, session=0.2)

REACH = max(weights.reach for weights in (WITH_LATE_INTERACTION, WITHOUT_LATE_INTERACTION, BY_WORDS))
"""How far around a memory others are needed to rank it."""


@dataclass(slots=True)
class Candidate:
    """One memory, and what the channels say of it."""

    id: str
    """Its point's; "" where the index does not have it."""
    offset: int
    agent: str
    kind: str
    session: str
    ordinal: int
    """Its ordinal in the session."""
    turn: int
    at: int
    """Microseconds since 1970."""
    is_question: bool
    semantic: float | None = None
    """Cosine with the question; None where it is not known."""
    late_interaction: list[float] | None = None
    """Of each content word-piece of the question, the best cosine with one of its own, times the piece's share of the
    question: they sum up to 1 at most."""
    keyword: float = 0.0
    """BM25."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1, of its kind when it was said."""
    coverage: float = 0.0
    """0 to 1: of the question's terms, by idf, those that it has. Known where no vector is."""


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """What a ranking needs of the question and of where it is asked."""

    authors: Collection[str] = ()
    """Agents that the question names."""
    sessions: Mapping[str, float] = field(default_factory=dict)
    """Of each session, the summed idf of the question's terms that are spoken of in it."""
    idf: Mapping[str, float] = field(default_factory=dict)
    """Of the question's terms."""
    channels: Collection[str] = DEFAULT_CHANNELS
    fusion: str = WEIGHTED
    now: int = 0
    """The moment that age is measured from, microseconds since 1970: never the wall clock."""
    turn: int = 0
    """The turn that recency is measured from."""


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    score: float
    parts: Mapping[str, float]
    """What the score is the sum of."""


def rank(candidates: Sequence[Candidate], asked: RankingQuery) -> list[Ranked]:
    """All candidates, best first; of equal ones the newer."""
    weights, used = _weights(candidates, asked.channels)
    own = (_reciprocal_ranks if asked.fusion == RRF else _weighted)(candidates, asked, weights, used)
    parts = _with_structure(candidates, own, asked, weights) if STRUCTURE in asked.channels else own
    ranked = [Ranked(each, sum(terms.values()), terms) for each, terms in zip(candidates, parts, strict=True)]
    ranked.sort(key=lambda one: (-one.score, -one.candidate.offset))
    return ranked


def _weights(candidates: Sequence[Candidate], channels: Collection[str]) -> tuple[RankingWeights, list[str]]:
    """The weights for what is known of the candidates, and the channels that have something to say."""
    known = {
        SEMANTIC: any(each.semantic is not None for each in candidates),
        LATE_INTERACTION: any(each.late_interaction is not None for each in candidates),
    }
    used = [name for name in SCORED if name in channels and known.get(name, True)]
    if LATE_INTERACTION in used:
        return WITH_LATE_INTERACTION, used
    return WITHOUT_LATE_INTERACTION if SEMANTIC in used else BY_WORDS, used


def _weighted(
    candidates: Sequence[Candidate], asked: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> list[dict[str, float]]:
    """Channels on a scale from 0 to 1, weighted."""
    best = max((each.keyword for each in candidates), default=0.0)
    # Between what the best text has of the question and what a text could have: one says little of questions that
    # nobody answers in their own words, the other of those that many do.
    whole = math.sqrt(best * sum(asked.idf.values())) or 1.0
    weighed = [(name, getattr(weights, name) / (whole if name == KEYWORD else 1.0)) for name in used]
    columns = [[weight * value for value in _values(candidates, name, asked)] for name, weight in weighed]
    return [dict(zip(used, terms, strict=True)) for terms in zip(*columns, strict=True)] or [{} for _ in candidates]


def _values(candidates: Sequence[Candidate], channel: str, asked: RankingQuery) -> list[float]:
    """What a channel says of each candidate."""
    if channel == KEYWORD:
        return [each.keyword for each in candidates]
    if channel == SEMANTIC:
        return [_likely(each) if each.semantic is None else max(each.semantic, 0.0) for each in candidates]
    if channel == LATE_INTERACTION:
        return [_likely(each) if each.late_interaction is None else sum(each.late_interaction) for each in candidates]
    if channel == TEMPORAL:
        span = _HALF_LIFE_DAYS * _DAY
        return [math.exp(-math.log(2) * max(0, asked.now - each.at) / span) for each in candidates]
    return [_salience(each, asked) for each in candidates]


def _likely(each: Candidate) -> float:
    return _LIKELY * each.coverage


def _salience(each: Candidate, asked: RankingQuery) -> float:
    recency = salience.recency(each.turn, asked.turn)
    of = salience.Weights()
    return (of.recency * recency + of.importance * each.importance) / (of.recency + of.importance)


def _reciprocal_ranks(
    candidates: Sequence[Candidate], asked: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> list[dict[str, float]]:
    """Channels by what each ranks first, whatever its scale; `weights` say nothing here."""
    found: list[dict[str, float]] = [{} for _ in candidates]
    for name in used:
        values = zip(_values(candidates, name, asked), (each.offset for each in candidates), strict=True)
        numbered = [(value, offset, number) for number, (value, offset) in enumerate(values) if value > 0]
        hits = sorted(numbered, key=lambda value: (-value[0], -value[1]))
        for ordinal, (_, _, number) in enumerate(hits, 1):
            found[number][name] = 1 / (RRF_K + ordinal)
    return found


def _with_structure(
    candidates: Sequence[Candidate], own: Sequence[Mapping[str, float]], asked: RankingQuery, weights: RankingWeights
) -> list[dict[str, float]]:
    scale = 1 / (RRF_K + 1) if asked.fusion == RRF else 1.0  # so that structure does not drown the ranks
    scores = [sum(terms.values()) for terms in own]
    floor = weights.floor * max(scores, default=0.0)
    scores = [max(score - floor, 0.0) for score in scores]
    ordinals: dict[str, dict[int, int]] = {}
    for number, each in enumerate(candidates):
        ordinals.setdefault(each.session, {})[each.ordinal] = number
    away = [(step, weights.neighbour * weights.decay ** (step - 1)) for step in range(1, weights.reach + 1)]
    most = max(asked.sessions.values(), default=0.0) or 1.0
    found = []
    for each, terms in zip(candidates, own, strict=True):
        at = ordinals[each.session].get
        more = dict(terms)
        around = 0.0
        for step, worth in away:
            one, other = at(each.ordinal - step), at(each.ordinal + step)
            around += worth * max(0.0 if one is None else scores[one], 0.0 if other is None else scores[other])
        more["neighbours"] = around
        if weights.around and asked.fusion != RRF:
            more["around"] = weights.around * _around(each, candidates, at)
        before = at(each.ordinal - 1)
        if before is not None and candidates[before].is_question:
            more["answer"] = weights.answer * scores[before]
        if each.is_question:
            more["question"] = -min(weights.question * scale, sum(terms.values()) / 2)  # it says a little all the same
        if each.agent in asked.authors:
            more["author"] = weights.author * scale
        if asked.sessions.get(each.session):
            more["session"] = weights.session * scale * asked.sessions[each.session] / most
        found.append(more)
    return found


def _around(each: Candidate, candidates: Sequence[Candidate], at: Callable[[int], int | None]) -> float:
    """Late interaction with a candidate and those next to it, where `at` knows who stands in which place."""
    if each.late_interaction is None:
        return _likely(each)
    numbers = (at(ordinal) for ordinal in range(each.ordinal - AROUND, each.ordinal + AROUND + 1))
    texts = [
        late_interaction
        for number in numbers
        if number is not None and (late_interaction := candidates[number].late_interaction)
    ]
    covered: float = sum(map(max, zip(*texts, strict=True)))
    return covered
