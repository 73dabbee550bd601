"""Terms of exact strings: paths, file names, flags, identifiers, versions and codes.

Words alone do not find them: `src/app/server.py` shares its words with every other path of its folder, `no` of
`--no-cache` is a stop word, and `HTTPError` is one word. So each of these strings has terms of its own, unstemmed,
marked by "=":

src/app/server.py      =src/app/server.py =src/app =app/server.py =server.py
os.path.join           =os.path.join =os.path =path.join
parse_args             =parse_args
HTTPError              =httperror, and the words http and error
--no-cache, -F         =--no-cache, =-F (flags in their case)
E999, gpt-4, 4.0.1     =e999, =gpt-4, =4.0.1 (with a hyphen only if there is a digit or an underscore)

A path and a longer or shorter form of it share terms: `/repo/src/app/server.py` has all four of the first line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

MARK = "="
"""The first character of exact terms. No word has it."""
STRING_CHARS_MAX = 200
"""Longer strings are data, for example in base64, which nobody looks up."""

_STRING = re.compile(
    r"(?:(?<![\w./\\-])--?(?=[A-Za-z]))?"  # of a flag
    r"(?<!\w)\w+(?:(?:[/\\][.@]?|[.@-])\w+)*",
    re.ASCII,
)
_SIGN = re.compile(
    r"[0-9_./\\@A-Z-](?:(?<=[0-9_])|(?<=\w[./\\@-])(?=[\w.@])|(?<=[A-Za-z][A-Z])|(?<=-)(?<!\w-)(?=[-A-Za-z]))", re.ASCII
)
"""What each exact string has: a digit, an underscore, a separator or a capital inside, or the hyphen of a flag."""
_FLAG = re.compile(r"--?[\w-]+", re.ASCII)
_SEPARATOR = re.compile(r"[/\\][.@]?")
_CASE_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CODE = re.compile(r"(?=.*[0-9])(?=.*[a-z]).{4,}")
_QUANTITY = re.compile(r"[0-9]+[a-z]{1,2}")
"""Numbers with a unit or an ending, such as "100km" and "20th", are words."""
_DATE = re.compile(r"[0-9]{1,2}([./-])[0-9]{1,2}\1[0-9]{4}|[0-9]{4}([./-])[0-9]{1,2}\2[0-9]{1,2}")
"""Dates such as "25.01.2024" are words: a text of that day seldom spells its date so."""


def may_occur(text: str) -> bool:
    """Whether `text` may have exact strings. Without any this takes a fraction of the time of `occurrences`."""
    return _SIGN.search(text) is not None


def occurrences(text: str) -> Iterator[tuple[int, int, str]]:
    """The terms of the exact strings in `text` as (start, end, term); a string may have several.

    `start` and `end` are those of the string, in characters, end exclusive. The words of names in camel case follow
    their names, unmarked and in lower case.
    """
    for found in _STRING.finditer(text):
        string = found.group()
        if string.isalpha() and (string.islower() or string[1:].islower()):
            continue  # nearly all words
        if _DATE.fullmatch(string):
            continue
        if len(string) <= STRING_CHARS_MAX:
            for term in _terms(string):
                yield found.start(), found.end(), term


def is_exact(term: str) -> bool:
    """Whether a term is that of an exact string, not a word."""
    return term.startswith(MARK)


def exact_among(terms: Iterable[str]) -> frozenset[str]:
    """The terms among `terms` that are of exact strings."""
    return frozenset(term for term in terms if term.startswith(MARK))


def words_in(word: str) -> Sequence[str]:
    """The words of a word in camel case, in lower case: "http" and "error" of "HTTPError". Empty for other words."""
    if word.islower() or word.isupper() or len(word) > STRING_CHARS_MAX:
        return ()
    parts = [part.lower() for part in _CASE_PART.findall(word) if len(part) > 1]
    return parts if len(parts) > 1 else ()


@lru_cache(maxsize=16_384)
def _terms(string: str) -> tuple[str, ...]:
    found: list[str] = []
    if string.startswith("-") and (flag := _FLAG.match(string)):
        found += [flag.group(), *_names(flag.group().lstrip("-"))]
        string = string[flag.end() :].lstrip("/\\.@")
    segments = _SEPARATOR.split(string)
    found += _join_adjacent(segments, "/")
    for segment in segments:
        parts = segment.split(".")
        if any(len(part) > 1 or part.isdecimal() for part in parts):  # otherwise an abbreviation such as "e.g"
            found += _join_adjacent(parts, ".")
        for part in parts:
            if "@" in part or ("-" in part and re.search(r"[\d_]", part)):
                found.append(part.lower())
            found += _names(part)
    words = [word for name in re.findall(r"[A-Za-z0-9]+", string) for word in words_in(name)]
    return tuple(dict.fromkeys([*(MARK + each for each in found), *words]))


def _join_adjacent(parts: Sequence[str], separator: str) -> list[str]:
    """The whole, and each two adjacent parts of it; numbers such as "4.0.1" as a whole only."""
    if len(parts) < 2:
        return []
    pairs = [] if all(part.isdecimal() for part in parts) else list(pairwise(parts))
    return [separator.join(each).lower() for each in (parts, *pairs)]


def _names(part: str) -> list[str]:
    """The names and codes in a part of a string, in lower case."""
    return [
        word.lower()
        for word in re.split("[@-]", part)
        if ("_" in word and word.strip("_"))
        or words_in(word)
        or (_CODE.fullmatch(word.lower()) and not _QUANTITY.fullmatch(word.lower()))
    ]
