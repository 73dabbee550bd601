"""Times that a question names: dates, times relative to its now, and "our first conversation".

`find` reads expressions from a question, and `Expression.days` resolves one to days in UTC. A date without a year is
its newest occurrence that is not after now.
"""

import calendar
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice
from typing import Literal

from recallog.retrieval import time_forms

Days = tuple[date, date]
"""The first day and the last."""

Conversation = Literal["first", "last", "current"]

_ALTERNATIVE = re.compile("^(?:han|latin|dated|unspaced)_")
"""The prefix of a group whose part occurs in several alternatives of a pattern."""
_RECENT = timedelta(days=30)
"""How long "recently" goes back."""
_LEAP_CYCLE = 9
"""The number of years in which each day of the calendar occurs. It includes the gap in leap years around 1900."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A time that a question names."""

    form: str
    """The name of its form in `time_forms`, with a number after a colon if the form has one."""
    start: int
    """Where it begins in the question, in characters."""
    end: int
    words: Mapping[str, str] = field(default_factory=dict)
    """Its parts by the names that the pattern gives them, such as "month"."""

    @property
    def conversation(self) -> Conversation | None:
        """Which conversation it names: "our first conversation", "the last time we talked", "this chat"."""
        return self.form if self.form in ("first", "last", "current") else None  # type: ignore[return-value]

    @property
    def is_newest(self) -> bool:
        """Whether the newest of the events is meant: "recently", "when did I last …"."""
        return self.form in ("recent", "newest")

    @property
    def recurs(self) -> bool:
        """Whether it names one of many days, months or seasons, and the nearest one is meant."""
        return self.form in ("day", "month", "months", "season", "weekday")

    def days(self, now: date | None) -> tuple[Days, ...]:
        """The days that it means, one range for each reading. Empty if they depend on `now` and `now` is None."""
        form, _, number = self.form.partition(":")
        try:
            return tuple(_RESOLVERS[form](self.words, int(number or 0), now))
        except (ValueError, OverflowError):
            return ()  # there is no such day, such as 31 June


def find(question: str) -> list[Expression]:
    """The expressions of a question in order. If two overlap, the more specific one counts."""
    narrow = fold_case(question)
    found: list[Expression] = []
    if not time_forms.may_name_a_time(narrow):
        return []
    for form, pattern in time_forms.forms():
        for match in pattern.finditer(narrow):
            if all(match.end() <= each.start or each.end <= match.start() for each in found):
                words = {_ALTERNATIVE.sub("", name): word for name, word in match.groupdict().items() if word}
                found.append(Expression(form, match.start(), match.end(), words))
    return sorted(found, key=lambda each: each.start)


def in_figures(question: str) -> list[Expression]:
    """The dates of a question that are written in figures, such as "17.01.2024", in order."""
    return [each for each in find(question) if each.form == "numeric" and each.days(None)]


def fold_case(question: str) -> str:
    """The question in lower case, with narrow forms in place of wide characters, converted character by character."""
    narrow = (unicodedata.normalize("NFKC", each).lower() for each in question)
    return "".join(new if len(new) == 1 else old for old, new in zip(question, narrow, strict=True))


def _no_days(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    return ()


def _numeric(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """Day and month in figures. "04/05/2023" has two readings; with points the day comes first."""
    year, first, second = int(words["year"]), int(words["day"]), int(words["month"])
    readings = {(first, second)} if words.get("mark") != "/" else {(first, second), (second, first)}
    for day, month in sorted(readings):
        if month <= 12:
            yield _one(date(year, month, day))


def _day(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    month, day, year = _month_number(words["month"]), _integer(words["day"]), _year_of(words, now)
    if year is not None:
        yield _one(date(year, month, day))
    elif now is not None:
        years = (now.year - back for back in range(_LEAP_CYCLE))
        existing = (date(year, month, day) for year in years if day <= calendar.monthrange(year, month)[1])
        yield from map(_one, islice((each for each in existing if each <= now), 1))


def _month(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    month, year = _month_number(words["month"]), _year_of(words, now)
    if year is None and now is not None:
        year = now.year if month <= now.month else now.year - 1
    if year is not None:
        yield _whole_month(year, month)


def _months(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """From the first day of a month to the last day of a later one."""
    for _, last in _month(words, number, now):
        first = _month_number(words["first"])
        yield date(last.year - (first > last.month), first, 1), last


def _days(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """From a day to a later one of the same month."""
    for _, last in _day(words, number, now):
        if (first := last.replace(day=_integer(words["first"]))) < last:
            yield first, last


def _season(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """The three months of a season: of the named year, or else the newest that have begun. "last" means the newest that
    are over."""
    begins = 3 + 3 * time_forms.SEASONS[words["season"]]
    year = _year_of(words, now)
    if year is not None:
        yield _three_months(year, begins)
    elif now is not None:
        newest_first = (_three_months(now.year - back, begins) for back in range(3))
        past = ((first, last) for first, last in newest_first if (last if "last" in words else first) <= now)
        yield from islice(past, 1)


def _three_months(year: int, month: int) -> Days:
    after = date(year + (month > 9), (month + 2) % 12 + 1, 1)
    return date(year, month, 1), after - timedelta(days=1)


def _year(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    yield _whole_year(int(words["year"]))


def _years(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """From a year to the end of one that is not earlier."""
    if (first := int(words["first"])) <= (last := int(words["year"])):
        yield date(first, 1, 1), date(last, 12, 31)


def _ago(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """The day, week, month or year that many units ago."""
    count, unit = _integer(words["number"]), words["unit"]
    if now is None:
        return
    if unit in time_forms.units("DAY"):
        yield _one(now - timedelta(days=count))
    elif unit in time_forms.units("WEEK"):
        middle = now - timedelta(weeks=count)
        yield middle - timedelta(days=3), middle + timedelta(days=3)
    elif unit in time_forms.units("MONTH"):
        yield _months_ago(words, count, now)[0]
    else:
        yield _whole_year(now.year - count)


def _past(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """From that many units ago until now."""
    if now is not None:
        for first, _ in _ago(words, number, now):
            yield first, now


def _recent(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    if now is not None:
        yield now - _RECENT, now


def _weekday(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """The newest such weekday before today."""
    if now is not None:
        yield _one(now - timedelta(days=(now.weekday() - _weekday_number(words) - 1) % 7 + 1))


def _weekday_of_week(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    if now is not None:
        yield _one(_monday(now) + timedelta(days=_weekday_number(words) - 7 * number))


def _days_ago(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    if now is not None:
        yield _one(now - timedelta(days=number))


def _weekend(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    """The Saturday and Sunday of this week, or of the week that many weeks ago."""
    if now is not None:
        saturday = _monday(now) + timedelta(days=5 - 7 * number)
        yield saturday, saturday + timedelta(days=1)


def _week(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    if now is not None:
        monday = _monday(now) - timedelta(weeks=number)
        yield monday, monday + timedelta(days=6)


def _months_ago(words: Mapping[str, str], number: int, now: date | None) -> list[Days]:
    if now is None:
        return []
    year, month = divmod(12 * now.year + now.month - 1 - number, 12)
    return [_whole_month(year, month + 1)]


def _years_ago(words: Mapping[str, str], number: int, now: date | None) -> Iterable[Days]:
    if now is not None:
        yield _whole_year(now.year - number)


_RESOLVERS: Mapping[str, Callable[[Mapping[str, str], int, date | None], Iterable[Days]]] = {
    "first": _no_days,
    "last": _no_days,
    "current": _no_days,
    "newest": _no_days,
    "recent": _recent,
    "numeric": _numeric,
    "days": _days,
    "day": _day,
    "month": _month,
    "months": _months,
    "season": _season,
    "years": _years,
    "year": _year,
    "ago": _ago,
    "past": _past,
    "weekday": _weekday,
    "weekday_of_week": _weekday_of_week,
    "days_ago": _days_ago,
    "weekend": _weekend,
    "week": _week,
    "months_ago": _months_ago,
    "years_ago": _years_ago,
}


def _one(day: date) -> Days:
    return day, day


def _whole_month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _whole_year(year: int) -> Days:
    return date(year, 1, 1), date(year, 12, 31)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _month_number(word: str) -> int:
    month = time_forms.MONTHS.get(word)
    return _integer(word) if month is None else month


def _weekday_number(words: Mapping[str, str]) -> int:
    (word,) = words.values()
    return time_forms.WEEKDAYS[word]


def _year_of(words: Mapping[str, str], now: date | None) -> int | None:
    if "year" in words:
        return _integer(words["year"])
    relative = words.get("relative_year")
    return now.year - time_forms.RELATIVE_YEARS[relative] if relative is not None and now is not None else None


def _integer(word: str) -> int:
    """A number in figures or as a word; raises `ValueError` for other words."""
    if word.isascii() and word.isdigit():
        return int(word)
    known = time_forms.NUMBERS.get(re.sub(r"\s+", " ", word))
    if known is not None:
        return known
    digits = [time_forms.HAN_DIGITS.get(each) for each in word]
    if word and None not in digits:
        return int("".join(map(str, digits)))
    tens, ten, ones = word.partition("十")
    if not ten:
        raise ValueError(f"{word!r} is not a number")
    return 10 * time_forms.HAN_DIGITS.get(tens, 1) + time_forms.HAN_DIGITS.get(ones, 0)
