"""The words of a text, as relevance by keywords compares them."""

from collections.abc import Set
from functools import lru_cache

from recallog_schemas import limits


def words_of(text: str) -> Set[str]:
    """The distinct words of `text`: lower case, split at white space (the ledger-view memory document's tokens)."""
    return frozenset(text.lower().split())


def kept(text: str) -> str | None:
    """Those words with blanks between, ready to be split; None where they are too long to keep beside the text."""
    return " ".join(dict.fromkeys(text.lower().split())) if len(text) <= limits.WORDS_KEPT_CHARS_MAX else None


@lru_cache(maxsize=limits.CACHED_WORDS_MAX)
def split(kept_words: str) -> Set[str]:
    """The words of `kept`. What a space shares is ranked for each of its agents, and splitting was most of the time."""
    return frozenset(kept_words.split())
