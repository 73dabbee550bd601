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


def ranks_of(hits: Sequence[Collection[str]], evidence: Collection[str]) -> tuple[int, ...]:
    """For each evidence among the first `HITS`: the rank, from 1, of the first hit that shows it; ascending.

    Each of `hits` has the ids that it shows: its own, or those of its sources.
    """
    first: dict[str, int] = {}
    for rank, shown in enumerate(hits[:HITS], 1):
        for id_ in shown:
            if id_ in evidence:
                first.setdefault(id_, rank)
    return tuple(first.values())


def session_ranks(hits: Sequence[Collection[str]], evidence: Collection[str]) -> tuple[int, ...]:
    """For each session of the evidence among those of the first `HITS`: its rank, from 1; ascending.

    Sessions are ranked by the first hit that shows a turn of each. Ids of turns are "D<session>:<turn>"; other ids do
    not belong to a session.
    """
    wanted = {session_of(id_) for id_ in evidence}
    found = dict.fromkeys(session_of(id_) for shown in hits[:HITS] for id_ in shown if ":" in id_)
    return tuple(rank for rank, session in enumerate(found, 1) if session in wanted)


def session_of(turn: str) -> str:
    """The session in the id of a turn: "D8" of "D8:6"."""
    return turn.partition(":")[0]


def recall_at(k: int, ranks: Sequence[int], evidence: int) -> float:
    """The fraction of the evidence that the first `k` hits show. `evidence` is the number of its turns, at least 1."""
    return sum(rank <= k for rank in ranks) / evidence


def reciprocal_rank(ranks: Sequence[int]) -> float:
    """1 / the rank of the first hit that shows evidence; 0 if none of the first `HITS` hits does."""
    return 1 / ranks[0] if ranks else 0.0


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
    """The number of questions that became better."""
    losses: int
    """The number of questions that became worse."""

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
