"""The input of ranking: the query, and memories with the scores of their channels; and the terms of scores."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recallog.retrieval.channels import DEFAULT_CHANNELS, EVENT, WEIGHTED
from recallog.retrieval.time_scope import TimeScope
from recallog.retrieval.weights import LONG_TEXT_DISCOUNT, REACH
from recallog_projections.index.passages import PASSAGE_LENGTH
from recallog_schemas import kinds

_LIKELY = 0.6
"""The assumed vector score of a memory that is not indexed yet and contains all words of the query. Without it,
memories published just now would rank below all indexed ones."""


_ALONE = 1 << 41
"""The ordinal of the first text of a model. It is higher than all ordinals of events."""

Terms = dict[str, NDArray[np.float64]]
"""The terms of the scores of all candidates: one column for each name, with NaN for candidates without the term."""


@dataclass(slots=True)
class Candidate:
    """One memory with the scores of its channels."""

    id: str
    """The id of its point; "" if it is not indexed."""
    offset: int
    """For a text of a model, its `SourceText.offset`."""
    agent: str
    kind: str
    session: str
    ordinal: int
    """Its number in the session, from 0. A text of a model is not numbered in its session (see `set_apart`)."""
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
    """A key that equal texts share; None if it is unknown."""
    length: int = 0
    """`passages.length` of its text."""
    passage: int | None = None
    """The number, from 0, of the best of its embedded passages; None if it is unknown."""
    is_entry: bool = False
    """Whether it is a text that a model keeps, as opposed to an event."""
    type: str = EVENT
    """The type of this text; `EVENT` for an event."""
    entry: str = ""
    """The id of this text in the index; "" if it is not indexed."""
    is_multilingual: bool = False
    """Whether the cosine is that of the second model, which distinguishes texts less well."""


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The input of ranking besides the candidates: the query and its context."""

    authors: Collection[str] = ()
    """Agents that the query names."""
    persons: Mapping[str, float] = field(default_factory=dict)
    """Agents that the query refers to without naming them, for example as "I" or "you", each with a weight from 0 to
    1."""
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
    """The time from which age is measured, in microseconds since 1970; never the wall clock."""
    turn: int = 0
    """The turn from which recency is measured."""


def passages(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """The length of each text in passages; at least 1."""
    return np.maximum(1.0, np.array([each.length for each in candidates]) / PASSAGE_LENGTH)


def discounts(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """A factor for the scores of each text. Long texts have high scores by chance, so their factor is smaller."""
    return passages(candidates) ** -LONG_TEXT_DISCOUNT


def totals(terms: Terms, number: int) -> NDArray[np.float64]:
    """The sum of all terms of each of `number` candidates."""
    return np.nansum(list(terms.values()), axis=0) if terms else np.zeros(number)


def likely(each: Candidate) -> float:
    return _LIKELY * each.coverage


def late_interaction(each: Candidate) -> float:
    """The late interaction of a candidate; if it is unknown, an estimate. If only the multilingual model has read the
    text, the estimate is at least its cosine."""
    if each.late_interaction is not None:
        return sum(each.late_interaction)
    return max(likely(each), each.semantic or 0.0) if each.is_multilingual else likely(each)


def set_apart(candidates: Iterable[Candidate]) -> None:
    """Set the ordinals of texts of models far apart, so that they are not neighbours."""
    for number, each in enumerate(each for each in candidates if each.is_entry):
        each.ordinal = _ALONE + number * (2 * REACH + 1)
