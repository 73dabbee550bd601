"""The ranges of time that questions name, compared with an oracle that decides day by day."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.retrieval import time_relations, time_scope
from recallog_schemas.timestamps import micros
from recallog_schemas.views import RecallView
from support.events import run

DAY = timedelta(days=1)
BEGINS: dict[str, Callable[[date, date, date], bool]] = {
    "since": lambda day, first, last: day >= first,
    "after": lambda day, first, last: day > last,
}
ENDS: dict[str, Callable[[date, date, date], bool]] = {
    "until": lambda day, first, last: day <= last,
    "before": lambda day, first, last: day < first,
}


class Language(NamedTuple):
    question: str
    begins: dict[str, str]
    ends: dict[str, str]
    both: list[str]
    """From one time to another, both included."""
    joins: list[str]
    yesterday: str
    today: str
    day: str


LANGUAGES = [
    Language(
        "What did I buy {}?", {"since": "since {}", "after": "after {}"}, {"until": "until {}", "before": "before {}"},
        ["between {} and {}", "from {} to {}", "from {} until {}", "since {} to {}"],
        ["{} {}", "{} and {}", "{}, but {}"], "yesterday", "today", "%Y-%m-%d",
    ),
    Language(
        "¿Qué compré {}?", {"since": "desde {}", "after": "después de {}"},
        {"until": "hasta {}", "before": "antes de {}"},
        ["entre {} y {}", "de {} a {}", "desde {} a {}"], ["{} {}", "{} y {}", "{} pero {}"], "ayer", "hoy", "%d.%m.%Y",
    ),
    Language(
        "Was kaufte ich {}?", {"since": "seit {}", "after": "nach {}"}, {"until": "bis {}", "before": "vor {}"},
        ["zwischen {} und {}", "von {} bis {}", "vom {} bis zum {}"], ["{} {}", "{} und {}", "{}, aber {}"],
        "gestern", "heute", "%d.%m.%Y",
    ),
    Language(
        "Qu'ai-je acheté {} ?", {"since": "depuis {}", "after": "après {}"},
        {"until": "jusqu'à {}", "before": "avant {}"},
        ["entre {} et {}", "de {} à {}"], ["{} {}", "{} et {}", "{} mais {}"], "avant-hier", "aujourd'hui", "%d.%m.%Y",
    ),
    Language(
        "{}我买了什么？", {"since": "{}以来", "after": "{}之后"}, {"until": "{}为止", "before": "{}之前"},
        ["{}到{}", "从{}到{}", "从{}开始到{}"], ["{}{}", "{}，{}"], "昨天", "今天", "%Y-%m-%d",
    ),
    Language(
        "{}何を買いましたか？", {"since": "{}から", "after": "{}以後"}, {"until": "{}まで"},
        ["{}から{}", "{}から{}まで"], ["{}{}"], "昨日", "今日", "%Y年%m月%d日",
    ),
    Language(
        "{} 뭘 샀어요?", {"since": "{}부터", "after": "{} 이후"}, {"until": "{}까지", "before": "{} 전에"},
        ["{}부터 {}까지"], ["{} {}"], "어제", "오늘", "%Y년 %m월 %d일",
    ),
]  # fmt: skip
YESTERDAY = {"avant-hier": 2 * DAY}
NOW = st.dates(date(2001, 6, 1), date(2090, 1, 1))


class Time(NamedTuple):
    words: str
    first: date
    last: date


def times(language: Language, today: date) -> st.SearchStrategy[Time]:
    yesterday = today - YESTERDAY.get(language.yesterday, DAY)
    near = st.integers(-40, 10).map(lambda days: today + days * DAY)
    return st.one_of(
        st.just(Time(language.yesterday, yesterday, yesterday)),
        st.just(Time(language.today, today, today)),
        near.map(lambda day: Time(f"{day:{language.day}}", day, day)),
    )


def holding(question: str, today: date) -> set[date]:
    """The days near today that the scope of a question holds."""
    now = datetime.combine(today, time(12), UTC)
    scope = time_scope.scope(time_relations.find(question), now, None, {})
    around = [today + days * DAY for days in range(-60, 30)]
    if scope is None:
        return set()
    return {day for day in around if scope.holds("", micros(datetime.combine(day, time(23, 59), UTC)))}


def expected(today: date, is_of_it: Callable[[date], bool]) -> set[date]:
    return {day for days in range(-60, 30) if is_of_it(day := today + days * DAY)}


@given(st.data())
def test_a_range_with_two_relations_holds_the_days_that_are_of_both(data: st.DataObject) -> None:
    language, today = data.draw(st.sampled_from(LANGUAGES)), data.draw(NOW)
    one, other = data.draw(times(language, today)), data.draw(times(language, today))
    begin, end = data.draw(st.sampled_from([*language.begins])), data.draw(st.sampled_from([*language.ends]))
    parts = [language.begins[begin].format(one.words), language.ends[end].format(other.words)]
    if data.draw(st.booleans()):
        parts.reverse()
    question = language.question.format(data.draw(st.sampled_from(language.joins)).format(*parts))
    of_both = expected(
        today, lambda day: BEGINS[begin](day, one.first, one.last) and ENDS[end](day, other.first, other.last)
    )
    assert holding(question, today) == of_both, question


@given(st.data())
def test_from_one_time_to_another_is_both_and_what_is_between(data: st.DataObject) -> None:
    language, today = data.draw(st.sampled_from(LANGUAGES)), data.draw(NOW)
    one, other = data.draw(times(language, today)), data.draw(times(language, today))
    question = language.question.format(data.draw(st.sampled_from(language.both)).format(one.words, other.words))
    assert holding(question, today) == expected(today, lambda day: one.first <= day <= other.last), question


@given(st.integers(2000, 2030), st.integers(2000, 2030), st.sampled_from(["between {} and {}", "from {} to {}"]))
def test_a_range_of_years_begins_before_it_ends_or_names_nothing(first: int, last: int, words: str) -> None:
    question = f"What did I buy {words.format(first, last)}?"
    (one,) = time_relations.find(question)
    assert one.expressions[0].days(date(2023, 5, 1)) == (
        ((date(first, 1, 1), date(last, 12, 31)),) if first <= last else ()
    )
    scope = time_scope.scope([one], datetime(2023, 5, 10, tzinfo=UTC), None, {})
    assert (scope is not None) == (first <= last)


RECENTLY = ["Which bread did I bake recently?", "What have I baked lately?", "my recent breads",
    "Was backte ich neulich?",
    "Was habe ich in letzter Zeit gebacken?", "¿Qué horneé últimamente?", "¿Qué he horneado recientemente?",
    "Qu'ai-je cuit récemment ?", "Qu'ai-je cuit ces derniers temps ?", "O que assei recentemente?", "我最近烤了什么？",
    "近期我烤了什么面包？", "最近何を焼きましたか？", "최근에 뭘 구웠어요?"]  # fmt: skip


@pytest.mark.parametrize("question", RECENTLY)
@given(NOW)
def test_recently_is_the_last_thirty_days(question: str, today: date) -> None:
    assert holding(question, today) == expected(today, lambda day: today - 30 * DAY <= day <= today)


@given(NOW)
def test_until_recently_ends_where_recently_begins(today: date) -> None:
    assert holding("What did I bake until recently?", today) == expected(today, lambda day: day < today - 30 * DAY)


@pytest.mark.parametrize(
    "question",
    ["When did I last bake?", "What did I most recently bake?", "最近一次烤面包是什么时候？", "our latest bread"],
)
def test_the_newest_of_what_was_found_has_no_range(question: str) -> None:
    (one,) = time_relations.find(question)
    assert one.expressions[0].is_newest
    assert one.expressions[0].days(date(2023, 5, 1)) == ()


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I buy between 3 and 8 May?", date(2023, 5, 3), date(2023, 5, 8)),
        ("What did I buy from the 3rd to the 8th of May 2022?", date(2022, 5, 3), date(2022, 5, 8)),
        ("What did I buy on May 3-8?", date(2023, 5, 3), date(2023, 5, 8)),
        ("Was kaufte ich vom 3. bis 8. Mai?", date(2023, 5, 3), date(2023, 5, 8)),
        ("¿Qué compré del 3 al 8 de mayo?", date(2023, 5, 3), date(2023, 5, 8)),
        ("Qu'ai-je acheté du 3 au 8 mai ?", date(2023, 5, 3), date(2023, 5, 8)),
        ("5月3日到8日我买了什么？", date(2023, 5, 3), date(2023, 5, 8)),
        ("What did I buy from 2019 to 2021?", date(2019, 1, 1), date(2021, 12, 31)),
    ],
)
def test_the_ends_of_a_range_may_share_a_month_or_be_years(question: str, first: date, last: date) -> None:
    scope = time_scope.scope(time_relations.find(question), datetime(2023, 5, 10, tzinfo=UTC), None, {})
    assert scope is not None
    begin, end = (micros(datetime.combine(day, time(), UTC)) for day in (first, last + DAY))
    assert [span.ranges for span in scope.spans] == [[(begin, end)]]


def told(*texts: str) -> list[Event]:
    """A sentence each ten days from 1 April 2023 on."""
    return [
        Event(
            id=f"e-{number}", space="chat", agent="user", kind="agent.spoke", session=f"session-{number}",
            at=datetime(2023, 4, 1, tzinfo=UTC) + 10 * number * DAY, audience=("assistant",), payload={"text": text},
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


def recalled(question: str, events: list[Event]) -> RecallView:
    async def work() -> RecallView:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            return await memory.recall("chat", "user", question)

    return run(work())


EVENTS = told(
    "I baked rye bread.",
    "We moved to Bern.",
    "I baked spelt bread.",
    "The wedding was wonderful.",
    "I baked corn bread.",
)


def test_a_range_may_begin_and_end_with_events() -> None:
    view = recalled("Which bread did I bake since we moved to Bern until the wedding?", EVENTS)
    (named,) = view.times
    assert (named.words, named.event) == ("since we moved to Bern until the wedding", "e-1")
    assert {hit.event.id for hit in view.hits if "when" in hit.parts} & {"e-0", "e-2", "e-4"} == {"e-2"}


def test_a_range_with_an_unknown_event_says_so() -> None:
    (named,) = recalled("Which bread did I bake since the divorce until April?", EVENTS).times
    assert named.note == '"since the divorce until April": no memory says when that was'


def test_the_answer_says_what_recently_is() -> None:
    (named,) = recalled("Which bread did I bake recently?", EVENTS).times
    ((first, end),) = named.ranges
    assert (named.words, first, end) == (
        "recently", datetime(2023, 4, 11, tzinfo=UTC), datetime(2023, 5, 12, tzinfo=UTC),
    )  # fmt: skip
    assert named.hits == 2


def test_a_question_for_what_happened_recently_finds_nothing_older() -> None:
    found = recalled("What happened lately?", EVENTS).hits
    assert {hit.event.id for hit in found} == {"e-1", "e-2", "e-3", "e-4"}
