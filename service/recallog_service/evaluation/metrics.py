"""The figures of an evaluation. All are between 0 and 1, of one question; means are taken over questions."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

HITS = 20
"""How many hits are asked for, and how far down a first hit counts."""

_RESAMPLES = 10_000
_RESAMPLES_AT_ONCE = 500
"""Bounds the memory of a test: 500 x 2,000 questions are 8 MB."""
_SEED = 20_260_301
"""Fixed: the same two files give the same interval tomorrow."""


def recall_at(k: int, hits: Sequence[str], evidence: Collection[str]) -> float:
    """The part of the evidence that is among the first `k` hits. `evidence` is not empty."""
    wanted = set(evidence)
    return len(wanted.intersection(hits[:k])) / len(wanted)


def reciprocal_rank(hits: Sequence[str], evidence: Collection[str]) -> float:
    """1 / the rank, from 1, of the first hit that is evidence; 0 where none of the first `HITS` is."""
    ranks = ranks_of(hits, evidence)
    return 1 / ranks[0] if ranks else 0.0


def ranks_of(hits: Sequence[str], evidence: Collection[str]) -> tuple[int, ...]:
    """The ranks, from 1, of the hits that are evidence, among the first `HITS`."""
    return tuple(rank for rank, hit in enumerate(hits[:HITS], 1) if hit in evidence)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of all values do not exceed (nearest rank). `values` is not empty."""
    return sorted(values)[max(0, math.ceil(percent / 100 * len(values)) - 1)]


@dataclass(frozen=True, slots=True)
class Paired:
    """How one measure changed from one run to another over the same questions."""

    difference: float
    """Mean of after - before."""
    low: float
    """Lower end of the 95 % interval of the mean."""
    high: float
    """Upper end of it."""
    wins: int
    """Questions that became better."""
    losses: int
    """Questions that became worse."""

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def paired(before: Sequence[float], after: Sequence[float]) -> Paired:
    """Bootstrap of the mean difference, question by question: 10,000 samples with replacement, percentile interval.

    Both hold the same questions in the same order, and at least one. See Efron & Tibshirani, An Introduction to the
    Bootstrap, chapter 13. Raises `ValueError` for lists of different length.
    """
    import numpy as np  # every command imports this module, and only a comparison needs it

    if len(before) != len(after) or not before:
        raise ValueError(f"not the same questions: {len(before)} against {len(after)}")
    changes = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    random = np.random.default_rng(_SEED)
    means = np.concatenate(
        [
            changes[random.integers(0, changes.size, size=(_RESAMPLES_AT_ONCE, changes.size))].mean(axis=1)
            for _ in range(_RESAMPLES // _RESAMPLES_AT_ONCE)
        ]
    )
    low, high = np.percentile(means, (2.5, 97.5))
    return Paired(
        float(changes.mean()), float(low), float(high), int((changes > 0).sum()), int((changes < 0).sum())
    )  # fmt: skip
