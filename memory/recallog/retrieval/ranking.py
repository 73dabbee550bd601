"""Ranking of recall candidates: channel scores in, an order with each term of the score out. Pure.

A candidate's own score is the weighted sum of its channels. Conversation structure is added (`structure`). Texts of
several passages count less, so that an assistant's essay does not outrank the sentence that it answers.
`docs/benchmarks/channels.md` lists what each term is worth.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallog.retrieval.candidates import (
    Candidate,
    RankingQuery,
    Terms,
    discounts,
    late_interaction,
    likely,
    totals,
)
from recallog.retrieval.channels import (
    KEYWORD,
    LATE_INTERACTION,
    RRF,
    SALIENCE,
    SCORED,
    SEMANTIC,
    STRUCTURE,
    TEMPORAL,
)
from recallog.retrieval.fusing import RRF_K
from recallog.retrieval.structure import structure
from recallog.retrieval.weights import (
    BY_WORDS,
    MULTILINGUAL,
    WITH_LATE_INTERACTION,
    WITHOUT_LATE_INTERACTION,
    RankingWeights,
)
from recallog_projections.views import salience

_HALF_LIFE_DAYS = 7.0
_DAY = 86_400 * 1_000_000


@dataclass(eq=False, slots=True)
class Ranked:
    """A candidate and its score."""

    candidate: Candidate
    score: float
    _terms: Terms
    _number: int
    """Its index in the columns of `_terms`."""
    _lift: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The terms of the score by name; the score is their sum."""
        of_all = {name: float(column[self._number]) for name, column in self._terms.items()}
        found = {name: value for name, value in of_all.items() if not math.isnan(value)}
        return found | {"list": self._lift} if self._lift else found

    def lift_to(self, score: float) -> None:
        """Raise the score to that of a candidate that it precedes in a list."""
        self._lift += score - self.score
        self.score = score


def rank(candidates: Sequence[Candidate], query: RankingQuery) -> list[Ranked]:
    """All candidates, best first; of equal scores the newer first. Candidates with equal texts get the best of their
    scores."""
    if not candidates:
        return []
    weights, used = _weights(candidates, query.channels)
    terms = (_reciprocal_ranks if query.fusion == RRF else _weigh_channels)(candidates, query, weights, used)
    if STRUCTURE in query.channels:
        terms |= structure(candidates, totals(terms, len(candidates)), query, weights, _scale(query))
    if KEYWORD in used:
        terms["exact"] = _exact(candidates, query, weights)
    scores = totals(terms, len(candidates))
    best = _best_of_equal_texts(candidates, scores)
    terms["equal_text"] = np.where(best > scores, best - scores, np.nan)
    best_first = _best_first(best, candidates).tolist()
    values = best.tolist()
    return [Ranked(candidates[number], values[number], terms, number) for number in best_first]


def _best_first(scores: NDArray[np.float64], candidates: Sequence[Candidate]) -> NDArray[np.int64]:
    """The indexes of the candidates by score; of equal scores the newer first."""
    return np.lexsort((-np.array([each.offset for each in candidates], np.int64), -scores))


def _exact(candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights) -> NDArray[np.float64]:
    """The term of the query's exact strings: no channel tells two similar paths apart."""
    shares = np.array([each.exact for each in candidates])
    return np.where(shares > 0, weights.exact * _scale(query) * shares, np.nan)


def _scale(query: RankingQuery) -> float:
    """The factor of all terms that are not shares of other scores, since reciprocal ranks are small."""
    return 1 / (RRF_K + 1) if query.fusion == RRF else 1.0


def _best_of_equal_texts(candidates: Sequence[Candidate], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each candidate, the best score of all candidates with its text, so that the newest of them is first.

    A text that was repeated is found at its last occurrence, whatever its earlier occurrences were near to.
    """
    best: dict[int, float] = {}
    own = list(zip([each.text_key for each in candidates], scores.tolist(), strict=True))
    for key, score in own:
        if key is not None and score > best.get(key, -math.inf):
            best[key] = score
    return np.array([score if key is None else best[key] for key, score in own])


def _weights(candidates: Sequence[Candidate], channels: Collection[str]) -> tuple[RankingWeights, Sequence[str]]:
    """The weights for the channels that have scores, and the names of these channels."""
    known = {
        SEMANTIC: any(each.semantic is not None for each in candidates),
        LATE_INTERACTION: any(each.late_interaction is not None for each in candidates),
    }
    used = [name for name in SCORED if name in channels and known.get(name, True)]
    if LATE_INTERACTION in used:
        return WITH_LATE_INTERACTION, used
    if SEMANTIC not in used:
        return BY_WORDS, used
    return MULTILINGUAL if any(each.is_multilingual for each in candidates) else WITHOUT_LATE_INTERACTION, used


def _weigh_channels(
    candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> Terms:
    """Channel scores from 0 to 1, times their weights."""
    best = max(each.keyword for each in candidates)
    # The geometric mean of the best BM25 score and the highest possible one. The best score alone overrates queries
    # that no memory matches well; the highest possible one underrates queries that many memories match in part.
    whole = math.sqrt(best * sum(query.idf.values())) or 1.0
    weighed = {name: getattr(weights, name) / (whole if name == KEYWORD else 1.0) for name in used}
    values = _values(candidates, query, used)
    return {name: weight * values[name] for name, weight in weighed.items()}


def _values(
    candidates: Sequence[Candidate], query: RankingQuery, channels: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """The scores of each of `channels`, by candidate."""
    discount = discounts(candidates)
    return {
        channel: np.array([_OF_TEXT[channel](each) for each in candidates]) * discount
        if channel in _OF_TEXT
        else _OF_EVENT[channel](candidates, query)
        for channel in channels
    }


def _semantic(each: Candidate) -> float:
    return likely(each) if each.semantic is None else max(each.semantic, 0.0)


_OF_TEXT: Mapping[str, Callable[[Candidate], float]] = {
    KEYWORD: lambda each: each.keyword,
    SEMANTIC: _semantic,
    LATE_INTERACTION: late_interaction,
}
"""The channels that compare texts."""


def _temporal(candidates: Sequence[Candidate], query: RankingQuery) -> NDArray[np.float64]:
    ages = np.maximum(0, query.now - np.array([each.at for each in candidates], np.int64))
    return np.exp2(-ages / (_HALF_LIFE_DAYS * _DAY))


def _salience(candidates: Sequence[Candidate], query: RankingQuery) -> NDArray[np.float64]:
    recency = np.array([salience.recency(each.turn, query.turn) for each in candidates])
    importance = np.array([each.importance for each in candidates])
    of = salience.Weights()
    return (of.recency * recency + of.importance * importance) / (of.recency + of.importance)


_OF_EVENT: Mapping[str, Callable[[Sequence[Candidate], RankingQuery], NDArray[np.float64]]] = {
    TEMPORAL: _temporal,
    SALIENCE: _salience,
}
"""The channels that compare other properties of the event."""


def _reciprocal_ranks(
    candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights, used: Sequence[str]
) -> Terms:
    """Reciprocal ranks of each channel, whatever its scale. The weights of channels are not used."""
    found = {}
    for name, values in _values(candidates, query, used).items():
        best_first = _best_first(values, candidates)
        hits = best_first[values[best_first] > 0]
        found[name] = np.full(len(candidates), np.nan)
        found[name][hits] = 1 / (RRF_K + np.arange(1, len(hits) + 1))
    return found
