"""The words of a text, as relevance by keywords compares them."""

from collections.abc import Set
from functools import lru_cache

from recallog_schemas import limits


def words_of(text: str) -> Set[str]:
    """The distinct words of `text`: lower case, split at white space (the ledger-view memory document's tokens)."""
    return _split_before(text) if len(text) <= limits.CACHED_WORDS_CHARS_MAX else frozenset(text.lower().split())


@lru_cache(maxsize=limits.CACHED_WORDS_MAX)
def _split_before(text: str) -> Set[str]:
    """What a space shares is ranked for each of its agents, and splitting it anew was most of the time."""
    return frozenset(text.lower().split())
