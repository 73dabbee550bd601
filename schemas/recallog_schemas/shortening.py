"""Texts shortened for readers."""

import math
import re

from recallog_schemas import limits

_SENTENCE = re.compile(r".+?(?:[.!?…](?=\s|$)|[。！？]|$)", re.DOTALL)
CHARS_PER_TOKEN = 4
"""The memory model's estimate: a token is four characters, rounded up."""
MARK = "…"
"""The end of a shortened text."""


def cut(text: str, chars_max: int) -> str:
    """`text`, or as many of its words as fit into `chars_max` characters together with "…"."""
    if len(text) <= chars_max:
        return text
    # Not every script puts blanks between words: text without a blank in its second half is cut at the limit.
    blank = max(text.rfind(separator, chars_max // 2, chars_max) for separator in " \n")
    return text[: blank if blank >= 0 else max(chars_max - 1, 0)].rstrip() + MARK


def shorten(text: str, chars: int = limits.PREVIEW_CHARS) -> str:
    """The first `chars` characters of `text`, and "..." if it is longer."""
    return text if len(text) <= chars else text[:chars] + "..."


def first_sentence(text: str) -> str:
    """The first sentence of a text; all of it if no sentence ends in it."""
    sentence = _SENTENCE.match(text)
    return text if sentence is None else sentence[0]


def tokens(text: str) -> int:
    """The estimated number of tokens of a text: one for every four characters, rounded up."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)
