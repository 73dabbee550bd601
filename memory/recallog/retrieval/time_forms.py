"""The forms in which questions name times, as patterns over the words of several languages."""

import re
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cache
from pathlib import Path

MONTHS = {
    name: number
    for names in (
        "january february march april may june july august september october november december",
        "jan feb mar apr - jun jul aug sep oct nov dec",
        "- - - - - - - - sept - - -",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "januar februar märz - - juni juli - - oktober - dezember",
        "gennaio febbraio - aprile maggio giugno luglio - settembre ottobre - dicembre",
        "janeiro fevereiro março - maio junho julho - setembro outubro novembro dezembro",
    )
    for number, name in enumerate(names.split(), 1)
    if name != "-"
}
WEEKDAYS = {
    name: number
    for names in (
        "monday tuesday wednesday thursday friday saturday sunday",
        "lunes martes miércoles jueves viernes sábado domingo",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "- - - - - sonnabend -",
        "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日",
        "월요일 화요일 수요일 목요일 금요일 토요일 일요일",
    )
    for number, name in enumerate(names.split())
    if name != "-"
}
WEEKDAYS |= {name: number for number, name in enumerate("一二三四五六日")} | {"天": 6}
WEEKDAYS |= {name: number for names in ("月火水木金土日", "월화수목금토일") for number, name in enumerate(names)}
RELATIVE_YEARS = {"今年": 0, "올해": 0, "去年": 1, "昨年": 1, "작년": 1, "前年": 2}
NUMBERS = {
    name: number
    for names in (
        "one two three four five six seven eight nine ten eleven twelve",
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "un deux trois quatre cinq six sept huit neuf dix onze douze",
        "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "einem - - - - - - - - - - -",
        "una - - - - - - - - - - -",
        "une - - - - - - - - - - -",
        "einer - - - - - - - - - - -",
        "an - - - - - - - - - - -",
        "한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 - -",
    )
    for number, name in enumerate(names.split(), 1)
    if name != "-"
} | {"a couple": 2, "a couple of": 2, "a few": 3, "a": 1}
SEASONS = {
    name: number
    for names in (
        "spring summer autumn winter",
        "- - fall -",
        "primavera verano otoño invierno",
        "printemps été automne hiver",
        "frühling sommer herbst winter",
        "frühjahr - - -",
        "春天 夏天 秋天 冬天",
        "春季 夏季 秋季 冬季",
    )
    for number, name in enumerate(names.split())
    if name != "-"
}
"""The quarters of the year that begin in March, as in the northern hemisphere."""
HAN_DIGITS = {name: number for number, name in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "兩": 2}


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
    text = Path(__file__).with_name("time_words.txt").read_text("utf-8")
    _, *sections = re.split(r"^\[([\w: ]+)\]\n", text, flags=re.MULTILINE)
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        parts[name] = _PART.sub(lambda part: parts[part[1]], text.strip())
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
