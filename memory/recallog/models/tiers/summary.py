"""The summary of several texts, made without a model: their number, and the beginnings of the most important ones."""

from collections.abc import Sequence

from recallog.reactors.telling import Quotable, choose_telling
from recallog_schemas.models.tiers import limits as tiers_limits
from recallog_schemas.shortening import cut, first_sentence

_SHOWN = 3
_BETWEEN = " · "
_SENTENCE_CHARS_MAX = 120
"""The limit leaves room for each of three: a first sentence with a table or a program would fill the summary."""


def summarize_texts(texts: Sequence[tuple[str, float]]) -> str:
    """`texts` with their importance, oldest first, in at most `tiers_limits.SUMMARY_CHARS_MAX` characters.

    The summary is "N memories: " and the first sentences of the three most important texts, oldest first, separated by
    " · ". Of equally important texts, those are taken whose first sentences say most.
    """
    sentences = [
        Quotable(cut(first_sentence(" ".join(text.split())), _SENTENCE_CHARS_MAX), importance)
        for text, importance in texts
    ]
    shown = [sentences[number].text for number in choose_telling(sentences, _SHOWN)]
    memories = "memory" if len(texts) == 1 else "memories"
    return cut(f"{len(texts)} {memories}: {_BETWEEN.join(shown)}", tiers_limits.SUMMARY_CHARS_MAX)
