"""The tokenizer of a unigram language model (Kudo, 2018): of all ways to split a word, the most probable one.

The library tokenizers takes seconds to read a vocabulary of 250,000 pieces, stops all threads of the process meanwhile,
and needs 150 MB for it. Here it is one dictionary, and the words that were split last are kept.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_SPACE = "\u2581"
"""What begins a word in the vocabulary."""
_WORD = re.compile("[^ ]+")
_CACHED_CHARS_MAX = 64
_UNKNOWN_PENALTY = 10.0
"""How much less probable an unknown character is than the rarest piece, as in SentencePiece."""


class SpecialTokens(NamedTuple):
    """The ids of tokens that are not in texts."""

    begin: int
    end: int
    pad: int
    unknown: int


@dataclass(frozen=True, slots=True)
class UnigramEncoding:
    """A text in tokens, with the fields of an encoding of the library tokenizers that an embedder reads."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    """The start and end of each token in characters of the text, end exclusive."""
    special_tokens_mask: list[int]
    """1 for the tokens that begin and end each encoding."""
    overflowing: Sequence["UnigramEncoding"] = ()
    """The tokens beyond the first `tokens_max`."""


class UnigramTokenizer:
    """Splits texts into at most `tokens_max` of `pieces`, which have an id and the logarithm of a probability each.

    `normal` replaces single characters first.
    """

    def __init__(
        self,
        pieces: Mapping[str, tuple[int, float]],
        special: SpecialTokens,
        normal: Mapping[str, str],
        tokens_max: int,
    ) -> None:
        self.special = special
        self._pieces = pieces
        self._normal = normal
        self._tokens_max = tokens_max
        self._longest = max(map(len, pieces))
        self._unknown_score = min(score for _, score in pieces.values()) - _UNKNOWN_PENALTY
        self._split_short = lru_cache(maxsize=32_768)(self._split)

    def encode(self, text: str) -> UnigramEncoding:
        """The tokens of a text."""
        tokens = list(self._tokens(text))
        room = self._tokens_max - 2
        rest = [self._encoding(tokens[room:])] if len(tokens) > room else []
        return self._encoding(tokens[:room], rest)

    def _encoding(
        self, tokens: Sequence[tuple[int, int, int]], overflowing: Sequence[UnigramEncoding] = ()
    ) -> UnigramEncoding:
        ids = [self.special.begin, *(each for each, _, _ in tokens), self.special.end]
        offsets = [(0, 0), *((start, end) for _, start, end in tokens), (0, 0)]
        return UnigramEncoding(ids, offsets, [1, *([0] * len(tokens)), 1], overflowing)

    def _tokens(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The id, start and end of each token. If the space before a word is a token, that token is empty."""
        replaced = [self._normal.get(each, each) for each in text]
        places = [number for number, each in enumerate(replaced) for _ in each]
        for word in _WORD.finditer("".join(replaced)):
            split = self._split_short if len(word.group()) <= _CACHED_CHARS_MAX else self._split
            for token, start, end in split(_SPACE + word.group()):
                first = places[word.start() + max(start - 1, 0)]
                yield token, first, places[word.start() + end - 2] + 1 if end > 1 else first

    def _split(self, word: str) -> Sequence[tuple[int, int, int]]:
        """The most probable pieces of a word, by Viterbi's algorithm."""
        best: list[tuple[float, int, int]] = [(0.0, 0, 0), *[(-math.inf, 0, 0)] * len(word)]
        for start in range(len(word)):
            before = best[start][0]
            if before + self._unknown_score > best[start + 1][0]:
                best[start + 1] = before + self._unknown_score, start, self.special.unknown
            for end in range(start + 1, min(start + self._longest, len(word)) + 1):
                found = self._pieces.get(word[start:end])
                if found is not None and before + found[1] > best[end][0]:
                    best[end] = before + found[1], start, found[0]
        tokens = []
        end = len(word)
        while end:
            _, start, token = best[end]
            tokens.append((token, start, end))
            end = start
        return tokens[::-1]
