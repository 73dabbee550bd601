"""The words of a text, as relevance by keywords compares them."""

from collections.abc import Set

from recallog_schemas import limits

_known: dict[str, Set[str]] = {}


def words_of(text: str) -> Set[str]:
    """The distinct words of `text`: lower case, split at white space (the ledger-view memory document's tokens).

    Short texts are split once: what a space shares is ranked for each of its agents, and splitting it anew was most of
    the time. A plain dictionary, emptied when it is full, answers in half the time of a cache that knows what is old.
    """
    known = _known.get(text)
    if known is not None:
        return known
    said = frozenset(text.lower().split())
    if len(text) <= limits.CACHED_WORDS_CHARS_MAX:
        if len(_known) >= limits.CACHED_WORDS_MAX:
            _known.clear()
        _known[text] = said
    return said
