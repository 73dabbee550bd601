"""The weights of ranking: how much each term of the score counts.

They were tuned on public conversations and are not sensitive; `docs/benchmarks/lists.md` says how they were found.
"""

from dataclasses import dataclass

LATE_IDF_POWER = 1.5
"""Exponent on idf: how much more rare words of a query count than common ones in late interaction."""

AROUND = 2
"""The number of turns before and after a memory that are matched together with it in late interaction."""

LONG_TEXT_DISCOUNT = 0.1
"""Exponent on the number of passages of a memory, by which its scores are divided: the best of many passages is close
to a query by chance, and a long text has many words."""

LIST_HITS = 10
"""The number of hits of a question for a list that are spread. Further down, the turns around answers help to find
them."""

LIST_DISCOUNTS = (0.4, 0.16, 0.064)
"""The shares that each of these hits subtracts from the score that neighbours add to the turns 1, 2 and 3 steps
away."""


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """The weight of each term of the score."""

    keyword: float
    semantic: float = 0.0
    late_interaction: float = 0.0
    around: float = 0.0
    """Late interaction with a memory and its neighbours as one text."""
    temporal: float = 0.3
    salience: float = 0.3
    neighbour: float = 0.35
    """Share of the score of the better of the two turns next to it."""
    decay: float = 0.4
    """Factor for each further step away."""
    reach: int = 3
    """The number of turns before and after that count."""
    floor: float = 0.3
    """Share of the best score below which a neighbour adds nothing: unrelated turns have neighbours too."""
    answer: float = 0.2
    """Share of the score of the question that the memory follows."""
    question: float = 0.05
    """Subtracted from questions if the query is a question: they seldom contain the answer."""
    author: float = 0.3
    person: float = 0.3
    when: float = 0.2
    exact: float = 0.5
    """For a memory that has all exact strings of the query."""
    session: float = 0.0
    """Share of the query's idf that its whole session contains."""


WITH_LATE_INTERACTION = RankingWeights(keyword=0.24, semantic=0.5, late_interaction=0.8, around=0.4)
WITHOUT_LATE_INTERACTION = RankingWeights(keyword=0.4, semantic=0.8)
MULTILINGUAL = RankingWeights(keyword=0.6, semantic=0.3)
"""For cosines of the second model. It distinguishes texts of one language less well than their words do. If question
and memory have no language in common, they share no words, and only the cosine counts."""
BY_WORDS = RankingWeights(keyword=0.62, reach=2, floor=0.0, answer=0.4, neighbour=0.3, session=0.15, when=0.1)

REACH = max(weights.reach for weights in (WITH_LATE_INTERACTION, WITHOUT_LATE_INTERACTION, MULTILINGUAL, BY_WORDS))
"""The number of neighbours on each side that ranking needs."""
