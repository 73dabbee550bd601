"""Measures of an evaluation: recall@k, reciprocal rank, percentiles and the paired bootstrap.

Recall and reciprocal rank are between 0 and 1 for one question; means are taken over questions.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

HITS = 20
"""The number of hits requested; lower ranks do not count."""

_RESAMPLES = 10_000
_RESAMPLES_AT_ONCE = 500
"""Bounds the memory of a test: 500 x 2,000 questions are 8 MB."""
_SEED = 20_260_301
"""A constant, so that the same two files always give the same interval."""


def recall_at(k: int, hits: Sequence[str], evidence: Collection[str]) -> float:
    """The fraction of the evidence that is among the first `k` hits. `evidence` is not empty."""
    wanted = set(evidence)
    return len(wanted.intersection(hits[:k])) / len(wanted)


def reciprocal_rank(hits: Sequence[str], evidence: Collection[str]) -> float:
    """1 / the rank, from 1, of the first hit that is evidence; 0 if none of the first `HITS` is."""
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
    """The change of one measure from one run to another over the same questions."""

    difference: float
    """Mean of after - before."""
    low: float
    """Lower end of the 95 % interval of the mean."""
    high: float
    """Upper end of the interval."""
    wins: int
    """Questions that became better."""
    losses: int
    """Questions that became worse."""

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def paired(before: Sequence[float], after: Sequence[float]) -> Paired:
    """Paired bootstrap of the mean difference: 10,000 samples with replacement, percentile interval.

    Both lists have the values of the same questions in the same order. See Efron & Tibshirani, An Introduction to the
    Bootstrap, chapter 13. Raises `ValueError` for empty lists and for lists of different lengths.
    """
    import numpy as np  # only a comparison needs it

    if len(before) != len(after) or not before:
        raise ValueError(f"not the same questions: {len(before)} before, {len(after)} after")
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
