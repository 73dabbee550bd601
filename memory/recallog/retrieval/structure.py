"""The terms of the score that conversation structure adds. Pure.

Neighbouring turns of a memory's session, whether it follows a question or is one, whether the query names its author or
its time, and how many of the query's terms its session has.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recallog.retrieval.candidates import Candidate, RankingQuery, discounts, late_interaction, passages
from recallog.retrieval.channels import RRF
from recallog.retrieval.weights import AROUND, REACH, RankingWeights

_ORDINAL_BITS = 42
"""Ordinals are below 2**42."""


def with_structure(
    candidates: Sequence[Candidate],
    own: Sequence[Mapping[str, float]],
    query: RankingQuery,
    weights: RankingWeights,
    scale: float,
) -> list[dict[str, float]]:
    """The terms `own` of each candidate's score with those of structure.

    `scale` is the factor of all terms that are not shares of other scores.
    """
    scores = [sum(terms.values()) for terms in own]
    floor = weights.floor * max(scores, default=0.0)
    scores = [max(score - floor, 0.0) for score in scores]
    turns = _turns_around(candidates)
    neighbours = _neighbours(scores, turns, weights)
    around = _around(candidates, turns) if weights.around and query.fusion != RRF else None
    most = max(query.sessions.values(), default=0.0) or 1.0
    found = []
    # A long text speaks for itself: what stands around it adds to it in proportion to its brevity.
    shares = (1 / passages(candidates)).tolist()
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
        if query.scope is not None and (of_scope := query.scope.share(each.session, each.at)):
            more["when"] = weights.when * scale * of_scope
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
    own = np.array([late_interaction(each) for each in candidates])
    known = np.array([each.late_interaction is not None for each in candidates], bool)
    whole = own * discounts(candidates) + (together - own) / passages(candidates)
    found: list[float] = np.where(known, whole, own).tolist()
    return found
