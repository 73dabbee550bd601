"""Words of texts, and fast comparison of the words of two texts, for relevance by words."""

from collections.abc import Set
from itertools import count
from typing import NamedTuple

from recallog_schemas import limits


class Bag(NamedTuple):
    """The distinct words of a text."""

    bits: int
    """One bit for each word that the vocabulary knows."""
    size: int
    """The number of distinct words, known or not."""


def words_of(text: str) -> Set[str]:
    """The distinct words of `text`: lower case, split at white space (the ledger-view memory document's tokens)."""
    return frozenset(text.lower().split())


class Vocabulary:
    """Numbers words, so that the common words of two texts are the AND of two integers.

    Short texts are split once and cached, since shared events are ranked for each agent of their space. Comparing
    thousands of sets of strings instead took 9 of the 12 ms of a query, mostly cache misses of the processor.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._bits: dict[str, int] = {}
        self._bags: dict[str, Bag] = {}

    @property
    def is_full(self) -> bool:
        return len(self._bags) > limits.CACHED_TEXTS_MAX or len(self._bits) > limits.CACHED_WORDS_MAX

    def learn(self, text: str) -> Bag:
        """The words of `text`, which the vocabulary knows from now on."""
        words = words_of(text)
        bits = 0
        for word in words:
            # Numbers are drawn one by one, so that two threads never give one number to two words.
            bits |= self._bits.get(word) or self._bits.setdefault(word, 1 << next(self._numbers))
        return Bag(bits, len(words))

    def compared(self, text: str) -> Bag:
        """The words of `text`, to be compared with a text that was learned."""
        known = self._bags.get(text)
        if known is not None:
            return known
        if len(text) <= limits.CACHED_TEXT_CHARS_MAX:
            self._bags[text] = bag = self.learn(text)
            return bag
        words = words_of(text)
        return Bag(sum(self._bits.get(word, 0) for word in words), len(words))


_vocabulary = Vocabulary()


def vocabulary() -> Vocabulary:
    """The vocabulary to use for one query: the present one, or a new one if that has grown too large."""
    global _vocabulary
    if _vocabulary.is_full:
        _vocabulary = Vocabulary()
    return _vocabulary
