"""Ranking of recall candidates: channel scores in, an order with each term of the score out. Pure.

A candidate's own score is the weighted sum of its channels. Conversation structure is added: neighbouring turns of its
session, whether it follows a question, whether the query names its author, and how many of the query's terms its
session has. Texts of several passages count less, so that an assistant's essay does not outrank the sentence that it
answers. `docs/recall.md` lists what each term is worth, and how the weights were found.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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
from recallog.retrieval.time_scope import TimeScope
from recallog_projections.index.passages import PASSAGE_LENGTH
from recallog_projections.views import salience
from recallog_schemas import kinds

RRF_K = 60
"""Cormack, Clarke and Buettcher, 2009; ranks from 1."""
LATE_IDF_POWER = 1.5
"""Exponent on idf: how much rare words of a query outweigh common ones in late interaction."""

AROUND = 2
"""How many turns before and after are matched together with a memory in late interaction."""

LONG_TEXT_DISCOUNT = 0.1
"""Exponent on the number of passages of a memory, by which its scores are divided: the best of many passages is close
to a query by chance, and a long text has many words."""

_ORDINAL_BITS = 42
"""Ordinals are below 2**42."""

_LIKELY = 0.6
"""The assumed vector score of a memory that is not indexed yet and has all words of the query, so that memories
published just now are not ranked below all indexed ones."""
_HALF_LIFE_DAYS = 7.0
_DAY = 86_400 * 1_000_000


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """The weight of each term of the score."""

    keyword: float
    semantic: float = 0.0
    late_interaction: float = 0.0
    around: float = 0.0
    """Late interaction with a memory and its neighbours as one text."""
    temporal: float = 0.3
    salience: float = 0.3
    neighbour: float = 0.35
    """Share of the score of the better of the two turns next to it."""
    decay: float = 0.4
    """Factor for each further step away."""
    reach: int = 3
    """How many turns before and after count."""
    floor: float = 0.3
    """Share of the best score below which a neighbour adds nothing: unrelated turns have neighbours too."""
    answer: float = 0.2
    """Share of the score of a question that it follows."""
    question: float = 0.05
    """Subtracted from questions if the query is one: they seldom contain the answer."""
    author: float = 0.3
    person: float = 0.3
    when: float = 0.2
    exact: float = 0.5
    """For a memory that has all exact strings of the query."""
    session: float = 0.0
    """Share of the query's idf that its whole session contains."""


WITH_LATE_INTERACTION = RankingWeights(keyword=0.24, semantic=0.5, late_interaction=0.8, around=0.4)
WITHOUT_LATE_INTERACTION = RankingWeights(keyword=0.4, semantic=0.8)
BY_WORDS = RankingWeights(keyword=0.62, reach=2, floor=0.0, answer=0.4, neighbour=0.3, session=0.15, when=0.1)

REACH = max(weights.reach for weights in (WITH_LATE_INTERACTION, WITHOUT_LATE_INTERACTION, BY_WORDS))
"""How many neighbours on each side are needed to rank a memory."""


@dataclass(slots=True)
class Candidate:
    """One memory with the scores of its channels."""

    id: str
    """The id of its point; "" if it is not indexed."""
    offset: int
    agent: str
    kind: str
    session: str
    ordinal: int
    """Its number in the session, from 0."""
    turn: int
    at: int
    """Microseconds since 1970."""
    is_question: bool
    semantic: float | None = None
    """Cosine with the query; None if it is unknown."""
    late_interaction: list[float] | None = None
    """For each content token of the query: the best cosine with one of the memory's tokens, times the token's share of
    the query. The sum is at most 1."""
    keyword: float = 0.0
    """BM25."""
    importance: float = kinds.DEFAULT_IMPORTANCE
    """From 0 to 1: the importance of its kind when it was published."""
    coverage: float = 0.0
    """0 to 1: the share of the idf of the query's words that it contains."""
    exact: float = 0.0
    """0 to 1: the share of the idf of the query's exact strings (paths, flags, identifiers) that it contains."""
    text_key: int | None = None
    """The same for equal texts; None if it is unknown."""
    length: int = 0
    """`passages.length` of its text."""
    passage: int | None = None
    """The number, from 0, of the best of its embedded passages; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The input of ranking besides the candidates: the query and its context."""

    authors: Collection[str] = ()
    """Agents that the query names."""
    persons: Mapping[str, float] = field(default_factory=dict)
    """Agents that the query is about without naming them, such as those that "I" or "you" mean: how far, up to 1."""
    is_question: bool = True
    """Whether the query is a question, as opposed to a statement or a scene."""
    scope: TimeScope | None = None
    """The times and sessions that the query names; None if it names none."""
    sessions: Mapping[str, float] = field(default_factory=dict)
    """By session: the summed idf of the query's terms that occur in it."""
    idf: Mapping[str, float] = field(default_factory=dict)
    """By term of the query."""
    channels: Collection[str] = DEFAULT_CHANNELS
    fusion: str = WEIGHTED
    now: int = 0
    """The time that age is measured from, in microseconds since 1970: never the wall clock."""
    turn: int = 0
    """The turn that recency is measured from."""


@dataclass(frozen=True, slots=True)
class Ranked:
    candidate: Candidate
    score: float
    parts: Mapping[str, float]
    """The terms of the score by name; the score is their sum."""


def rank(candidates: Sequence[Candidate], query: RankingQuery) -> list[Ranked]:
    """All candidates, best first; of equal scores the newer first. Equal texts share the best score of them."""
    weights, used = _weights(candidates, query.channels)
    own = (_reciprocal_ranks if query.fusion == RRF else _weighted)(candidates, query, weights, used)
    parts = _with_structure(candidates, own, query, weights) if STRUCTURE in query.channels else own
    if KEYWORD in used:
        parts = _with_exact(candidates, parts, query, weights)
    ranked = _with_equal_texts(
        [Ranked(each, sum(terms.values()), terms) for each, terms in zip(candidates, parts, strict=True)]
    )
    ranked.sort(key=lambda one: (-one.score, -one.candidate.offset))
    return ranked


def _with_exact(
    candidates: Sequence[Candidate], parts: Sequence[dict[str, float]], query: RankingQuery, weights: RankingWeights
) -> list[dict[str, float]]:
    """The terms of the score, and that of the query's exact strings: no channel tells two similar paths apart."""
    scale = _scale(query)
    return [
        {**terms, "exact": weights.exact * scale * each.exact} if each.exact else terms
        for each, terms in zip(candidates, parts, strict=True)
    ]


def _scale(query: RankingQuery) -> float:
    """The factor of all terms that are not shares of other scores: reciprocal ranks are small."""
    return 1 / (RRF_K + 1) if query.fusion == RRF else 1.0


def _with_equal_texts(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Each with the best score of those that have its text, so that of equal texts the newest is first.

    A text that was said again is found with its last occurrence, whatever stood around the earlier ones.
    """
    best: dict[int, float] = {}
    for one in ranked:
        key = one.candidate.text_key
        if key is not None and one.score > best.get(key, -math.inf):
            best[key] = one.score
    return [
        Ranked(one.candidate, most, {**one.parts, "equal_text": most - one.score})
        if one.candidate.text_key is not None and (most := best[one.candidate.text_key]) > one.score
        else one
        for one in ranked
    ]


def _weights(candidates: Sequence[Candidate], channels: Collection[str]) -> tuple[RankingWeights, Sequence[str]]:
    """The weights for the channels that have scores, and the names of these channels."""
    known = {
        SEMANTIC: any(each.semantic is not None for each in candidates),
        LATE_INTERACTION: any(each.late_interaction is not None for each in candidates),
    }
    used = [name for name in SCORED if name in channels and known.get(name, True)]
    if LATE_INTERACTION in used:
        return WITH_LATE_INTERACTION, used
    return WITHOUT_LATE_INTERACTION if SEMANTIC in used else BY_WORDS, used


def _weighted(
    candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> list[dict[str, float]]:
    """Channel scores from 0 to 1, times their weights."""
    best = max((each.keyword for each in candidates), default=0.0)
    # The geometric mean of the best BM25 score and the highest possible one. The best score alone overrates queries
    # that no memory matches well; the highest possible one underrates queries that many memories match in part.
    whole = math.sqrt(best * sum(query.idf.values())) or 1.0
    weighed = [(name, getattr(weights, name) / (whole if name == KEYWORD else 1.0)) for name in used]
    columns = [(weight * _values(candidates, name, query)).tolist() for name, weight in weighed]
    return [dict(zip(used, terms, strict=True)) for terms in zip(*columns, strict=True)] or [{} for _ in candidates]


def _values(candidates: Sequence[Candidate], channel: str, query: RankingQuery) -> NDArray[np.float64]:
    """The scores of one channel, by candidate."""
    if channel in _OF_TEXT:
        return np.array([_OF_TEXT[channel](each) for each in candidates]) * _discounts(candidates)
    if channel == TEMPORAL:
        ages = [max(0, query.now - each.at) for each in candidates]
        return np.exp2(-np.array(ages) / (_HALF_LIFE_DAYS * _DAY))
    return np.array([_salience(each, query) for each in candidates])


def _passages(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """The length of each text in passages; at least 1."""
    return np.maximum(1.0, np.array([each.length for each in candidates]) / PASSAGE_LENGTH)


def _discounts(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """The factors of scores of texts, which long ones have by chance."""
    return _passages(candidates) ** -LONG_TEXT_DISCOUNT


def _likely(each: Candidate) -> float:
    return _LIKELY * each.coverage


def _semantic(each: Candidate) -> float:
    return _likely(each) if each.semantic is None else max(each.semantic, 0.0)


def _late_interaction(each: Candidate) -> float:
    return _likely(each) if each.late_interaction is None else sum(each.late_interaction)


_OF_TEXT: Mapping[str, Callable[[Candidate], float]] = {
    KEYWORD: lambda each: each.keyword,
    SEMANTIC: _semantic,
    LATE_INTERACTION: _late_interaction,
}
"""The channels that compare texts."""


def _salience(each: Candidate, query: RankingQuery) -> float:
    recency = salience.recency(each.turn, query.turn)
    of = salience.Weights()
    return (of.recency * recency + of.importance * each.importance) / (of.recency + of.importance)


def _reciprocal_ranks(
    candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> list[dict[str, float]]:
    """Reciprocal ranks of each channel, whatever its scale; `weights` are not used."""
    found: list[dict[str, float]] = [{} for _ in candidates]
    for name in used:
        values = zip(_values(candidates, name, query).tolist(), (each.offset for each in candidates), strict=True)
        numbered = [(value, offset, number) for number, (value, offset) in enumerate(values) if value > 0]
        hits = sorted(numbered, key=lambda value: (-value[0], -value[1]))
        for ordinal, (_, _, number) in enumerate(hits, 1):
            found[number][name] = 1 / (RRF_K + ordinal)
    return found


def _with_structure(
    candidates: Sequence[Candidate], own: Sequence[Mapping[str, float]], query: RankingQuery, weights: RankingWeights
) -> list[dict[str, float]]:
    scale = _scale(query)
    scores = [sum(terms.values()) for terms in own]
    floor = weights.floor * max(scores, default=0.0)
    scores = [max(score - floor, 0.0) for score in scores]
    turns = _turns_around(candidates)
    neighbours = _neighbours(scores, turns, weights)
    around = _around(candidates, turns) if weights.around and query.fusion != RRF else None
    most = max(query.sessions.values(), default=0.0) or 1.0
    found = []
    # A long text speaks for itself: what stands around it adds to it in proportion to its brevity.
    shares = (1 / _passages(candidates)).tolist()
    for number, (each, terms, share) in enumerate(zip(candidates, own, shares, strict=True)):
        more = dict(terms)
        more["neighbours"] = share * neighbours[number]
        if around is not None:
            more["around"] = weights.around * around[number]
        before = int(turns[number, REACH - 1])
        if before < len(candidates) and candidates[before].is_question:
            more["answer"] = share * weights.answer * scores[before]
        if each.is_question and query.is_question:
            # At most half of its score: a question may still contain a part of the answer.
            more["question"] = -min(share * weights.question * scale, sum(terms.values()) / 2)
        if each.agent in query.authors:
            more["author"] = weights.author * scale
        if each.agent in query.persons:
            more["person"] = weights.person * scale * query.persons[each.agent]
        if query.scope is not None and (share := query.scope.share(each.session, each.at)):
            more["when"] = weights.when * scale * share
        if query.sessions.get(each.session):
            more["session"] = weights.session * scale * query.sessions[each.session] / most
        found.append(more)
    return found


def _turns_around(candidates: Sequence[Candidate]) -> NDArray[np.int64]:
    """(candidates, 2 * REACH + 1): for each candidate, the list indexes of the turns of its session from `REACH` before
    it to `REACH` after it, itself in the middle; `len(candidates)` for a turn that is no candidate."""
    sessions: dict[str, int] = {}
    numbered = [sessions.setdefault(each.session, len(sessions)) << _ORDINAL_BITS for each in candidates]
    keys = np.array(numbered, np.int64) + np.array([each.ordinal for each in candidates], np.int64)
    order = np.argsort(keys)
    wanted = keys[:, None] + np.arange(-REACH, REACH + 1)
    found = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)] if len(keys) else wanted
    return np.where(keys[found] == wanted, found, len(keys))


def _neighbours(scores: Sequence[float], turns: NDArray[np.int64], weights: RankingWeights) -> list[float]:
    """The scores of the turns around each candidate: at each distance the better one, less with each step away."""
    padded = np.array([*scores, 0.0])
    total = np.zeros(len(scores))
    for step in range(1, weights.reach + 1):
        better = np.maximum(padded[turns[:, REACH - step]], padded[turns[:, REACH + step]])
        total += weights.neighbour * weights.decay ** (step - 1) * better
    found: list[float] = total.tolist()
    return found


def _around(candidates: Sequence[Candidate], turns: NDArray[np.int64]) -> list[float]:
    """Late interaction of each candidate and `AROUND` turns on each side as one text.

    What the turns around add to a long text counts in proportion to its brevity.
    """
    tokens = max((len(each.late_interaction or ()) for each in candidates), default=0)
    rows = [each.late_interaction or [0.0] * tokens for each in candidates]
    padded = np.array([*rows, [0.0] * tokens])
    together = padded[turns[:, REACH - AROUND : REACH + AROUND + 1]].max(axis=1).sum(axis=1)
    own = np.array([_late_interaction(each) for each in candidates])
    known = np.array([each.late_interaction is not None for each in candidates], bool)
    whole = own * _discounts(candidates) + (together - own) / _passages(candidates)
    found: list[float] = np.where(known, whole, own).tolist()
    return found
