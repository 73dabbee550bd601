"""The terms of the score that conversation structure adds. Pure.

The terms count neighbouring turns in a memory's session, whether it follows a question or is one, whether the query
names its author or its time, and how many of the query's terms its session contains.
"""

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from recallog.retrieval.candidates import Candidate, RankingQuery, Terms, discounts, late_interaction, passages
from recallog.retrieval.channels import RRF
from recallog.retrieval.weights import AROUND, REACH, RankingWeights
from recallog_projections.index.passages import PASSAGE_LENGTH

_TIME_ALONE = 10.0
"""The factor of the time if a question asks for nothing else. Among the memories of that time, longer ones are
preferred."""
_NEWEST = 0.5
"""The newest candidate's share of the weight of the time, if a question asks for what happened last."""
NEIGHBOURS = "neighbours"
"""The name of the term that the turns around a memory add."""

_ORDINAL_BITS = 42
"""Ordinals are below 2**42."""


def structure(
    candidates: Sequence[Candidate],
    own: NDArray[np.float64],
    query: RankingQuery,
    weights: RankingWeights,
    scale: float,
) -> Terms:
    """The structure terms of candidates whose own scores are `own`.

    `scale` is the factor of all terms that are not shares of other scores.
    """
    turns = _turns_around(candidates)
    # The shorter a text is, the more its surroundings count. A long text is understood without them.
    shares = 1 / passages(candidates)
    scores = np.append(np.maximum(own - weights.floor * own.max(), 0.0), 0.0)
    terms = {NEIGHBOURS: shares * _neighbours(scores, turns, weights)}
    if weights.around and query.fusion != RRF:
        terms["around"] = weights.around * _around(candidates, turns)
    is_question = np.array([*(each.is_question for each in candidates), False])
    before = turns[:, REACH - 1]
    terms["answer"] = np.where(is_question[before], shares * weights.answer * scores[before], np.nan)
    if query.is_question:
        # At most half of the memory's score: a question may still contain a part of the answer.
        malus = np.minimum(shares * weights.question * scale, own / 2)
        terms["question"] = np.where(is_question[:-1], -malus, np.nan)
    return terms | _weigh_named(candidates, query, weights, scale)


def _weigh_named(candidates: Sequence[Candidate], query: RankingQuery, weights: RankingWeights, scale: float) -> Terms:
    """The terms of the author, the person, the time and the session that a query names or means."""
    terms = {}
    if query.authors:
        named = np.array([each.agent in query.authors for each in candidates])
        terms["author"] = np.where(named, weights.author * scale, np.nan)
    if query.persons:
        meant = np.array([query.persons.get(each.agent, np.nan) for each in candidates])
        terms["person"] = weights.person * scale * meant
    if query.scope is not None:
        of_scope = np.array([query.scope.share(each.session, each.at) for each in candidates])
        if query.scope.prefers_newest:
            # By order in time, not by age: "the last time" may be years ago.
            oldest_first = np.argsort([each.at for each in candidates], kind="stable")
            of_scope[oldest_first] = _NEWEST * np.arange(len(candidates)) / len(candidates)
        if query.scope.is_all:
            of_scope *= _TIME_ALONE + np.minimum(1.0, np.array([each.length for each in candidates]) / PASSAGE_LENGTH)
        terms["when"] = weights.when * scale * np.where(of_scope > 0, of_scope, np.nan)
    if query.sessions:
        most = max(query.sessions.values()) or 1.0
        of_session = np.array([query.sessions.get(each.session, 0.0) for each in candidates])
        terms["session"] = weights.session * scale * np.where(of_session > 0, of_session, np.nan) / most
    return terms


def _turns_around(candidates: Sequence[Candidate]) -> NDArray[np.int64]:
    """(candidates, 2 * REACH + 1): for each candidate, the list indexes of the turns of its session from `REACH` before
    it to `REACH` after it, itself in the middle; `len(candidates)` for a turn that is not a candidate."""
    sessions: dict[str, int] = {}
    numbered = [sessions.setdefault(each.session, len(sessions)) << _ORDINAL_BITS for each in candidates]
    keys = np.array(numbered, np.int64) + np.array([each.ordinal for each in candidates], np.int64)
    order = np.argsort(keys)
    wanted = keys[:, None] + np.arange(-REACH, REACH + 1)
    found = order[np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)] if len(keys) else wanted
    return np.where(keys[found] == wanted, found, len(keys))


def _neighbours(scores: NDArray[np.float64], turns: NDArray[np.int64], weights: RankingWeights) -> NDArray[np.float64]:
    """The summed scores of the turns around each candidate: at each distance the better of two, with a weight that
    decays.

    `scores` has one more row, for turns that are not candidates.
    """
    total = np.zeros(len(turns))
    for step in range(1, weights.reach + 1):
        better = np.maximum(scores[turns[:, REACH - step]], scores[turns[:, REACH + step]])
        total += weights.neighbour * weights.decay ** (step - 1) * better
    return total


def _around(candidates: Sequence[Candidate], turns: NDArray[np.int64]) -> NDArray[np.float64]:
    """Late interaction of each candidate and `AROUND` turns on each side as one text.

    What the turns around add to a long text counts in proportion to its brevity.
    """
    # A text that is searched separately may be compared with more tokens, because names in the query count too.
    by_token = [*zip_longest(*(each.late_interaction or () for each in candidates), (), fillvalue=0.0)]
    padded = np.array(by_token).reshape(-1, len(candidates) + 1).T
    together = padded[turns[:, REACH - AROUND : REACH + AROUND + 1]].max(axis=1).sum(axis=1)
    own = np.array([late_interaction(each) for each in candidates])
    known = np.array([each.late_interaction is not None for each in candidates], bool)
    whole = own * discounts(candidates) + (together - own) / passages(candidates)
    return np.where(known, whole, own)
