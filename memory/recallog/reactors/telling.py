"""Chooses the texts that a summary without a model quotes: the most important ones and, of these, those that say
most."""

from collections.abc import Sequence
from typing import NamedTuple

from recallog_projections.index.terms import terms


class Quotable(NamedTuple):
    """A text that can be quoted, and its importance from 0 to 1."""

    text: str
    importance: float


def choose_telling(texts: Sequence[Quotable], count: int) -> list[int]:
    """The list indexes, ascending, of at most `count` different ones of `texts`.

    More important texts come first. Of equally important texts, the one that adds the most content terms to those
    already chosen comes first, then the newer one. This is the greedy solution of the maximum coverage problem
    (Nemhauser, Wolsey and Fisher, 1978). `texts` are oldest first. Of equal texts only the most important, then the
    newest, is chosen.
    """
    best: dict[str, tuple[float, int]] = {}
    for number, each in enumerate(texts):
        best[each.text] = max(best.get(each.text, (0.0, 0)), (each.importance, number))
    left = {number: importance for importance, number in best.values()}
    words = {number: frozenset(terms(texts[number].text)) for number in left}
    covered, chosen = set[str](), list[int]()
    while left and len(chosen) < count:
        number = max(left, key=lambda each: (left[each], len(words[each] - covered), each))
        covered |= words[number]
        chosen.append(number)
        del left[number]
    return sorted(chosen)
