"""The forms in which questions name times, as patterns over the words of several languages."""

import re
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cache

from recallog.retrieval.sections import read_sections

_SECTIONS = read_sections("time_words.txt")


def _read_table(table: str, first: int) -> dict[str, int]:
    """The names in a table of `time_words.txt`, each with its place in its line, from `first`; "-" is not a name."""
    lines = dict(_SECTIONS)[table].splitlines()
    return {name: number for line in lines for number, name in enumerate(line.split(), first) if name != "-"}


MONTHS = _read_table("month names", 1)
WEEKDAYS = _read_table("weekday names", 0)
RELATIVE_YEARS = _read_table("years back", 0)
NUMBERS = _read_table("number words", 1) | {"a couple": 2, "a couple of": 2, "a few": 3, "a": 1}
SEASONS = _read_table("season names", 0)
"""The quarters of the year that begin in March, as in the northern hemisphere."""
HAN_DIGITS = _read_table("han digits", 0)


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_NAMES = {
    "MONTH": _any(MONTHS),
    "WEEKDAY": _any(name for name in WEEKDAYS if name[0] < "\u3000"),
    "UNSPACED_WEEKDAY": _any(name for name in WEEKDAYS if name[0] >= "\u3000" and len(name) > 1),
    "SEASON": _any(name for name in SEASONS if name[0] < "\u3000"),
    "UNSPACED_SEASON": _any(name for name in SEASONS if name[0] >= "\u3000"),
    "NUMBERS": _any(NUMBERS),
    "RELATIVE_YEARS": _any(RELATIVE_YEARS),
}
_PART = re.compile(r"\{([A-Z_]+)\}")
"""A reference to a pattern in `time_words.txt` that is a part of other patterns."""
_WORDS = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPTS = re.compile(r"[\d\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@cache
def _sections() -> Sequence[tuple[str, str]]:
    """The names and texts of the sections of `time_words.txt`, in order; each part is replaced by its pattern."""
    parts, found = dict(_NAMES), list[tuple[str, str]]()
    for name, text in _SECTIONS:
        parts[name] = _PART.sub(lambda part: parts[part[1]], text)
        found.append((name, parts[name]))
    return found


def _compile_pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE | re.VERBOSE)


@cache
def units(of: str) -> Collection[str]:
    """The words for days, weeks, months or years: `of` is "DAY", "WEEK", "MONTH" or "YEAR"."""
    return dict(_sections())[f"{of}_UNITS"].split(" | ")


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The pattern of a section whose name occurs only once."""
    return _compile_pattern(dict(_sections())[name])


@cache
def _triggers() -> Set[str]:
    """A question in European letters names a time only if it contains one of these words."""
    return {*dict(_sections())["trigger"].split(), *MONTHS, *WEEKDAYS, *SEASONS}


def may_name_a_time(question: str) -> bool:
    """Whether a question in lower case contains a figure or a word that some form needs. Most questions do not."""
    return not _triggers().isdisjoint(_WORDS.findall(question)) or _OTHER_SCRIPTS.search(question) is not None


@cache
def forms() -> list[tuple[str, re.Pattern[str]]]:
    """The name of each form and its pattern, in the order in which they are read."""
    names = [name for name, _ in _sections()]
    of_forms = _sections()[names.index("first") : names.index("trigger")]
    return [(name, _compile_pattern(text)) for name, text in of_forms]
