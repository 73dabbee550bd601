"""Whether two similar texts state the same in other words or in another order, so that one of them may be archived.

Vectors hardly reflect the detail in which two facts differ. Therefore two texts agree only if each word of one is a
word of the other, or a synonym in the tables of `vocabulary`: numbers, quantities, dates, identifiers, names,
negations, comparatives and tenses are words like others. Their order is the same, except for a time or a phrase at the
beginning that may come at the end, a passive, "X is Y" and "Y is X", and two names around "and". In case of doubt, two
texts do not agree. The tables are of English and Chinese; words of other languages have no synonyms.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from recallog_projections.models.long_term import texts, vocabulary
from recallog_projections.models.long_term.normalising import HAN, KANA

_FUNCTION_WORDS = frozenset({"the", "please"})
_CHINESE_TIME = re.compile(
    "(?:毎週)?[月火水木金土日]曜日に?|毎[日週月年]|每?个?(?:周|星期)[一二三四五六日天]|每[天月年]|[昨今明前]天|[今明去前]年"
    r"|\d{4}-\d\d-\d\d|--\d\d-\d\d|\d{4}年(?:\d{1,2}月)?"
)
_NEGATIVE = re.compile(r"\b(?:no|not|never|without|nor)\b", re.IGNORECASE)
_REPORTING = re.compile("[说讲问]|告诉|认为|觉得|知道|希望|要求|言")


def agree(one: str, other: str) -> bool:
    """Whether two texts state the same, by their words."""
    if "\n" in one.strip() or "\n" in other.strip():
        return texts.form_of(one) == texts.form_of(other)
    ours, theirs = texts.normal_text(one), texts.normal_text(other)
    if _is_chinese(ours + theirs):
        return _agree_in_chinese(ours, theirs)
    if (_NEGATIVE.search(ours) and ours.count(",") != theirs.count(",")) or not _names_agree(ours, theirs):
        return False
    if ("?" in ours) != ("?" in theirs):
        return False
    forms = {tuple(form) for form in _forms(theirs)}
    return any(tuple(form) in forms for form in _forms(ours))


def _is_chinese(text: str) -> bool:
    """Whether a text is compared by characters, as Chinese and Japanese are."""
    return HAN.search(text) is not None or KANA.search(text) is not None


def words_of(text: str) -> frozenset[str]:
    """The words, or characters, that every text which agrees with this text contains too. Most other texts contain
    more."""
    normal = texts.normal_text(text)
    if _is_chinese(normal):
        return frozenset(_chinese(normal)) - frozenset("是的了")
    return frozenset(_words(normal))


def _words(text: str) -> list[str]:
    """The words of a text, with one word for each group of synonyms, without articles and punctuation."""
    said = re.sub(r"(?<=\d) (?=\d{3}\b)", "", text.lower().replace("\u0451", "\u0435"))  # 12 000; Russian yo
    said = re.sub(r"\b(?:on|in|at) (?=(?:\w+ )?(?:\d{4}\b|-?-\d\d|\d\d:\d\d|\w+days?\b))|#(?=\d)", "", said)
    said = f" {' '.join(word.rstrip('.') for word in re.findall(_WORD, said))} "
    for phrase, word in vocabulary.replacements("phrases"):
        said = said.replace(f" {phrase} ", f" {word} " if word else " ")
    said_instead = _synonyms()
    return [said_instead.get(word, word) for word in said.split() if word not in _FUNCTION_WORDS]


_WORD = r"[^\s,;:!?\"“”„()]+(?:[:.][^\s,;:!?\"“”()]+)*"


def _names_agree(one: str, other: str) -> bool:
    """Whether both texts use the same words as names."""
    ours, theirs = _inner_capitals(one), _inner_capitals(other)
    return all(theirs.get(word, form) == form for word, form in ours.items())


def _inner_capitals(text: str) -> dict[str, str]:
    """Words inside a text that are written with capitals, by their lower case."""
    first, *others = re.findall(r"[\w'.@/-]*\w", text) or [""]
    words = [first, *others] if re.search(r"\d", first) else others
    return {} if text == text.lower() or text == text.upper() else {word.lower(): word for word in words}


def _forms(text: str) -> Iterator[Sequence[str]]:
    """The orders of words in which a text states the same."""
    said = text.rstrip(".! ")
    for order in (said, *vocabulary.rewritten("orders", said)):
        words = _words(order)
        yield words
        yield from _rotate(words)


def _rotate(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """The words with a phrase moved from the beginning to the end."""
    for length in range(1, min(len(words), 9)):
        ahead = words[:length]
        if ahead[0] in vocabulary.words("marks") or (length <= 3 and any(_time().fullmatch(word) for word in ahead)):
            yield [*words[length:], *ahead]


@cache
def _time() -> re.Pattern[str]:
    """A pattern for a word of a time."""
    return re.compile("|".join(vocabulary.lines("times")))


def _agree_in_chinese(one: str, other: str) -> bool:
    forms = set(_chinese_forms(one))
    return any(form in forms for form in _chinese_forms(other)) or _times_agree(_chinese(one), _chinese(other))


def _chinese_forms(text: str) -> Iterator[str]:
    said = _chinese(text)
    yield from (said, *vocabulary.rewritten("chinese_orders", said))


def _times_agree(one: str, other: str) -> bool:
    """Whether the texts differ only in the position of their one time."""
    times = _CHINESE_TIME.findall(one)
    if len(times) != 1 or _CHINESE_TIME.findall(other) != times or _REPORTING.search(one):
        return False
    return _CHINESE_TIME.sub("", one) == _CHINESE_TIME.sub("", other)


def _chinese(text: str) -> str:
    """A text without meaningless punctuation, with one word for each group of synonyms."""
    said = re.sub('[。.!！,，、"“”]+', "", text).strip()
    for word, first in vocabulary.replacements("chinese_synonyms"):
        said = said.replace(word, first)
    return said


@cache
def _synonyms() -> dict[str, str]:
    """By each word: its replacement in the same form."""
    found: dict[str, str] = {}
    for line in vocabulary.lines("synonyms"):
        first, *others = line.split()
        for word in others:
            found = dict(zip(_inflect(word), _inflect(first), strict=True)) | found
    return found


def _inflect(word: str) -> Sequence[str]:
    """The word, and its presumed forms with -s, -ed and -ing."""
    stem = word.removesuffix("e")
    plural = f"{word}es" if word.endswith(("s", "sh", "ch", "x")) else f"{word}s"
    return word, plural, f"{stem}ed", f"{stem}ing"
