"""The words of a text, as relevance by keywords compares them."""

from collections.abc import Set
from itertools import count
from typing import NamedTuple

from recallog_schemas import limits


class Bag(NamedTuple):
    """The distinct words of a text."""

    bits: int
    """One for each word that its vocabulary knows."""
    size: int
    """How many there are, whether known or not."""


def words_of(text: str) -> Set[str]:
    """The distinct words of `text`: lower case, split at white space (the ledger-view memory document's tokens)."""
    return frozenset(text.lower().split())


class Vocabulary:
    """Numbers words, so that what two texts share is a few machine words' AND.

    Short texts are split once: what a space shares is ranked for each of its agents. Sets of strings, compared one
    after the other by the thousand, missed the processor's cache at every comparison and took 9 of an answer's 12 ms.
    """

    def __init__(self) -> None:
        self._numbers = count()
        self._bits: dict[str, int] = {}
        self._bags: dict[str, Bag] = {}

    @property
    def is_full(self) -> bool:
        return len(self._bags) > limits.CACHED_TEXTS_MAX or len(self._bits) > limits.CACHED_WORDS_MAX

    def learn(self, text: str) -> Bag:
        """The words of `text`, each of them known from now on."""
        words = words_of(text)
        bits = 0
        for word in words:
            # Numbers are drawn one by one, so that two threads never give one number to two words.
            bits |= self._bits.get(word) or self._bits.setdefault(word, 1 << next(self._numbers))
        return Bag(bits, len(words))

    def compared(self, text: str) -> Bag:
        """The words of `text`, as far as a comparison with a text that was learned needs them."""
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
    """The one in use, for the length of one question; a new one where it has grown too large."""
    global _vocabulary
    if _vocabulary.is_full:
        _vocabulary = Vocabulary()
    return _vocabulary
