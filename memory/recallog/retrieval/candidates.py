"""The input of ranking: memories with the scores of their channels, and the query; and the terms of scores."""

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
"""The assumed vector score of a memory that is not indexed yet and has all words of the query, so that memories
published just now are not ranked below all indexed ones."""


_ALONE = 1 << 41
"""The ordinal of the first text of a model: after all of events."""

Terms = dict[str, NDArray[np.float64]]
"""The terms of the scores of all candidates: by name a column, with NaN for candidates that do not have the term."""


@dataclass(slots=True)
class Candidate:
    """One memory with the scores of its channels."""

    id: str
    """The id of its point; "" if it is not indexed."""
    offset: int
    """Of a text of a model its `Text.offset`."""
    agent: str
    kind: str
    session: str
    ordinal: int
    """Its number in the session, from 0. A text of a model has no number there (see `set_apart`)."""
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
    is_entry: bool = False
    """Whether it is a text that a model keeps, and not an event."""
    type: str = EVENT
    """The type of such a text; `EVENT` for an event."""
    entry: str = ""
    """The id of such a text in the index; "" if it is not indexed."""
    is_multilingual: bool = False
    """Whether the cosine is of the second model, which knows less of the texts that it relates."""


@dataclass(frozen=True, slots=True)
class RankingQuery:
    """The input of ranking besides the candidates: the query and its context."""

    authors: Collection[str] = ()
    """Agents that the query names."""
    persons: Mapping[str, float] = field(default_factory=dict)
    """Agents that the query is about without their names, for example as "I" or "you": each with a weight, 0 to 1."""
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


def passages(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """The length of each text in passages; at least 1."""
    return np.maximum(1.0, np.array([each.length for each in candidates]) / PASSAGE_LENGTH)


def discounts(candidates: Sequence[Candidate]) -> NDArray[np.float64]:
    """The factors of scores of texts, which long ones have by chance."""
    return passages(candidates) ** -LONG_TEXT_DISCOUNT


def totals(terms: Terms, number: int) -> NDArray[np.float64]:
    """The sum of all terms of each of `number` candidates."""
    return np.nansum(list(terms.values()), axis=0) if terms else np.zeros(number)


def likely(each: Candidate) -> float:
    return _LIKELY * each.coverage


def late_interaction(each: Candidate) -> float:
    """What is known, else what is likely: of a text that only the multilingual model has read, its similarity."""
    if each.late_interaction is not None:
        return sum(each.late_interaction)
    return max(likely(each), each.semantic or 0.0) if each.is_multilingual else likely(each)


def set_apart(candidates: Iterable[Candidate]) -> None:
    """Give the texts of models ordinals so far apart that they are not neighbours."""
    for number, each in enumerate(each for each in candidates if each.is_entry):
        each.ordinal = _ALONE + number * (2 * REACH + 1)
