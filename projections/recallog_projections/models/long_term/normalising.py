"""Texts of English and Chinese with one form for each number, date, time, quantity and contraction, without articles.

`normalise` belongs to rule 3 (`texts`): a text that it changes is compared in this form. Its results never change;
another way to normalise is another rule. An ambiguous form, such as 03/04/2024, stays as it is.
"""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache

from recallog_projections.models.long_term import vocabulary

_CHARS_MAX = 1_000
"""A longer text is not a single statement, and costs time."""
HAN = re.compile("[\u4e00-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER = r"\d+(?:\.\d+)?"
_JOINED = r"(?:[kKMGT]i?[Bb]|°[CF]|[kMG]?Hz|[kM]?Wh?|m?Ah?|V|[ckm]?m2)"
"""Units that are written with and without a space after the number, and whose capitals count."""

_Replacement = str | Callable[[re.Match[str]], str]
_Rule = tuple[re.Pattern[str], _Replacement, frozenset[str]]
"""A pattern, its replacement, and words and signs of which a matching text has at least one; none: unknown."""
_DIGIT_SIGN = "#"


def normalise(text: str) -> str:
    """`text` in the form that rule 3 compares; `text` has single spaces, and one form for each character."""
    if len(text) > _CHARS_MAX:
        return text
    if KANA.search(text):
        return _GROUPED.sub("", text)
    said = set(re.findall(r"\w+|[^\w\s]", text.lower()))
    if HAN.search(text):
        rules = _chinese_rules()
    elif (said & vocabulary.words("english") or text.isascii()) and not said & vocabulary.words("not_english"):
        rules = _english_rules()
    else:
        # In other languages a comma may be decimal, and "a" another word.
        text = re.sub(r"(?<=\d) ?(?:€|[Ee]uros?\b|EUR\b)", " euro", text)
        return re.sub(rf"(?<=\d) (?=(?:{_JOINED}|kg|km|cm|mm|ml|mg|ms|h|%)(?![\w/]))", "", text)
    if re.search(r"\d", text) or said & (vocabulary.words("numbers") | {"half"}):
        said.add(_DIGIT_SIGN)
    for pattern, replacement, needed in rules:
        if not needed or said & needed:
            text = pattern.sub(replacement, text)
    return text


# English

_POWERS = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_ARTICLE = (
    r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bnot )(?<![\w'-])(?:[Tt]he|an?|(?<!.)An?) "
    r"(?!few|little|lot|bit|number|couple|hundred|thousand|million|day|week|month|year|hour)(\w)"
)
"""After "is" an article counts: "She is a doctor" and "She is the doctor" are two facts."""


@cache
def _english_rules() -> Sequence[_Rule]:
    ones, tens = (line.replace(" ", "|") for line in vocabulary.lines("numbers"))
    month = "(?P<month>" + "|".join(f"{name}|{name[:3]}\\.?" for name in _months()) + "|sept\\.?)"
    day, year = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>[12]\d{3})"
    weekday = r"(?:\b(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rs|rsday|urday)?\.?,? )?"
    numbers = " ".join(vocabulary.words("numbers"))
    months = " ".join([*_months(), *(name[:3] for name in _months()), "sept"])
    plain = (line.split(" => ") for line in vocabulary.lines("english_forms"))
    rules: list[tuple[str, _Replacement, str]] = [
        (r"\b(ca|wo|sha|\w+)n't\b", _write_negation, "'"),
        (r"(?<![\d.,])(?:\d{1,2}(?:,\d{3})+|\d{3}(?:,\d{3})*,000)(?![\d,])", _remove_grouping, ","),
        (rf"\b(?:({tens})(?:[ -]({ones}))?|({ones}))\b( and a half\b)?", _write_number, numbers),
        *[(rf"\b({_NUMBER}) ({'|'.join(_POWERS)})\b", _write_power, " ".join(_POWERS))] * 2,
        *((pattern, becomes.strip('"'), needed) for pattern, becomes, needed in plain),
        (rf"{weekday}\b{day} (?:of )?{month}(?:,? {year})?\b", _write_date, months),
        (rf"{weekday}\b{month} {day}(?:,? {year})?\b(?![:.,]?\d)", _write_date, months),
        (rf"\b{month} {year}\b", _write_date, months),
        (r"\b(\d{1,2})(?::(\d\d))? ?([ap])\.?m\b\.?", lambda at: _time(at, at[2], at[3] in "pP"), _DIGIT_SIGN),
        (rf"(?<=\d) ?({'|'.join(sorted(_units(), key=len, reverse=True))})(?![\w/²])", _write_unit, _DIGIT_SIGN),
        (rf"(?<=\d) (?=(?-i:{_JOINED})(?![\w/]))", "", _DIGIT_SIGN),
        (f"(?-i:{_ARTICLE})", _without_article, "the a an"),
    ]
    return [(re.compile(each, re.IGNORECASE), becomes, frozenset(needed.split())) for each, becomes, needed in rules]


def _months() -> Sequence[str]:
    return vocabulary.lines("months")[0].split()


@cache
def _units() -> dict[str, str]:
    return {unit: line.split()[0] for line in vocabulary.lines("units") for unit in line.split()}


def _without_article(found: re.Match[str]) -> str:
    return found[1].upper() if found[0][0].isupper() else found[1]


def _write_negation(found: re.Match[str]) -> str:
    return f"{ {'ca': 'can', 'wo': 'will', 'sha': 'shall'}.get(found[1].lower(), found[1]) } not"


def _remove_grouping(found: re.Match[str]) -> str:
    return found[0].replace(",", "")


def _write_number(found: re.Match[str]) -> str:
    """A number in words as digits; the words, if they are not a number."""
    ones, tens = (line.split() for line in vocabulary.lines("numbers"))
    ten, one, alone, half = found.groups()
    number = 20 + 10 * tens.index(ten.lower()) if ten else 0
    digit = ones.index((one or alone).lower()) + 1 if one or alone else 0
    return found[0] if ten and digit > 9 else f"{number + digit}{'.5' if half else ''}"


def _write_power(found: re.Match[str]) -> str:
    return _plain(Decimal(found[1]) * _POWERS[found[2].lower()])


def _plain(number: Decimal) -> str:
    return f"{number:f}".rstrip("0").rstrip(".") if number % 1 else f"{number:.0f}"


def _write_date(found: re.Match[str]) -> str:
    """A date as ISO 8601 has it. "may" and "march" without a capital may be verbs."""
    parts = found.groupdict()
    month, year, day, weekday = parts["month"], parts.get("year"), parts.get("day"), parts.get("weekday")
    if (month.islower() and year is None) or not 0 < int(day or 1) <= 31:
        return found[0]
    number = 1 + next(index for index, name in enumerate(_months()) if name.startswith(month[:3].lower()))
    date = f"{year or '-'}-{number:02}" + (f"-{int(day):02}" if day else "")
    return f"{weekday.lower()} {date}" if weekday else date


def _time(found: re.Match[str], minutes: str | None, is_late: bool) -> str:
    """The time of day of a time on the 12-hour clock, as `15:30`."""
    hour = int(found[1])
    return f"{hour % 12 + 12 * is_late:02}:{minutes or '00'}" if 0 < hour <= 12 else found[0]


def _write_unit(found: re.Match[str]) -> str:
    """The unit; as written, if its capitals may name another unit."""
    unit = _units().get(found[1]) or (_units().get(found[1].lower()) if len(found[1]) > 3 else None)
    return found[0] if unit is None else unit if unit == "%" else f" {unit}"


# Chinese

_DIGITS = {char: number for number, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_DIGIT = "[一二两三四五六七八九]"
_NUMERAL = "[〇零一二两三四五六七八九十百千万]"
_UP_TO_99 = re.compile(f"({_DIGIT})|({_DIGIT}?)十({_DIGIT}?)")


@cache
def _chinese_rules() -> Sequence[_Rule]:
    measures = "|".join(vocabulary.lines("measures"))
    rules: list[tuple[str, _Replacement]] = [
        (r"(?<=\d) (?=[\u4e00-\u9fff])|(?<=[\u4e00-\u9fff]) (?=\d)", ""),
        (f"百分之({_NUMERAL}+|{_NUMBER})", lambda found: f"{_value_of(found[1])}%"),
        (rf"({_NUMBER})万", lambda found: _plain(Decimal(found[1]) * 10_000)),
        (f"(?<!{_NUMERAL})({_NUMERAL}+)(?={measures})", lambda found: _value_of(found[1])),
        (_GROUPED.pattern, ""),
        (r"(?:(\d{4})年)?(\d{1,2})月(\d{1,2})[日号]", _chinese_date),
        (r"(?:上午|早上|凌晨|(下午|晚上))(\d{1,2})(?:点(半|)|:(\d\d))(?![\d一-九])", _chinese_time),
        (r"(?<=\d) ?(?:公斤|千克|kg)", "kg"),
        (r"(?<=\d) ?(?:公里|千米|km)", "km"),
        ("、", ","),
    ]
    return [(re.compile(pattern), replacement, frozenset()) for pattern, replacement in rules]


def _chinese_date(found: re.Match[str]) -> str:
    return f"{found[1] or '-'}-{int(found[2]):02}-{int(found[3]):02}"


def _chinese_time(found: re.Match[str]) -> str:
    return f"{int(found[2]) % 12 + 12 * (found[1] is not None):02}:{found[4] or ('30' if found[3] else '00')}"


def _value_of(numeral: str) -> str:
    """The number up to 99, or the year, of a numeral; else the numeral, such as "两三"."""
    if len(numeral) >= 4 and all(char in _DIGITS for char in numeral):
        return "".join(str(_DIGITS[char]) for char in numeral)
    found = _UP_TO_99.fullmatch(numeral)
    if found is None:
        return numeral
    alone, tens, ones = found.groups()
    return str(_DIGITS[alone] if alone else 10 * _DIGITS[tens or "一"] + _DIGITS[ones or "零"])
