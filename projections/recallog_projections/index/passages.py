"""The passages of a text: parts that a model reads whole, so that a long text is found by any of them.

A model reads a limited number of word pieces, 256 by default, and the one vector of a long reply resembles no question
about a part of it. A text is therefore split into passages of similar length, at the end of a paragraph if possible,
else of a line (an item of a list, a line of code), else of a sentence, else between two words. The result depends on
the text alone, not on a tokenizer, so that the passage that was found can be quoted.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

PASSAGE_LENGTH = 600
"""The greatest length of a passage. In English about 150 word pieces: the end of the preceding text, of at most
`limits.INDEX_BEFORE_CHARS`, still fits into the model's 256."""
EMBEDDED_MAX = 32
"""The number of passages of one text that are embedded: its first and its last ones. Terms are those of all."""

_WIDE = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_WIDE_LENGTH = 4
"""The length of a Chinese, Japanese or Korean character: vocabularies that have it spend about one word piece on it,
and one on four characters of an alphabet."""

_LINE_END = re.compile(r"\n(?:[^\S\n]*\n)*")
_SENTENCE_END = re.compile(
    "[.!?\u2026][\"')\\]\u201d\u2019]*\\s+"  # with closing quotation marks and brackets
    "|[\u3002\uff01\uff1f\uff1b\u2026]+[\u201d\u2019\u300d\u300f\uff09]*"
)
_SPACE = re.compile(r"\s+")
_PARAGRAPH, _LINE, _SENTENCE, _WORD = range(4)
_RANK_COST = 0.15
"""What the next worse kind of cut costs, as a deviation from the desired length: a paragraph that ends within about
half a passage of it is preferred to a cut between words in the right place."""


def length(text: str) -> int:
    """The length of a text in characters, of which Chinese, Japanese and Korean ones count four times."""
    return len(text) if text.isascii() else len(text) + (_WIDE_LENGTH - 1) * len(_WIDE.findall(text))


def spans(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each passage in characters, in order, without gaps; one for a text of up to one passage."""
    if length(text) <= PASSAGE_LENGTH:
        return [(0, len(text))]
    before = _lengths(text)
    ends, ranks = _cuts(text)
    found: list[tuple[int, int]] = []
    start = 0
    while (left := before[-1] - before[start]) > PASSAGE_LENGTH:
        desired = left / math.ceil(left / PASSAGE_LENGTH)
        first = bisect_left(before, before[start] + desired / 2)
        last = bisect_right(before, before[start] + PASSAGE_LENGTH) - 1
        end, least = last, math.inf
        for number in range(bisect_left(ends, first), bisect_right(ends, last)):
            deviation = abs(before[ends[number]] - before[start] - desired) / desired
            if (cost := deviation + _RANK_COST * ranks[number]) < least:
                end, least = ends[number], cost
        found.append((start, end))
        start = end
    return [*found, (start, len(text))]


def select_embedded(text: str) -> list[tuple[int, int]]:
    """The `spans` that are embedded, in order."""
    found = spans(text)
    half = EMBEDDED_MAX // 2
    return found if len(found) <= EMBEDDED_MAX else [*found[:half], *found[-half:]]


def _lengths(text: str) -> Sequence[int]:
    """The length of the text before each character, and at its end."""
    if text.isascii():
        return range(len(text) + 1)
    each = [1] * len(text)
    for wide in _WIDE.finditer(text):
        each[wide.start()] = _WIDE_LENGTH
    return list(accumulate(each, initial=0))


def _cuts(text: str) -> tuple[list[int], list[int]]:
    """Where the text can be cut, in order, and the rank of each cut: the lower the better."""
    best: dict[int, int] = {}
    for end, rank in (*_after_lines(text), *_after_sentences(text)):
        best[end] = min(rank, best.get(end, rank))
    for space in _SPACE.finditer(text):
        best.setdefault(space.end(), _WORD)
    ends = sorted(best)
    return ends, [best[end] for end in ends]


def _after_lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _LINE_END.finditer(text):
        line = text[start : found.start()].strip()
        rank = _PARAGRAPH if found.group().count("\n") > 1 else _LINE
        # A heading, and a line that announces a list or code, belong to what follows.
        yield found.end(), _WORD if line.startswith("#") or line.endswith((":", "\uff1a")) else rank
        start = found.end()


def _after_sentences(text: str) -> Iterator[tuple[int, int]]:
    for found in _SENTENCE_END.finditer(text):
        if "\n" not in found.group():
            yield found.end(), _SENTENCE
