"""Replaces times that are relative to when a text was said, such as "last Friday", by dates: a fact is read much
later."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from recallog_schemas.invented_times import is_invented

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}
_COUNT_MAX = 200
"""The largest number of units ago that is taken literally."""

_ENGLISH = re.compile(
    r"(?:(?P<before>\b(?:since|until|by|from|of|on|in|during|before|after|for|about|around) )|\b)"
    r"(?:(?P<day>yesterday|today|tomorrow|last night|tonight)"
    r"|(?P<which>last|this|next) (?P<unit>week|weekend|month|year)"
    r"|last (?P<weekday>(?:mon|tue|wed|thu|fri|sat|sun)(?:days?|sday|s|nesday|nes|rsday|rs|urday)?)"
    r"|(?P<count>\d{1,3}|an?|one|two|three|four|five|six|seven|ten) (?P<counted>day|month|year)s? ago)"
    r"(?![\w'-])",
    re.IGNORECASE,
)
_DAYS = {"yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1}
_CHINESE = re.compile("昨天|今天|明天|前天|后天|去年|今年|明年")
_CHINESE_DAYS = {"前天": -2, "昨天": -1, "今天": 0, "明天": 1, "后天": 2}
_CHINESE_YEARS = {"去年": -1, "今年": 0, "明年": 1}


def write_dates(text: str, at: datetime | None) -> str:
    """`text`, said at `at`, with dates instead of relative times. Unchanged if `at` is None."""
    if at is None or is_invented(at):
        return text
    return _replace_times(_CHINESE, _chinese, _replace_times(_ENGLISH, _english, text, at), at)


def _replace_times(
    pattern: re.Pattern[str], date_of: Callable[[re.Match[str], datetime], str | None], text: str, at: datetime
) -> str:
    def date(found: re.Match[str]) -> str:
        try:
            return date_of(found, at) or found[0]
        except OverflowError:  # before the year 1 or after 9999
            return found[0]

    return pattern.sub(date, text)


def _english(found: re.Match[str], at: datetime) -> str | None:
    before = found["before"] or ""
    preposition, date = "on", ""
    if found["day"]:
        date = _day(at + timedelta(days=_DAYS[found["day"].lower()]))
    elif found["weekday"]:
        back = (at.weekday() - _WEEKDAYS.index(found["weekday"][:3].lower())) % 7 or 7
        date = _day(at - timedelta(days=back))
    elif found["counted"]:
        preposition, date = _ago(found["count"].lower(), found["counted"].lower(), at)
    else:
        which = {"last": -1, "this": 0, "next": 1}[found["which"].lower()]
        preposition, date = _span(which, found["unit"].lower(), at)
    if not date:
        return None
    return f"{before}{date}" if before else f"{preposition} {date}"


def _span(which: int, unit: str, at: datetime) -> tuple[str, str]:
    """The preposition and the date of a week, weekend, month or year."""
    if unit == "year":
        return "in", str(at.year + which)
    if unit == "month":
        return "in", _month(12 * at.year + at.month - 1 + which)
    word = {-1: "before", 0: "of", 1: "after"}[which]
    return "in" if unit == "week" else "on", f"the {unit} {word} {_day(at)}"


def _ago(count: str, unit: str, at: datetime) -> tuple[str, str]:
    number = _NUMBERS.get(count) or int(count)
    if number > _COUNT_MAX:
        return "", ""
    if unit == "day":
        return "on", _day(at - timedelta(days=number))
    return "in", str(at.year - number) if unit == "year" else _month(12 * at.year + at.month - 1 - number)


def _day(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def _month(months: int) -> str:
    return f"{_MONTHS[months % 12]} {months // 12}"


def _chinese(found: re.Match[str], at: datetime) -> str:
    if found[0] in _CHINESE_YEARS:
        return f"{at.year + _CHINESE_YEARS[found[0]]}年"
    day = at + timedelta(days=_CHINESE_DAYS[found[0]])
    return f"{day.year}年{day.month}月{day.day}日"
