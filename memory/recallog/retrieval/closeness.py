"""Closeness: whether a memory that was found is related to the query, on a scale that is comparable across queries.

The scores of ranking compare the memories of one answer only: the best memory has a high score even if nothing answers
the query. Closeness is the cosine plus the share of the query that the memory has: late interaction, whose
tokens are weighted by rarity, or, without token vectors, the share of idf of the words that both have. If no cosine is
known, closeness is that share of idf alone.

A memory is weak if its closeness is below one limit, or if the closeness of all found memories is below another, unless
it has exact strings of the query. The limits are such that about 1 % of the evidence of answerable questions is weak.
`recallog eval locomo` measures it; `docs/benchmarks/channels.md` has the figures.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from recallog.retrieval.candidates import Candidate
from recallog.retrieval.weights import AROUND
from recallog_projections.index import terms
from recallog_projections.index.passages import PASSAGE_LENGTH


@dataclass(frozen=True, slots=True)
class ClosenessLimits:
    """The least closeness of memories that are not weak."""

    best: float
    """The closest memory of the answer must reach it; otherwise all are weak."""
    each: float
    """A memory must also reach it itself; otherwise it is weak."""


WITH_LATE_INTERACTION = ClosenessLimits(best=0.7, each=0.4)
WITHOUT_LATE_INTERACTION = ClosenessLimits(best=0.5, each=0.2)
MULTILINGUAL = ClosenessLimits(best=0.3, each=0.15)
"""The languages of question and memory may differ, so that they share no words. Common words count only by
`MULTILINGUAL_WORDS`."""
NOT_ENGLISH = ClosenessLimits(best=0.4, each=0.2)
"""For a question that is not in English, and a model of English with token vectors. The model gives any two texts in
that language a high cosine. The cosine therefore does not count, only late interaction and common words."""
BY_WORDS = ClosenessLimits(best=0.2, each=0.0)
"""Instead of `each`, a memory or one of the `AROUND` turns on each side must share a term with the query."""

MULTILINGUAL_WORDS = 0.25
"""The factor of common words that are added to a cosine of the second model."""

LONG_TEXT_DISCOUNT = 0.05
"""Exponent on the number of passages of a memory, by which a closeness by vectors is divided: the best of many passages
is close to any query by chance. It is half the exponent of ranking, since evidence must not be lost."""

EXACT = 0.5
"""A memory with this share of the query's exact strings is not weak. A path or an identifier rarely occurs by chance,
and vectors hardly represent it."""

PAIRS_PER_WORD = 3
"""Terms of scripts without spaces are pairs of characters. If two texts share a word, the pairs inside it match, but
the pairs with a character of the next word do not. The share of matching pairs is about a third of the share of
words."""


def weak(
    found: Sequence[Candidate],
    around: Sequence[Candidate],
    searched: Collection[str],
    *,
    first: int | None = None,
    is_english: bool = True,
) -> frozenset[int]:
    """The offsets of the weak memories among the `first` of `found`, or among all.

    `found` are all memories that pass the query's filters, `around` these and their neighbours, and `searched` the
    terms of the query. If there are no terms, as in a query of names and function words, no memory is weak.
    """
    if not searched:
        return frozenset()
    measure = partial(_closeness, in_pairs=_in_pairs(searched), is_english=is_english)
    hits = found[:first]
    measured = map(measure, found)
    if all(closeness < limits.best for closeness, limits in measured) and not any(map(_has_strings, found)):
        return frozenset(each.offset for each in hits)
    sharing = {(each.session, each.ordinal) for each in around if each.coverage > 0}
    marked = []
    for each in hits:
        if _has_strings(each):
            continue
        closeness, limits = measure(each)
        if closeness < limits.each or (limits is BY_WORDS and not _near(each, sharing)):
            marked.append(each.offset)
    return frozenset(marked)


def _closeness(each: Candidate, *, in_pairs: bool, is_english: bool) -> tuple[float, ClosenessLimits]:
    shared = min(1.0, (PAIRS_PER_WORD if in_pairs else 1) * each.coverage)
    if each.semantic is None:
        return shared, BY_WORDS
    discount = max(1.0, each.length / PASSAGE_LENGTH) ** -LONG_TEXT_DISCOUNT
    if each.is_multilingual:
        return discount * (each.semantic + MULTILINGUAL_WORDS * shared), MULTILINGUAL
    if each.late_interaction is None:
        return discount * (each.semantic + shared), WITHOUT_LATE_INTERACTION
    if not is_english:
        return discount * (sum(each.late_interaction) + shared), NOT_ENGLISH
    return discount * (each.semantic + sum(each.late_interaction)), WITH_LATE_INTERACTION


def _has_strings(each: Candidate) -> bool:
    return each.exact >= EXACT


def _near(each: Candidate, ordinals: Collection[tuple[str, int]]) -> bool:
    numbers = range(each.ordinal - AROUND, each.ordinal + AROUND + 1)
    return any((each.session, ordinal) in ordinals for ordinal in numbers)


def _in_pairs(searched: Collection[str]) -> bool:
    """Whether most of the terms are pairs of characters."""
    return 2 * sum(map(terms.is_ngram, searched)) > len(searched)
