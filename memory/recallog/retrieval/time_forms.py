"""The forms in which questions name times, as patterns over the words of several languages."""

import re
from collections.abc import Iterable
from functools import cache

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

DAY_UNITS = frozenset({"day", "days", "día", "días", "jour", "jours", "tag", "tage", "tagen", "天", "日", "일"})
WEEK_UNITS = frozenset(
    {
        "week",
        "weeks",
        "semana",
        "semanas",
        "semaine",
        "semaines",
        "woche",
        "wochen",
        "周",
        "週",
        "星期",
        "礼拜",
        "禮拜",
        "週間",
        "주",
    }
)
MONTH_UNITS = frozenset(
    {
        "month",
        "months",
        "mes",
        "meses",
        "mois",
        "monat",
        "monate",
        "monaten",
        "月",
        "个月",
        "個月",
        "ヶ月",
        "か月",
        "カ月",
        "ヵ月",
        "개월",
        "달",
    }
)
YEAR_UNITS = frozenset({"year", "years", "año", "años", "an", "ans", "jahr", "jahre", "jahren", "年", "년"})


def _any(names: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_MONTH = _any(MONTHS)
_WEEKDAY = _any(name for name in WEEKDAYS if name[0] < "\u3000")
_UNSPACED_WEEKDAY = _any(name for name in WEEKDAYS if name[0] >= "\u3000" and len(name) > 1)
_SEASON = _any(name for name in SEASONS if name[0] < "\u3000")
_UNSPACED_SEASON = _any(name for name in SEASONS if name[0] >= "\u3000")
TO = r"(?:and|to|through|until|till|y|a|al|hasta|et|à|au|jusqu'[àe]n?|und|bis|e)"
NUMBER = rf"\d{{1,3}}|{_any(NUMBERS)}"
_HAN_NUMBER = r"\d{1,3}|[一二两兩三四五六七八九十]{1,3}"
_UNIT = _any(name for name in DAY_UNITS | WEEK_UNITS | MONTH_UNITS | YEAR_UNITS if name[0] < "\u3000")
_HAN_UNIT = r"天|日|周|週間?|个?星期|個?星期|个?礼拜|個?禮拜|[个個ヶかカヵ]月|年"
_YEAR = r"(?:19|20)\d\d"

_HAN_YEAR = rf"""
    (?: (?P<year>{_YEAR}|二[零〇一二三四五六七八九]{{3}})\s*[年년]\s*
    | (?P<relative_year>{_any(RELATIVE_YEARS)})\s*[的の]? )?
    """
_HAN_MONTH = r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,2})\s*[月월]"

_CONVERSATION = r"(?:conversation|chat|talk|session|discussion)"
_WE_TALKED = r"(?:we\s+(?:ever\s+)?(?:talked|spoke|chatted|met)|i\s+(?:talked|spoke|wrote|came)\s+to\s+you)"
_FRENCH_CONVERSATION = r"(?:conversation|discussion|session|fois\s+qu(?:e\s+nous\s+avons|'on\s+a)\s+(?:parlé|discuté))"
_GERMAN_CONVERSATION = r"(?:gespräch|unterhaltung|sitzung|mal,?\s+(?:als|dass)\s+wir)"
_CHINESE_CONVERSATION = (
    r"的?(?:(?:[和跟]?我们|[和跟]?我們|咱们|[和跟][我你])的?)?(?:聊|对话|對話|交谈|交談|谈话|談話|说话|說話|见面|見面)"
)

# In order: an expression that is part of an earlier one is not read again.
_PATTERNS = [
    (
        "first",
        rf"""
        \b(?:very\s+)?first\s+(?:ever\s+)?(?:{_CONVERSATION}|message|time\s+{_WE_TALKED})\b
        | \bwe\s+first\s+(?:talked|spoke|chatted|met|started\s+(?:talking|chatting))\b
        | (?:第一次|最初){_CHINESE_CONVERSATION} | 第一次来?找你 | 刚认识 | 剛認識
        | 最初の(?:会話|チャット) | 初めて(?:話|会) | 첫\s*(?:번째\s*)?대화 | 처음\s*(?:대화|이야기)
        | \bprimera\s+(?:conversación|charla|sesión|vez\s+que\s+hablamos)\b
        | \bpremière\s+{_FRENCH_CONVERSATION} | \berste[nrs]?\s+{_GERMAN_CONVERSATION}
        """,
    ),
    (
        "last",
        rf"""
        \b(?:last|latest|most\s+recent|previous)\s+(?:{_CONVERSATION}|time\s+(?:that\s+)?{_WE_TALKED})\b
        | \bwe\s+last\s+(?:talked|spoke|chatted|met)\b
        | (?:上一?次|最后一次|最後一次|最近一次){_CHINESE_CONVERSATION}
        | 前回の?(?:会話|チャット|話) | 最後に話 | 지난번?\s*(?:대화|이야기) | 마지막\s*대화
        | \búltima\s+(?:conversación|charla|sesión|vez\s+que\s+hablamos)\b
        | \bdernière\s+{_FRENCH_CONVERSATION} | \bletzte[nrs]?\s+{_GERMAN_CONVERSATION}
        | (?<!\bthe\s)\blast\s+time(?=\s*(?:[?.!,]|$)) | \búltima\s+vez(?=\s*(?:[?.!,]|$))
        | \bdernière\s+fois(?=\s*(?:[?.!,]|$)) | \b(?:beim\s+letzten\s+mal\b|letzte[ns]\s+mal(?=\s*(?:[?.!,]|$)))
        | 上一?次(?=[我你您]?(?:们|們)?(?:说|說|提|推荐|推薦|告诉|告訴|讲|講))
        """,
    ),
    (
        "current",
        rf"""
        \bthis\s+{_CONVERSATION}\b | \besta\s+(?:conversación|charla|sesión)\b
        | \bcette\s+(?:conversation|discussion|session)\b | \bdiese[rms]?\s+(?:gespräch|unterhaltung|sitzung)\b
        | (?:这|這|本)次?(?:对话|對話|聊天|谈话|談話) | (?:この|今回の)(?:会話|チャット)
        """,
    ),
    ("numeric", rf"(?<!\d)(?P<year>{_YEAR})[-/.](?P<month>\d{{1,2}})[-/.](?P<day>\d{{1,2}})(?!\d)"),
    ("numeric", rf"(?<!\d)(?P<day>\d{{1,2}})(?P<mark>[-/.])(?P<month>\d{{1,2}})(?P=mark)(?P<year>{_YEAR})(?!\d)"),
    ("day", rf"{_HAN_YEAR}{_HAN_MONTH}\s*(?:份的?)?(?P<day>\d{{1,2}}|[一二三四五六七八九十]{{1,3}})\s*[日号號일]?"),
    (
        "day",
        rf"""
        \b(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º)?\.?\s*(?:(?:of|de|del)\s+)?(?P<month>{_MONTH})\b\.?
        (?:\s*,?\s*(?:(?:of|de|del)\s+)?(?P<year>{_YEAR})\b)?
        """,
    ),
    ("day", rf"\b(?P<month>{_MONTH})\b\.?\s*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:\s*,?\s*(?P<year>{_YEAR})\b)?"),
    (
        "months",
        rf"""
        \b(?:between|from|entre|de|zwischen|von)\s+(?P<first>{_MONTH})\s+{TO}\s+(?P<month>{_MONTH})\b
        (?:\s*,?\s*(?:(?:of|de|del)\s+)?(?P<year>{_YEAR})\b)?
        """,
    ),
    (
        "season",
        rf"""
        \b(?:(?:in|during|over|this|since|before|after|by|until)\s+(?:the\s+)?|(?P<last>(?:last|letzte[nrs]?)\s+)
        |en\s+|au\s+|im\s+|diese[nrs]?\s+|cet(?:te)?\s+|este\s+|esta\s+|en\s+el\s+|en\s+la\s+|l')
        (?P<season>{_SEASON})\b(?P<latin_last>\s+(?:pasad[oa]|derni(?:er|ère)))?
        (?:\s*,?\s*(?:(?:of|de|del)\s+)?(?P<year>{_YEAR})\b)?
        | \b(?P<dated_season>{_SEASON})\s+(?:(?:of|de|del)\s+)?(?P<dated_year>{_YEAR})\b
        | (?:(?P<relative_year>{_any(RELATIVE_YEARS)})\s*[的の]?\s*)?(?P<unspaced_season>{_UNSPACED_SEASON})
        """,
    ),
    ("month", rf"\b(?P<month>{_MONTH})\b\.?\s*,?\s*(?:(?:of|de|del)\s+)?(?P<year>{_YEAR})\b"),
    ("month", _HAN_YEAR + _HAN_MONTH),
    (
        "month",
        rf"""
        \b(?:in|during|since|before|after|until|till|by|of|last|this|early|late|mid|en|de|au|pendant|depuis|avant|après
        |desde|hasta|im|seit|vor|nach|bis|ab|anfang|mitte|ende|em|nel)\s+(?P<month>{_MONTH})\b
        | \b(?:d'|jusqu'en\s+|antes\s+de\s+|después\s+de\s+)(?P<latin_month>{_MONTH})\b
        """,
    ),
    ("year", rf"(?P<year>{_YEAR})\s*[年년]"),
    (
        "year",
        rf"""
        \b(?:in|during|since|before|after|until|of|en|depuis|avant|après|desde|hasta|im\s+jahr|seit|vor|nach|bis|em|nel
        |année|año)\s+(?P<year>{_YEAR})\b(?![-/.]\d)
        """,
    ),
    ("ago", rf"\b(?P<number>{NUMBER})\s+(?P<unit>{_UNIT})\s+ago\b"),
    ("ago", rf"\b(?:hace|il\s+y\s+a|vor)\s+(?P<number>{NUMBER})\s+(?P<unit>{_UNIT})\b"),
    ("ago", rf"(?P<number>{_HAN_NUMBER})\s*(?P<unit>{_HAN_UNIT})[之以]?前"),
    ("ago", r"(?P<number>\d{1,3}|한|두|세|네|다섯)\s*(?P<unit>일|주|개월|달|년)\s*전"),
    (
        "past",
        rf"""
        \b(?:last|past|previous|últimos|últimas|derniers|dernières|letzten)\s+(?P<number>{NUMBER})\s+(?P<unit>{_UNIT})\b
        | (?:最近|过去|過去|近)的?(?P<han_number>{_HAN_NUMBER})\s*(?P<han_unit>{_HAN_UNIT})
        """,
    ),
    (
        "weekday_of_last_week",
        r"""
        上个?(?:周|週|星期|礼拜|禮拜)(?P<chinese>[一二三四五六日天]) | 先週の?(?P<japanese>[月火水木金土日])曜日?
        | 지난주\s*(?P<korean>[월화수목금토일])요일
        """,
    ),
    (
        "weekday",
        rf"""
        (?<!\bevery\s)(?<!\beach\s)(?<!\bnext\s)(?<!\bcada\s)(?<!\bjeden\s)(?<!\bchaque\s)\b(?P<weekday>{_WEEKDAY})\b
        | (?<!毎週)(?<!来週)(?P<unspaced>{_UNSPACED_WEEKDAY})
        | (?<![每下个])(?:周|週|星期|礼拜|禮拜)(?P<chinese>[一二三四五六日天])
        """,
    ),
    (
        "days_ago:2",
        r"\bday\s+before\s+yesterday\b | 前天 | 一昨日 | おととい | 그저께 | \b(?:anteayer|avant-hier|vorgestern)\b",
    ),
    (
        "days_ago:1",
        r"""
        \byesterday\b | \blast\s+night\b | 昨[天日晚夜] | きのう | 어제 | \b(?:ayer|anoche|gestern)\b
        | (?<=\bfait\s)hier\b | \bhier\s*[?.]
        """,  # German "hier" is another word
    ),
    (
        "days_ago:0",
        r"""
        \b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b | 今[天日晚] | 오늘
        | \b(?:hoy|aujourd'hui|heute)\b
        """,
    ),
    (
        "weekend:1",
        r"""
        \b(?:last|this\s+past)\s+weekend\b | 上周末 | 上週末 | 先週末 | 지난\s*주말 | \bfin\s+de\s+semana\s+pasado\b
        | \bweek-end\s+dernier\b | \bletzte[sn]\s+wochenende\b
        """,
    ),
    (
        "weekend:0",
        r"""
        \bthis\s+weekend\b | [这這本]个?[周週]末 | 今週末 | \beste\s+fin\s+de\s+semana\b | \bce\s+week-end\b
        | \bdieses\s+wochenende\b
        """,
    ),
    (
        "week:1",
        r"""
        \blast\s+week\b | 上个?(?:周|週|星期|礼拜|禮拜) | 先週 | 지난주 | \bsemana\s+pasada\b | \bsemaine\s+dernière\b
        | \bletzte[nr]?\s+woche\b
        """,
    ),
    (
        "week:0",
        r"""
        \bthis\s+week\b | [这這本]个?(?:周|週|星期|礼拜|禮拜) | 今週 | 이번\s*주 | \besta\s+semana\b
        | \bcette\s+semaine\b | \bdiese[rn]?\s+woche\b
        """,
    ),
    (
        "months_ago:1",
        r"""
        \blast\s+month\b | 上[个個]?月 | 先月 | 지난달 | \bmes\s+pasado\b | \bmois\s+dernier\b
        | \bletzte[nr]?\s+monat\b
        """,
    ),
    (
        "months_ago:0",
        r"""
        \bthis\s+month\b | [这這本][个個]?月 | 今月 | 이번\s*달 | \beste\s+mes\b | \bce\s+mois\b
        | \bdiese[nr]?\s+monat\b
        """,
    ),
    ("years_ago:2", r"前年 | 一昨年 | 재작년"),
    (
        "years_ago:1",
        r"""
        \blast\s+year\b | 去年 | 昨年 | 작년 | \baño\s+pasado\b | \ban(?:née)?\s+derni(?:er|ère)\b
        | \bletzte[sn]?\s+jahr\b
        """,
    ),
    (
        "years_ago:0",
        r"\bthis\s+year\b | 今年 | 올해 | \beste\s+año\b | \bcette\s+année\b | \bdieses\s+jahr\b",
    ),
    (
        "newest",
        rf"""
        \b(?:recent|recently|lately|latest|most\s+recent|newest)\b | \bthe\s+last\s+(?:time|thing)\b
        | \b(?:when|what|where|who|which)\b[^?]{{0,60}}?(?<!at\s)\blast\b
          (?!\s+(?:name|resort|minute|long|\d|{_WEEKDAY}))
        | \b(?:recientemente|últimamente|reciente|por\s+última\s+vez|última\s+vez|lo\s+último)\b
        | \b(?:récemment|dernièrement|récente?|dernière\s+fois|en\s+dernier)\b
        | \b(?:zuletzt|kürzlich|neulich|neueste[nrs]?|letzte[ns]?\s+mal)\b
        | 最近 | 最新 | 上一?次 | 最后一次 | 最後一次 | 最後に | この前 | 최근 | 마지막으로
        """,
    ),
]

_WORDS = re.compile(r"[^\W\d_]+")
_OTHER_SCRIPTS = re.compile(r"[\d\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TRIGGERS = frozenset(
    """
    first last latest recent recently lately newest previous past ago yesterday today tonight this weekend
    since before after until till prior during early late mid
    primera última último últimos últimas pasado pasada hace ayer anteayer anoche hoy este esta reciente recientemente
    últimamente desde antes después tras hasta durante
    première dernière derniers dernières dernier il hier aujourd cette cet ce récemment récent récente dernièrement
    depuis avant après jusqu pendant
    erste ersten erster erstes letzte letzten letzter letztes vor gestern vorgestern heute diese dieser diesen dieses
    zuletzt kürzlich neulich neueste neuesten neuester neuestes seit seitdem bevor nach nachdem bis während
    """.split()  # noqa: SIM905 - a page of quoted words is harder to read
) | {name for names in (MONTHS, WEEKDAYS, SEASONS) for name in names}


def may_name_a_time(question: str) -> bool:
    """Whether a question in lower case has a figure or a word that some form needs. Most questions have none."""
    return not _TRIGGERS.isdisjoint(_WORDS.findall(question)) or _OTHER_SCRIPTS.search(question) is not None


@cache
def forms() -> list[tuple[str, re.Pattern[str]]]:
    """The name of each form and its pattern, in the order in which they are read."""
    return [(name, re.compile(pattern, re.IGNORECASE | re.VERBOSE)) for name, pattern in _PATTERNS]
