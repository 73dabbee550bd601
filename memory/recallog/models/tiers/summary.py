"""The summary of several texts, made without a model: how many there are, and the beginnings of the important ones."""

from collections.abc import Sequence

from recallog.reactors.telling import Quotable, choose_telling
from recallog_schemas.models.tiers import limits as tiers_limits
from recallog_schemas.shortening import cut, first_sentence

_SHOWN = 3
_BETWEEN = " · "
_SENTENCE_CHARS_MAX = 120
"""So that each of the three has room: a first sentence with a table or a program would fill the summary."""


def summarize_texts(texts: Sequence[tuple[str, float]]) -> str:
    """`texts` with their importance, oldest first, in at most `tiers_limits.SUMMARY_CHARS_MAX` characters.

    "N memories: " and the first sentences of the three most important, of equally important ones those whose first
    sentences say most, oldest first with " · " between.
    """
    sentences = [
        Quotable(cut(first_sentence(" ".join(text.split())), _SENTENCE_CHARS_MAX), importance)
        for text, importance in texts
    ]
    shown = [sentences[number].text for number in choose_telling(sentences, _SHOWN)]
    memories = "memory" if len(texts) == 1 else "memories"
    return cut(f"{len(texts)} {memories}: {_BETWEEN.join(shown)}", tiers_limits.SUMMARY_CHARS_MAX)
