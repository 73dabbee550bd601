"""Times that questions name, resolved on Wednesday, 10 May 2023."""

from datetime import date

import pytest

from recallog.retrieval import dates
from recallog.retrieval.query import query_terms

TODAY = date(2023, 5, 10)

DAYS: list[tuple[str, str]] = [
    ("What did we do on April 29th?", "2023-04-29"),
    ("What did we do on 29 April, 2022?", "2022-04-29"),
    ("What happened on the 17th of January, 2024?", "2024-01-17"),
    ("What did I say on 29 Dec?", "2022-12-29"),
    ("Where was Ada on 29/04/2023?", "2023-04-29"),
    ("Where was Ada on 04/05/2023?", "2023-05-04 2023-04-05"),
    ("Where was Ada on 21.01.2024?", "2024-01-21"),
    ("Where was Ada on 2024-01-21?", "2024-01-21"),
    ("What did I buy in March?", "2023-03-01..2023-03-31"),
    ("What did I buy in June?", "2022-06-01..2022-06-30"),
    ("What did I buy in June 2021?", "2021-06-01..2021-06-30"),
    ("What did I buy in 2022?", "2022-01-01..2022-12-31"),
    ("What did I say yesterday?", "2023-05-09"),
    ("What did I say the day before yesterday?", "2023-05-08"),
    ("What did I say this morning?", "2023-05-10"),
    ("What did I say last Tuesday?", "2023-05-09"),
    ("What did I say on Wednesday?", "2023-05-03"),
    ("What did I say last week?", "2023-05-01..2023-05-07"),
    ("What did I say the week before last?", "2023-04-24..2023-04-30"),
    ("What did I say the month before last?", "2023-03-01..2023-03-31"),
    ("What did I say the year before last?", "2021-01-01..2021-12-31"),
    ("What did I do last weekend?", "2023-05-06..2023-05-07"),
    ("What did I say last month?", "2023-04-01..2023-04-30"),
    ("What did I say last year?", "2022-01-01..2022-12-31"),
    ("What did I say two weeks ago?", "2023-04-23..2023-04-29"),
    ("What did I say a couple of days ago?", "2023-05-08"),
    ("What did I say 3 months ago?", "2023-02-01..2023-02-28"),
    ("What did I say in the past 3 days?", "2023-05-07..2023-05-10"),
    ("When was the 29th of February?", "2020-02-29"),
    ("What did we do last summer?", "2022-06-01..2022-08-31"),
    ("What did we do this spring?", "2023-03-01..2023-05-31"),
    ("What did we do in winter 2021?", "2021-12-01..2022-02-28"),
    ("What did we do in the summer?", "2022-06-01..2022-08-31"),
    ("What do we do this weekend?", "2023-05-13..2023-05-14"),
    ("What happened between March and May?", "2023-03-01..2023-05-31"),
    ("What happened from November to February 2022?", "2021-11-01..2022-02-28"),
    ("¿Qué hicimos el verano pasado, en el verano de 2021?", "2021-06-01..2021-08-31"),
    ("Was haben wir letzten Sommer gemacht?", "2022-06-01..2022-08-31"),
    ("Qu'avons-nous fait l'été dernier ?", "2022-06-01..2022-08-31"),
    ("去年夏天我们做了什么？", "2022-06-01..2022-08-31"),
    ("4月27号我说了什么？", "2023-04-27"),
    ("２０２３年４月２７日我说了什么？", "2023-04-27"),
    ("二〇二二年四月二十七号我说了什么？", "2022-04-27"),
    ("去年4月我去了哪里？", "2022-04-01..2022-04-30"),
    ("昨天我说了什么？", "2023-05-09"),
    ("前天我说了什么？", "2023-05-08"),
    ("上周二我说了什么？", "2023-05-02"),
    ("周二我说了什么？", "2023-05-09"),
    ("上个星期我说了什么？", "2023-05-01..2023-05-07"),
    ("上个月我说了什么？", "2023-04-01..2023-04-30"),
    ("上上周我说了什么？", "2023-04-24..2023-04-30"),
    ("上上周五我说了什么？", "2023-04-28"),
    ("上上个月我说了什么？", "2023-03-01..2023-03-31"),
    ("上個週三我說了什麼？", "2023-05-03"),
    ("上個星期我說了什麼？", "2023-05-01..2023-05-07"),
    ("這個星期我說了什麼？", "2023-05-08..2023-05-14"),
    ("上个周末我做了什么？", "2023-05-06..2023-05-07"),
    ("上上周末我做了什么？", "2023-04-29..2023-04-30"),
    ("上上個週末我做了什麼？", "2023-04-29..2023-04-30"),
    ("三天前我说了什么？", "2023-05-07"),
    ("先週の火曜日に何を話しましたか？", "2023-05-02"),
    ("3日前に何を話しましたか？", "2023-05-07"),
    ("4월 27일에 뭐라고 했지?", "2023-04-27"),
    ("어제 뭐라고 했지?", "2023-05-09"),
    ("¿Qué dije el 3 de mayo de 2022?", "2022-05-03"),
    ("¿Qué dije hace dos semanas?", "2023-04-23..2023-04-29"),
    ("¿Qué dije ayer?", "2023-05-09"),
    ("¿Qué dije la semana antepasada?", "2023-04-24..2023-04-30"),
    ("¿Qué hice el mes antepasado?", "2023-03-01..2023-03-31"),
    ("¿Qué hice el año antepasado?", "2021-01-01..2021-12-31"),
    ("Qu'ai-je dit l'avant-dernière semaine ?", "2023-04-24..2023-04-30"),
    ("Qu'ai-je fait l'avant-dernière année ?", "2021-01-01..2021-12-31"),
    ("Was habe ich vorletzte Woche gesagt?", "2023-04-24..2023-04-30"),
    ("Was habe ich vorletzten Monat gesagt?", "2023-03-01..2023-03-31"),
    ("Was habe ich vorletztes Jahr gesagt?", "2021-01-01..2021-12-31"),
    ("What did I do the weekend before last?", "2023-04-29..2023-04-30"),
    ("What did I do the week before last month?", "2023-04-01..2023-04-30"),
    ("What did I do the weekend before last month?", "2023-04-01..2023-04-30"),
    ("¿Qué hice el fin de semana antepasado?", "2023-04-29..2023-04-30"),
    ("Qu'ai-je fait l'avant-dernier week-end ?", "2023-04-29..2023-04-30"),
    ("Was habe ich am vorletzten Wochenende gemacht?", "2023-04-29..2023-04-30"),
    ("先々週何を話しましたか？", "2023-04-24..2023-04-30"),
    ("先々週の月曜日に何を話しましたか？", "2023-04-24"),
    ("先々週末に何をしましたか？", "2023-04-29..2023-04-30"),
    ("지지난주에 뭐라고 했지?", "2023-04-24..2023-04-30"),
    ("지지난주 월요일에 뭐라고 했지?", "2023-04-24"),
    ("지지난 주말에 뭐 했지?", "2023-04-29..2023-04-30"),
    ("Qu'ai-je dit le 14 juillet 2022 ?", "2022-07-14"),
    ("Qu'ai-je dit il y a trois jours ?", "2023-05-07"),
    ("Qu'est-ce que j'ai dit hier ?", "2023-05-09"),
    ("Was habe ich am 3. Mai 2022 gesagt?", "2022-05-03"),
    ("Was habe ich vor zwei Wochen gesagt?", "2023-04-23..2023-04-29"),
    ("Was habe ich gestern gesagt?", "2023-05-09"),
]
NO_TIME = [
    "May I ask what Ada said?",
    "Who comes every Tuesday?",
    "Was habe ich hier gesagt?",
    "When did Ada have her first call-out?",
    "What happened on 31 June 2023?",
    "Which version is 13.45.2023?",
    "What does flight 747 cost?",
    "What do you do in your spare time in a fall?",
    "Who looks after the dog?",
]


def named(question: str, today: date | None = TODAY) -> str:
    found = [days for expression in dates.find(question) for days in expression.days(today)]
    return " ".join(str(first) if first == last else f"{first}..{last}" for first, last in found)


@pytest.mark.parametrize(("question", "days"), DAYS, ids=[question for question, _ in DAYS])
def test_a_question_names_days(question: str, days: str) -> None:
    assert named(question) == days


@pytest.mark.parametrize("question", NO_TIME)
def test_a_question_without_a_time_names_no_days(question: str) -> None:
    assert named(question) == ""


@pytest.mark.parametrize("question", ["yesterday", "on Tuesday", "in March", "4月27号", "two weeks ago", "last year"])
def test_an_unknown_now_leaves_relative_times_open(question: str) -> None:
    assert named(question, None) == ""


def test_a_full_date_needs_no_now() -> None:
    assert named("on 29 April 2023", None) == "2023-04-29"


@pytest.mark.parametrize(
    ("question", "which"),
    [
        ("What did I say in our first conversation?", "first"),
        ("What did you say when we first met?", "first"),
        ("What did we discuss the last time we talked?", "last"),
        ("What did I want the first time I came to you?", "first"),
        ("我们第一次聊天时你说了什么？", "first"),
        ("我第一次来找你是为了什么事？", "first"),
        ("上次我们聊天时你推荐了什么？", "last"),
        ("最初の会話で何を話しましたか？", "first"),
        ("첫 대화에서 뭐라고 했지?", "first"),
        ("¿Qué dije en nuestra primera conversación?", "first"),
        ("Qu'ai-je dit dans notre dernière conversation ?", "last"),
        ("Was habe ich in unserem letzten Gespräch gesagt?", "last"),
        ("What did you recommend last time?", "last"),
        ("¿Qué me recomendaste la última vez?", "last"),
        ("Was hast du mir beim letzten Mal empfohlen?", "last"),
        ("Qu'as-tu recommandé la dernière fois ?", "last"),
        ("上次你推荐了什么书？", "last"),
        ("What did we decide in this conversation?", "current"),
    ],
)
def test_a_question_names_a_conversation(question: str, which: str) -> None:
    assert [expression.conversation for expression in dates.find(question)] == [which]


@pytest.mark.parametrize(
    "question",
    [
        "When did I last see the dentist?",
        "What did Ada paint recently?",
        "When was the last time that Ada went camping?",
        "¿Cuándo fui por última vez al dentista?",
        "Wann war ich zuletzt beim Zahnarzt?",
        "Quand ai-je vu le dentiste récemment ?",
        "我最近一次看牙医是什么时候？",
    ],
)
def test_a_question_asks_for_what_happened_last(question: str) -> None:
    assert [expression.is_newest for expression in dates.find(question)] == [True]


def test_an_expression_knows_its_place_in_the_question() -> None:
    (found,) = dates.find("What did I say on April 29th, 2023?")
    assert "What did I say on April 29th, 2023?"[found.start : found.end] == "April 29th, 2023"


def test_a_long_question_is_read_in_linear_time() -> None:
    assert dates.find("9 " * 1000) == []


@pytest.mark.parametrize("written", ["17.01.2024", "2024-01-17", "17/1/2024"])
def test_a_date_in_figures_has_the_terms_of_a_date_in_words(written: str) -> None:
    found, expected = (query_terms(f"What did Paola have on {day}?", ["Paola"]) for day in (written, "17 January 2024"))
    assert found.terms == expected.terms


def test_figures_that_are_no_date_are_terms_as_they_are() -> None:
    assert query_terms("What is 99.99.2024?", ()).terms == ("99", "2024")
