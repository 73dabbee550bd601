"""The words of a text of any script, each with its span in the text.

A word is a run of letters, digits and combining marks. Characters of scripts that are written without spaces form words
of their own, apart from Latin letters and digits: "用iPhone15拍" has the words 用, iphone15 and 拍.
"""

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast

Script = Literal["latin", "cjk", "hangul", "syllabic", "other"]

LATIN: Final = "latin"
"""Latin letters, and digits of all scripts."""
CJK: Final = "cjk"
"""Chinese characters and kana: no spaces between words."""
HANGUL: Final = "hangul"
SYLLABIC: Final = "syllabic"
"""Thai, Lao, Burmese and Khmer: no spaces between words, and characters that belong to the one before."""
OTHER: Final = "other"
"""Letters of other alphabets, with spaces between words."""

_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003347f"
_KANA = "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_SYLLABIC = "\u0e01-\u0e4e\u0e80-\u0ece\u1000-\u103f\u104a-\u109f\u1780-\u17d3\ua9e0-\ua9ef\uaa60-\uaa7f"
_LATIN = "0-9A-Za-z\u00aa\u00ba\u00c0-\u024f\u0250-\u02ff\u0300-\u036f\u1d00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff"

HAN: Final = re.compile(f"[{_HAN}]")
UNSPACED: Final = re.compile(f"[{_HAN}{_KANA}{_HANGUL}{_SYLLABIC}]+")

_RUN = re.compile(
    f"(?P<cjk>[{_HAN}{_KANA}]+)|(?P<hangul>[{_HANGUL}]+)|(?P<syllabic>[{_SYLLABIC}]+)|(?P<latin>[{_LATIN}]+)"
    f"|(?P<other>[^{_HAN}{_KANA}{_HANGUL}{_SYLLABIC}{_LATIN}]+)"
)
_CACHED_CHARS_MAX = 64
"""Longer words are data or whole sentences, which do not come twice."""

_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")

_BLOCKS_WITH_MARKS = (
    (0x300, 0x3100),
    (0xA620, 0xABFA),
    (0xFB1E, 0xFE30),
    (0x101FD, 0x11FFF),
    (0x16A60, 0x16FF2),
    (0x1E000, 0x1E95A),
)
_DECOMPOSED = (("\u0e4d\u0e32", "\u0e33"), ("\u0ecd\u0eb2", "\u0eb3"))
"""The vowel am of Thai and Lao, which is one character to a reader and two after NFKC."""

_JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen, and the (non-)joiners of Persian and Indic scripts: they are inside of words and mean nothing alone."""


class Word(NamedTuple):
    """A word of a text."""

    start: int
    end: int
    """Exclusive. Both count characters of the text as it was given."""
    folded: str
    script: Script


def words(text: str, begin: int = 0) -> Iterator[Word]:
    """The words of `text` in order; of a text in ASCII, those from `begin` on. Their spans do not overlap, except for
    words that come from one character."""
    if text.isascii():
        for found in _ASCII_WORD.finditer(text, begin):
            yield Word(found.start(), found.end(), found.group().lower(), LATIN)
        return
    for found in _word().finditer(text):
        start, end = found.span()
        word = found.group()
        if word.isascii():
            yield Word(start, end, word.lower(), LATIN)
        else:
            for part in _cached_parts(word) if len(word) <= _CACHED_CHARS_MAX else _parts(word):
                yield Word(start + part.start, start + part.end, part.folded, part.script)


def ascii_words(text: str) -> list[str] | None:
    """The folded words of a text whose letters and digits are all in ASCII; None for other texts."""
    if text.isascii() or not any(map(_have_letters, _NOT_ASCII.findall(text))):
        return _ASCII_WORD.findall(text.lower())
    return None


def _have_letters(characters: str) -> bool:
    """Whether one of the `characters` is a part of a word."""
    return any(map(_is_in_word, characters))


@lru_cache(maxsize=16_384)
def _is_in_word(character: str) -> bool:
    return _word().fullmatch(f"a{character}") is not None


def fold(word: str) -> str:
    """`word` in the form that is compared: lower case, compatibility forms and digits of other scripts replaced
    (full-width Latin, half-width katakana), without joiners and without vowel points of Arabic and Hebrew.
    """
    while (folded := _fold(word)) != word:
        word = folded
    return folded


def without_accents(word: str) -> str:
    """A folded word without the accents of Latin and Greek letters."""
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    if apart[0] > "\u03ff":
        return word
    return unicodedata.normalize("NFC", "".join(letter for letter in apart if not "\u0300" <= letter <= "\u036f"))


def _fold(word: str) -> str:
    composed = unicodedata.normalize("NFKC", word.translate(_translation()).casefold())
    for apart, vowel in _DECOMPOSED:
        composed = composed.replace(apart, vowel)
    return composed


def _parts(word: str) -> tuple[Word, ...]:
    """The words of a run of letters: one for each run of a script, with its span in `word`.

    If folding adds or removes characters, each has the span of all of `word`.
    """
    folded = fold(word)
    aligned = folded == word or (len(folded) == len(word) and all(len(fold(letter)) == 1 for letter in word))
    found = []
    for letters in _word().finditer(folded):
        for run in _RUN.finditer(letters.group()):
            if any(map(str.isalnum, run.group())):
                start, end = (letters.start() + at for at in run.span()) if aligned else (0, len(word))
                found.append(Word(start, end, run.group(), cast(Script, run.lastgroup)))
    return tuple(found)


_cached_parts = lru_cache(maxsize=16_384)(_parts)


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """The pattern of a word: a letter or digit, then letters, digits, combining marks and joiners."""
    marks = "".join(_ranges([code for code in _with_marks() if unicodedata.category(chr(code)).startswith("M")]))
    return re.compile(rf"[^\W_](?:[^\W_]|[{marks}{_JOINERS}])*")


def _with_marks() -> Iterator[int]:
    """The code points of the blocks that have combining marks or digits. A look at all of them takes 0.1 s."""
    for first, last in _BLOCKS_WITH_MARKS:
        yield from range(first, last)


def _ranges(codes: list[int]) -> Iterator[str]:
    """Ascending code points as ranges of a character class."""
    first = last = codes[0]
    for code in [*codes[1:], sys.maxunicode + 1]:
        if code != last + 1:
            yield f"{chr(first)}-{chr(last)}"
            first = code
        last = code


@lru_cache(maxsize=1)
def _translation() -> dict[int, str | None]:
    """Characters to replace, and those to leave out (None)."""
    table: dict[int, str | None] = {ord(joiner): None for joiner in _JOINERS}
    table |= dict.fromkeys(range(0xFE00, 0xFE10))  # variation selectors
    table |= dict.fromkeys([0x640, *range(0x64B, 0x660), 0x670, *range(0x6D6, 0x6DD)])  # Arabic: tatweel, vowel points
    table |= dict.fromkeys([*range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7])  # Hebrew: points
    return table | {code: str(unicodedata.decimal(chr(code))) for code in _with_marks() if chr(code).isdecimal()}
