"""Questions that ask for a list. Their answers are in several sessions, or in several parts of one. Pure.

A good memory raises the scores of the turns around it. This helps to find a fact whose words are spread over adjacent
turns, but in a list the turns around one answer take the places of the other answers.
"""

import math
import re
from collections.abc import Sequence

from recallog.retrieval.ranking import Ranked
from recallog.retrieval.structure import NEIGHBOURS
from recallog.retrieval.weights import LIST_DISCOUNTS, LIST_HITS

_LIST = re.compile(r"\bin common\b|\bboth\b|哪些|哪几")
_PERFECT = re.compile(r"(?:what|which|where|who)(?: \w+)? (?:has|have)\b")
"""Questions about somebody's experiences: "where has she camped?"."""
_ASKED = re.compile(r"(?:\w+ )?(?:what|which)((?: [\w+-]+){1,4})")
"""The noun that is asked for is among the first words after the question word."""
_PLURAL = re.compile(r" (?!(?:does|this|always|sometimes|hers|yours|theirs)\b)[\w+-]{3,}(?<![sui])s\b")


def asks_for_list(question: str) -> bool:
    """Whether a question asks for several things, by its form: "which pets", "what kinds of", "what has she painted".

    In English, and by 哪些 and 哪几 in Chinese.
    """
    text = question.casefold()
    if _LIST.search(text) or _PERFECT.match(text):
        return True
    asked = _ASKED.match(text)
    return asked is not None and _PLURAL.search(asked[1]) is not None


def spread(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The memories that may answer a question for a list, best first, with its first `LIST_HITS` places assigned again.

    The places are assigned one after another. After each hit, the turns around it lose a share of the score that their
    neighbours add to them. The other memories follow in their order. A hit that comes before better ones gets the best
    of their scores.
    """
    places = {(one.candidate.session, one.candidate.ordinal): place for place, one in enumerate(ranked)}
    left = dict(enumerate(one.score for one in ranked))
    first: list[Ranked] = []
    while left and len(first) < LIST_HITS:
        place = max(left, key=left.__getitem__)  # of equal ones the newest, which is first in `ranked`
        del left[place]
        first.append(ranked[place])
        session, ordinal = ranked[place].candidate.session, ranked[place].candidate.ordinal
        for distance, share in enumerate(LIST_DISCOUNTS, 1):
            for turn in (ordinal - distance, ordinal + distance):
                other = places.get((session, turn))
                if other is not None and other in left:
                    left[other] -= share * ranked[other].parts.get(NEIGHBOURS, 0.0)
    order = [*first, *(ranked[place] for place in left)]
    best = -math.inf
    for one in reversed(order):
        best = max(best, one.score)
        one.lift_to(best)
    return order
