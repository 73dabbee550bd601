"""Ranking of recall candidates: channel scores in, an order with each term of the score out. Pure.

A candidate's own score is the weighted sum of its channels. Conversation structure is added (`structure`). Texts of
several passages count less, so that an assistant's essay does not outrank the sentence that it answers.
`docs/recall.md` lists what each term is worth.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallog.retrieval.candidates import Candidate, RankingQuery, discounts, late_interaction, likely
from recallog.retrieval.channels import (
    KEYWORD,
    LATE_INTERACTION,
    RRF,
    SCORED,
    SEMANTIC,
    STRUCTURE,
    TEMPORAL,
)
from recallog.retrieval.structure import with_structure
from recallog.retrieval.weights import BY_WORDS, WITH_LATE_INTERACTION, WITHOUT_LATE_INTERACTION, RankingWeights
from recallog_projections.views import salience

RRF_K = 60
"""Cormack, Clarke and Buettcher, 2009; ranks from 1."""

_HALF_LIFE_DAYS = 7.0
_DAY = 86_400 * 1_000_000


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
    parts = with_structure(candidates, own, query, weights, _scale(query)) if STRUCTURE in query.channels else own
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
        return np.array([_OF_TEXT[channel](each) for each in candidates]) * discounts(candidates)
    if channel == TEMPORAL:
        ages = [max(0, query.now - each.at) for each in candidates]
        return np.exp2(-np.array(ages) / (_HALF_LIFE_DAYS * _DAY))
    return np.array([_salience(each, query) for each in candidates])


def _semantic(each: Candidate) -> float:
    return likely(each) if each.semantic is None else max(each.semantic, 0.0)


_OF_TEXT: Mapping[str, Callable[[Candidate], float]] = {
    KEYWORD: lambda each: each.keyword,
    SEMANTIC: _semantic,
    LATE_INTERACTION: late_interaction,
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
