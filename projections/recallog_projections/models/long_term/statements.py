"""Statements: the value that a fact or lesson gives to a subject and predicate, so that a later value can supersede it.

The tables are of English and Chinese. If no pattern matches a text, its subject is the text itself, and only
its negation contradicts it. Questions, guesses, several sentences and single events are never corrected by a later
text: two payments are two facts.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from recallog_projections.models.long_term import source_class, texts
from recallog_projections.models.long_term.tables import SaidValue
from recallog_projections.text_cache import cached_if_short

TYPES = frozenset({"fact", "lesson"})
"""The types of entries that are compared."""

# These patterns are compiled when they are first used, which takes milliseconds: every command imports this module.
_QUANTITY = (
    r"\b\d[\d.:]*(?:%| ?(?:kg|km|cm|mm|g|mg|ml|litre|metre|ms|s|min|h|day|week|month|year|euro|dollar|mile"
    r"|[kmgt]i?b|°[cf]|hz|[kmg]hz|w|kwh?|v|times)\b)|(?:(?<=has )|(?<=have ))\d+ [a-z]+"
)
_UNSURE = r"(?i:[?;]|\b(?:if|unless|or|may|might|could|perhaps|maybe|either|respectively)\b|[.!] )"
_NEGATIVE = r"(?i:\b(?:(?:do|does|did) not|not|never|no longer) )"
_CHINESE_QUANTITY = r"\d[\d.:]*(?:%|kg|km|秒|分钟|小时|天|周|个月|年|元|美元|欧元|名|个|岁|次)"
_CHINESE_PAST = "[了过]|已"
_CHINESE_UNSURE = "[?;]|如果|可能|也许|或者?|要是|。."
_CHINESE_NEGATIVE = "并?不再?|还?没有?|尚?未|别"
_INDEFINITE = r"(?i:(?:an?|some|one|every|each|all|no|many|most|few)\b)"
"""A text that begins with one of these is about nothing in particular: two dogs may have two names."""
_DETAIL = r"[,和跟]| (?:with|since|and|as|for|near|at|in|on|but|because|until|from) "
"""The rest may say more about the same value: "lives in Rome" and "lives in Rome with Ann" are both true."""
_HAN = "[\u4e00-\u9fff]"


class Statement(NamedTuple):
    """The statement of a text."""

    key: str
    """Digest of the subject and the predicate."""
    value: str
    """Digest of the value; "" if no pattern matches the text."""
    negative: bool
    """Whether the text says that it is not so."""


@cached_if_short
def statement_of(text: str) -> Statement | None:
    """The statement of a text; None if no recognised later text can correct it."""
    said = texts.normal_text(text).rstrip(".!。 ")
    is_chinese = re.search(_HAN, said) is not None
    unsure, negative = (_CHINESE_UNSURE, _CHINESE_NEGATIVE) if is_chinese else (_UNSURE, _NEGATIVE)
    if "\n" in text.strip() or re.search(unsure, said) or re.match(_INDEFINITE, text):
        return None
    positive = re.sub(negative, "", said, count=1)
    key, value = _parts(positive, is_chinese=is_chinese)
    subject = key if is_chinese else " ".join(map(_stem, key.lower().split()))
    sort = "#" if re.search(r"\d", value) else "A" if value[:1].isupper() else "a"
    return Statement(texts.digest(subject, sort), value and texts.digest(value.lower().strip(" \"'")), positive != said)


def _parts(said: str, *, is_chinese: bool) -> tuple[str, str]:
    """The subject with the predicate, and the value; the whole text and "" if no pattern matches."""
    for pattern in _patterns("chinese_" if is_chinese else ""):
        found = pattern.fullmatch(said)
        if found is not None:
            return f"{found['key']}§", re.split(_DETAIL, found["value"])[0]
    past, quantity = (_CHINESE_PAST, _CHINESE_QUANTITY) if is_chinese else (_past(), _QUANTITY)
    numbers = list(re.finditer(quantity, said, re.IGNORECASE))
    if len(numbers) != 1 or re.search(past, said):
        return said, ""
    before, value, after = said[: numbers[0].start()], numbers[0][0], said[numbers[0].end() :]
    return (said, "") if re.search(r"\d", before + after) else (f"{before}§{after}", value)


@cache
def _patterns(language: str) -> Sequence[re.Pattern[str]]:
    """The patterns of properties with one value at a time; `language` is "" or "chinese_"."""
    from recallog_projections.models.long_term import vocabulary  # few commands need it

    attribute = "|".join(vocabulary.lines(f"{language}attributes"))
    lines = vocabulary.lines(f"{language}statements")
    return [re.compile(line.replace("ATTRIBUTE", attribute), re.IGNORECASE) for line in lines]


@cache
def _past() -> str:
    """A pattern of words for single events, which may happen twice."""
    from recallog_projections.models.long_term import vocabulary

    return rf"(?i:\b(?:{'|'.join(sorted(vocabulary.words('past')))})\b)"


def _stem(word: str) -> str:
    return "have" if word == "has" else word.removesuffix("s")


def find_superseded(said: Sequence[SaidValue]) -> dict[str, SaidValue]:
    """By the id of each value that is past: the first later one that cannot be true with it.

    The values are of one subject and predicate, in the order in which they were said. An entry of a rule before 3
    supersedes none, and no entry supersedes a more trusted one.
    """
    found = {}
    for place, one in enumerate(said):
        by = next((each for each in said[place + 1 :] if _may_supersede(each, one) and disagree(one, each)), None)
        if by is not None:
            found[one.id] = by
    return found


def _may_supersede(later: SaidValue, one: SaidValue) -> bool:
    return later.rule >= texts.NORMALISING and not source_class.is_less_trusted(later.trust, one.trust)


def disagree(one: SaidValue | Statement, other: SaidValue | Statement) -> bool:
    """Whether two values of the same subject and predicate cannot both be true now."""
    if one.negative == other.negative:
        return not one.negative and one.value != other.value
    return one.value == other.value
