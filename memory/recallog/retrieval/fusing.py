"""Reciprocal rank fusion: one ranking from several, whatever the scales of their scores. Pure.

Cormack, Clarke and Buettcher: Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods, 2009.
"""

import math
from collections.abc import Hashable, Sequence
from typing import TypeVar

from recallog_schemas.errors import InvalidArgument

T = TypeVar("T", bound=Hashable)

RRF_K = 60
"""The constant of the paper: how much the first ranks count more than the next ones."""


def fuse(
    channels: Sequence[Sequence[T]], k: float = RRF_K, weights: Sequence[float] | None = None
) -> list[tuple[T, float]]:
    """All items of some rankings with their scores, best first.

    Each of `channels` is a ranking, best first; an item that occurs twice in it has its better rank. The score of an
    item is the sum of weight / (k + rank) over the rankings that have it, with ranks from 1 and one weight for each
    ranking (default: 1 each). Items of equal scores come in the order of their first appearance in `channels`.

    Raises `InvalidArgument` for a negative `k`, and for weights that are negative, or not one for each ranking.
    """
    if not (math.isfinite(k) and k >= 0):
        raise InvalidArgument(f"k: should be 0 or more, not {k}", path="k", rule="greater_than_equal")
    if weights is None:
        weights = [1.0] * len(channels)
    if len(weights) != len(channels):
        message = f"weights: should be {len(channels)}, one for each channel, not {len(weights)}"
        raise InvalidArgument(message, path="weights", rule="length")
    for number, weight in enumerate(weights):
        if not (math.isfinite(weight) and weight >= 0):
            path = f"weights.{number}"
            raise InvalidArgument(f"{path}: should be 0 or more, not {weight}", path=path, rule="greater_than_equal")
    terms: dict[T, list[float]] = {}
    for ranking, weight in zip(channels, weights, strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            terms.setdefault(item, []).append(weight / (k + rank))
    # An exact sum does not depend on the order of the channels, so that equal ranks have equal scores.
    scored = [(item, math.fsum(of_item)) for item, of_item in terms.items()]
    return sorted(scored, key=lambda one: -one[1])
