"""Names of agents in a question: as a whole, by a part ("Bob" for `bob-smith`), shortened ("Mel" for `Melanie`),
misspelt ("Melany"), or in another script ("Мелани").

Names are split at punctuation and inside words such as `BobSmith`. Only the part of an address before the @ counts. A
part names an agent if few agents have it. A shortened or misspelt part must begin with a capital letter, since other
words are seldom names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from recallog.retrieval import time_forms
from recallog.retrieval.sections import read_sections
from recallog.retrieval.spellings import count_edits, find_consonants, sound_alike
from recallog_projections.index import terms

Span = tuple[int, int]
"""Start and end in the question, in characters; the end is exclusive."""

SHARED_MAX = 3
"""A part that more agents share is a label, such as `worker` in `worker-1` to `worker-9`."""
_PART_LETTERS_MIN = 3
_MISSPELT_LETTERS_MIN = 5
_TWO_EDITS_LETTERS_MIN = 6
"""In words of at least this length, two edits count as one spelling mistake if the first `_SAME_BEGINNING` letters are
right."""
_SAME_BEGINNING = 4
_BEFORE_WORDS = re.compile(r"(?i:[mdsk]?eine?[nmrs]?|im)\s+|\w+[.?!]\W*")
"""What precedes a word that has a capital letter although it is not a name: the end of a sentence, or German articles
that a name does not have, unlike "der" in "der Max"."""

_OTHERS = "\u0250-\u1fff\u2c00-\u2dff\ua4d0-\uabff"
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[A-Za-z0-9\u00c0-\u024f]+|[{_UNSPACED}]|[{_OTHERS}]+")
"""A run of letters of one script, which others may follow without a space; a character where words have no spaces."""
_UPPER, _LOWER = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u024f"
_PARTS = re.compile(rf"[{_UPPER}]?[{_LOWER}]+|[{_UPPER}]+(?![{_LOWER}])|[0-9]+|[{_OTHERS}]+")
_WITHIN = re.compile(r"[\s._@/|:+-]*")
_POSSESSIVE = re.compile(r"['\u2019`]s\b")
_LABELS = frozenset(
    """
    agent assistant bot user human model customer client team group service system worker node role player
    mr mrs ms dr prof sir the and com org net mail admin test
    """.split()  # noqa: SIM905 - a page of quoted words is harder to read
)
_TIMES = {
    *time_forms.MONTHS,
    *time_forms.WEEKDAYS,
    "mon",
    "tue",
    "tues",
    "wed",
    "thu",
    "thur",
    "thurs",
    "fri",
    "sat",
    "sun",
}
"""Words that begin with a capital letter, and are seldom names."""
WORDS = dict(read_sections("name_words.txt"))
_NOT_NAMES = {*_TIMES, *terms.FUNCTION_WORDS, *WORDS["not names"].split()}


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    """In lower case."""
    capital: bool


class _Names(NamedTuple):
    """The names of some agents by their words."""

    whole: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    """By first word: the words of the whole name, and the agent."""
    by_part: Mapping[str, Sequence[str]]
    """By part of a name: the agents that have it."""


def find_named(
    question: str, agents: Iterable[str], nicknames: Iterable[tuple[str, str]] = ()
) -> dict[str, list[Span]]:
    """The agents that a question names, each with the spans that contain only its name.

    `nicknames` are further names, each with an agent that has it.
    """
    names = _names_of((*((agent, agent) for agent in agents), *nicknames))
    words = [
        _Word(match.start(), match.end(), match.group().lower(), match.group()[0].isupper())
        for match in _WORD.finditer(question)
    ]
    found: dict[str, list[Span]] = {}
    used: dict[int, int] = {}
    """By the number of a word: the length, in words, of the longest name that contains it."""
    for numbers, agent in sorted(_whole(question, words, names), key=lambda match: -len(match[0])):
        if all(used.get(number, 0) <= len(numbers) for number in numbers):  # "Bob Smith" does not name `smith`
            found.setdefault(agent, []).append(_span(question, words, numbers))
            used |= dict.fromkeys(numbers, len(numbers))
    whole = frozenset(found)
    for number, word in enumerate(words):
        if number in used or not _may_be_part(word.text):
            continue
        is_word = _BEFORE_WORDS.fullmatch(question, words[number - 1].start, word.start)
        parts = [word.text] if word.text in names.by_part else _misspelt(word, number, names.by_part)
        # "Mill" may be short for `miller`, or a word of the question.
        longer = [] if parts or is_word else _find_longer(words, number, names.by_part)
        for part in parts or longer:
            for agent in names.by_part[part]:
                if agent not in whole:
                    spans = found.setdefault(agent, [])
                    spans += [_span(question, words, range(number, number + 1))] if word.capital and parts else []
    if not question.isascii() or not all(map(str.isascii, names.by_part)):
        taken = {at for spans in found.values() for span in spans for at in range(*span)}
        for agent, span in _find_by_sound(question, names.by_part):
            if span[0] not in taken:
                found.setdefault(agent, []).append(span)
    return found


def find_possible(question: str) -> Iterator[tuple[int, int, str]]:
    """The words of a question that may be names, each after its start and its end (exclusive)."""
    for match in _possible().finditer(question):
        word = match.group().lower()
        if not match.group()[0].islower() and word not in _NOT_NAMES:
            yield *match.span(), match.group()


@cache
def _possible() -> re.Pattern[str]:
    return re.compile(WORDS["possible name"].replace("{TRANSCRIBING}", WORDS["TRANSCRIBING"]), re.VERBOSE)


def _whole(question: str, words: Sequence[_Word], names: _Names) -> Iterable[tuple[range, str]]:
    """The numbers of the words that are the whole name of an agent, and the agent."""
    for number, word in enumerate(words):
        for parts, agent in names.whole.get(word.text, ()):
            numbers = range(number, number + len(parts))
            same = tuple(each.text for each in words[numbers.start : numbers.stop]) == parts
            if same and all(_are_joined(question, words[at], words[after]) for at, after in pairwise(numbers)):
                yield numbers, agent


def _are_joined(question: str, one: _Word, other: _Word) -> bool:
    return _WITHIN.fullmatch(question, one.end, other.start) is not None


@lru_cache(maxsize=64)
def _names_of(named: tuple[tuple[str, str], ...]) -> _Names:
    """The names of agents, each with its agent."""
    whole: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    by_part: dict[str, list[str]] = {}
    for name, agent in dict.fromkeys(named):
        split = tuple(word.lower() for word in _WORD.findall(name))
        parts = tuple(part.lower() for part in _PARTS.findall(name.split("@")[0]))
        for words in dict.fromkeys((split, parts)):
            if words:
                whole.setdefault(words[0], []).append((words, agent))
        for part in filter(_may_be_part, dict.fromkeys(parts)):
            by_part.setdefault(part, []).append(agent)
    return _Names(whole, {part: having for part, having in by_part.items() if len(having) <= SHARED_MAX})


def _find_by_sound(question: str, by_part: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, Span]]:
    """The agents that the question names in another script."""
    by_sound = _sort_by_sound(tuple(by_part))
    for start, end, text in find_possible(question):
        for part in by_sound.get(find_consonants(text.lower()), ()):
            if sound_alike(text.lower(), part):
                yield from ((agent, (start, end)) for agent in by_part[part])


@lru_cache(maxsize=64)
def _sort_by_sound(parts: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    """The parts by their consonants."""
    found: dict[str, list[str]] = {}
    for part in parts:
        found.setdefault(find_consonants(part), []).append(part)
    return found


def _find_longer(words: Sequence[_Word], number: int, parts: Iterable[str]) -> list[str]:
    """The part that begins with a word; empty if several do. "San" in "San Francisco" is not short for another name."""
    word, around = words[number], words[max(1, number - 1) : number + 2]
    if number == 0 or [each.capital for each in around].count(True) > 1 or word.text in _TIMES:
        return []
    longer = [part for part in parts if word.capital and part.startswith(word.text)]
    return longer if len(longer) == 1 else []


def _misspelt(word: _Word, number: int, parts: Iterable[str]) -> list[str]:
    """The parts that `word` may be a misspelling of: all with the fewest differences."""
    if not word.capital or number == 0 or len(word.text) < _MISSPELT_LETTERS_MIN:
        return []
    near: dict[int, list[str]] = {}
    for part in parts:
        if part[0] == word.text[0] and len(part) >= _MISSPELT_LETTERS_MIN:
            long = min(len(part), len(word.text)) >= _TWO_EDITS_LETTERS_MIN
            most = 2 if long and part[:_SAME_BEGINNING] == word.text[:_SAME_BEGINNING] else 1
            if abs(len(part) - len(word.text)) <= most and (edits := count_edits(part, word.text)) <= most:
                near.setdefault(edits, []).append(part)
    return near[min(near)] if near else []


def _span(question: str, words: Sequence[_Word], numbers: range) -> Span:
    """The span of these words, with an "'s" that follows."""
    start, end = words[numbers[0]].start, words[numbers[-1]].end
    possessive = _POSSESSIVE.match(question, end)
    return start, possessive.end() if possessive else end


def _may_be_part(part: str) -> bool:
    return (
        len(part) >= _PART_LETTERS_MIN and part.isalpha() and part not in _LABELS and part not in terms.FUNCTION_WORDS
    )
