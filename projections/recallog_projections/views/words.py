"""Words of texts, and fast comparison of the words of two texts, for relevance by words."""

from collections.abc import Iterable, Set
from functools import reduce
from itertools import count
from operator import or_
from typing import NamedTuple

from recallog_schemas import limits

_FEW = 256


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
        bits = self._bits
        # Numbers are drawn one by one, so that two threads never give one number to two words.
        known = (bits.get(word) or bits.setdefault(word, 1 << next(self._numbers)) for word in words)
        return Bag(_together(known, len(words)), len(words))

    def make_bag(self, text: str) -> Bag:
        """The words of `text`, to be compared with a text that was learned."""
        known = self._bags.get(text)
        if known is not None:
            return known
        if len(text) <= limits.CACHED_TEXT_CHARS_MAX:
            self._bags[text] = bag = self.learn(text)
            return bag
        words = words_of(text)
        return Bag(_together((bit for word in words if (bit := self._bits.get(word))), len(words)), len(words))


def _together(bits: Iterable[int], count: int) -> int:
    """The OR of some `count` integers of one bit each."""
    if count <= _FEW:
        return reduce(or_, bits, 0)
    places = [bit.bit_length() - 1 for bit in bits]  # an OR of thousands of long integers would copy each of them
    found = bytearray(max(places, default=0) // 8 + 1)
    for place in places:
        found[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(found, "little")


_vocabulary = Vocabulary()


def vocabulary() -> Vocabulary:
    """The vocabulary to use for one query: the present one, or a new one if that has grown too large."""
    global _vocabulary
    if _vocabulary.is_full:
        _vocabulary = Vocabulary()
    return _vocabulary
