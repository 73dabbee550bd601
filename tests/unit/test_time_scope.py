"""Recall of questions that name a time: memories of that time come first, none is left out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.retrieval import time_relations, time_scope
from recallog.retrieval.time_scope import TimeScope
from recallog_projections.index import points
from recallog_projections.index.engines.engine import Filter
from recallog_projections.views.outline import Outline
from recallog_schemas.timestamps import moment_of
from recallog_schemas.views import NamedTime, RecallView
from support.events import run

SESSIONS = [datetime(2023, 4, day, 9, tzinfo=UTC) for day in (3, 18, 25, 26)]
BREADS = ("rye", "wheat", "spelt", "corn")
MONDAY = datetime(2023, 5, 1, tzinfo=UTC)


def events(times: Sequence[datetime] = SESSIONS) -> list[Event]:
    """One sentence in each of four sessions, and an answer that has nothing to do with the questions."""
    return [
        Event(
            id=f"{bread}-{agent}", space="chat", agent=agent, kind="agent.spoke", session=f"session-{number}", at=at,
            audience=("user", "assistant"), payload={"text": text},
        )
        for number, (bread, at) in enumerate(zip(BREADS, times, strict=True), 1)
        for agent, text in (("user", f"Which bread did I bake: {bread} bread."), ("assistant", "Lovely."))
    ]  # fmt: skip


def recalled(question: str, given: Sequence[Event] | None = None, **options: Any) -> RecallView:
    async def work() -> RecallView:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events() if given is None else given)
            return await memory.recall("chat", "user", question, **options)

    return run(work())


def bread(view: RecallView) -> str:
    return view.hits[0].event.id.removesuffix("-user")


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("Which bread did I bake on April 18th?", "wheat"),
        ("Which bread did I bake on 18.04.2023?", "wheat"),
        ("Which bread did I bake yesterday?", "spelt"),
        ("Which bread did I bake last Tuesday?", "spelt"),
        ("Which bread did I bake last week?", "wheat"),
        ("Which bread did I bake in our first conversation?", "rye"),
        ("Which bread did I bake the last time we talked?", "corn"),
        ("bread 4月18号", "wheat"),
        ("昨天 bread", "spelt"),
        ("第一次聊天 bread", "rye"),
    ],
)
def test_memories_of_the_time_that_a_question_names_come_first(question: str, best: str) -> None:
    view = recalled(question)
    assert bread(view) == best
    assert view.hits[0].parts["when"] == pytest.approx(0.1)


def test_other_memories_are_still_found() -> None:
    found = recalled("Which bread did I bake on April 18th?").hits
    assert {hit.event.id for hit in found} >= {f"{bread}-user" for bread in BREADS}


def test_the_week_after_a_day_counts_less_and_less() -> None:
    parts = {hit.event.id: hit.parts for hit in recalled("Which bread did I bake on April 18th?").hits}
    assert "when" not in parts["rye-user"]
    assert parts["wheat-user"]["when"] > parts["spelt-user"]["when"] > 0


@pytest.mark.parametrize(
    ("options", "best"),
    [
        ({}, "spelt"),
        ({"now": "2023-04-19T12:00:00Z"}, "wheat"),
        ({"now": "2023-04-04T12:00:00Z"}, "rye"),
        ({"as_of": "2023-04-25T12:00:00Z", "now": "2023-04-19T12:00:00Z"}, "wheat"),
    ],
)
def test_yesterday_is_measured_from_now_else_from_the_newest_memory(options: dict[str, str], best: str) -> None:
    assert bread(recalled("Which bread did I bake yesterday?", **options)) == best


def test_yesterday_of_the_past_is_measured_from_as_of() -> None:
    """Two days after the session: without `as_of` it would be measured from the newest memory."""
    view = recalled("Which bread did I bake two days ago?", as_of="2023-04-20T12:00:00Z")
    assert bread(view) == "wheat"
    assert "when" in view.hits[0].parts


def test_invented_times_match_no_date() -> None:
    invented = [datetime(2000, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(4)]
    for question in ("Which bread did I bake yesterday?", "Which bread did I bake on 1 January 2000?"):
        assert all("when" not in hit.parts for hit in recalled(question, events(invented)).hits)
    assert points.terms_of("rye", 946_684_800_000_000) == ["rye"]


def test_a_conversation_is_found_although_its_time_is_invented() -> None:
    invented = [datetime(2000, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(4)]
    view = recalled("Which bread did I bake in our first conversation?", events(invented))
    assert bread(view) == "rye"


def scope_of(question: str, now: datetime | None = MONDAY, outline: Outline | None = None) -> TimeScope | None:
    return time_scope.scope(time_relations.find(question), now, outline, {})


@pytest.mark.parametrize(
    ("question", "first", "end"),
    [
        ("What did we talk about between 20 April and 3 May?", (2022, 4, 20), (2022, 5, 4)),
        ("What did we talk about between 20 April and 28 April?", (2023, 4, 20), (2023, 4, 29)),
        ("What did we talk about between Sunday and Friday?", (2023, 4, 23), (2023, 4, 29)),
    ],
)
def test_a_range_ends_after_it_begins(question: str, first: tuple[int, int, int], end: tuple[int, int, int]) -> None:
    scope = scope_of(question)
    assert scope is not None
    ((since, until),) = scope.spans[0].ranges
    assert since is not None
    assert until is not None
    assert (moment_of(since), moment_of(until)) == (datetime(*first, tzinfo=UTC), datetime(*end, tzinfo=UTC))


def test_a_range_of_years_in_the_wrong_order_is_no_scope() -> None:
    assert scope_of("What did we talk about between 3 May 2023 and 5 April 2022?") is None


@pytest.mark.parametrize(
    ("question", "sessions"),
    [
        ("What has changed since we first talked?", None),
        ("What has changed since our first conversation?", None),
        ("¿Qué ha cambiado desde nuestra primera conversación?", None),
        ("Was hat sich seit unserem ersten Gespräch geändert?", None),
        ("自从我们第一次聊天以来有什么变化？", None),
        ("What did I plan before our last session?", None),
        ("What has changed since our last session?", {"newest", "previous"}),
        ("What did I say during our first session?", {"first"}),
    ],
)
def test_what_lies_beyond_the_first_or_the_last_session_is_not_of_that_session(
    question: str, sessions: set[str] | None
) -> None:
    scope = scope_of(question, outline=Outline((), "first", "newest", "previous"))
    assert sessions == (None if scope is None else {*scope.spans[0].sessions})


def test_one_session_is_neither_the_first_nor_the_last() -> None:
    assert scope_of("What did I say in our first conversation?", outline=Outline((), "only", "only", None)) is None


def test_this_conversation_is_the_newest_session() -> None:
    scope = scope_of("What did I say in this conversation?", outline=Outline((), "first", "newest", "first"))
    assert scope is not None
    assert [span.sessions for span in scope.spans] == [{"newest": 1.0}]


def test_a_scope_narrows_filters_and_never_widens_them() -> None:
    scope = scope_of("yesterday")
    assert scope is not None
    ((since, until),) = scope.spans[0].ranges
    assert since is not None
    assert until is not None
    assert [*scope.filters(Filter("chat", ("user",)))] == [
        Filter("chat", ("user",), since=since, until=until + time_scope.AFTERWARDS)
    ]
    bounds = Filter("chat", ("user",), since=since + 1, until=until - 1)
    assert [*scope.filters(bounds)] == [bounds]


@pytest.mark.parametrize(
    ("question", "ranges"),
    [
        ("since March", [("2023-03-01", None)]),
        ("before March", [(None, "2023-03-01")]),
        ("after March", [("2023-04-01", None)]),
        ("until March", [(None, "2023-04-01")]),
        ("from 3 April to 10 April", [("2023-04-03", "2023-04-11")]),
        ("two weeks before 20 April 2023", [("2023-04-03", "2023-04-10")]),
        ("last weekend before April 20, 2023", [("2023-04-15", "2023-04-17")]),
    ],
)
def test_a_relation_has_a_range(question: str, ranges: list[tuple[str | None, str | None]]) -> None:
    scope = scope_of(question)
    assert scope is not None
    found = [tuple(end and f"{moment_of(end):%Y-%m-%d}" for end in ends) for ends in scope.spans[0].ranges]
    assert found == ranges


def told(*texts: str) -> list[Event]:
    """A sentence in each of the four sessions."""
    return [
        Event(
            id=f"e-{number}", space="chat", agent="user", kind="agent.spoke", session=f"session-{number}", at=at,
            audience=("user", "assistant"), payload={"text": text},
        )
        for number, (text, at) in enumerate(zip(texts, SESSIONS, strict=True), 1)
    ]  # fmt: skip


MOVED = told("I baked rye bread.", "We moved to Bern.", "I baked spelt bread.", "I baked corn bread.")


@pytest.mark.parametrize(
    ("question", "hits"),
    [
        ("Which bread did I bake since we moved to Bern?", {"e-3", "e-4"}),
        ("Which bread did I bake before we moved to Bern?", {"e-1"}),
    ],
)
def test_the_time_of_an_event_is_that_of_the_memory_that_tells_of_it(question: str, hits: set[str]) -> None:
    view = recalled(question, MOVED)
    (time,) = view.times
    assert (time.event, time.hits > 0, time.has_memories) == ("e-2", True, True)
    assert hits <= {hit.event.id for hit in view.hits if "when" in hit.parts}


def test_an_event_of_which_no_memory_tells_is_said() -> None:
    view = recalled("Which bread did I bake since the divorce?", MOVED)
    (time,) = view.times
    assert (time.event, time.ranges, time.hits) == (None, (), 0)
    assert time.note == '"since the divorce": no memory says when that was'


def test_a_time_without_memories_is_said() -> None:
    view = recalled("Which bread did I bake in January?", MOVED)
    (time,) = view.times
    assert (time.hits, time.has_memories) == (0, False)
    assert view.format().splitlines()[0] == '("in January" is 2023-01-01 to 2023-01-31: no memory is of this time)'


def test_a_time_whose_memories_say_something_else_is_said() -> None:
    days = ((datetime(2023, 4, 18, tzinfo=UTC), datetime(2023, 4, 19, tzinfo=UTC)),)
    time = NamedTime(words="April 18th", ranges=days, sessions=(), event=None, hits=0, has_memories=True)
    assert time.note == '"April 18th" is 2023-04-18: no close hit is of this time'


def test_a_question_for_a_time_alone_finds_what_is_of_it_and_nothing_else() -> None:
    assert [hit.event.id for hit in recalled("What did we talk about on April 18th?", MOVED).hits] == ["e-2"]
    assert recalled("What did we talk about in January?", MOVED).hits == ()


def test_what_happened_last_is_the_newest_of_what_was_found() -> None:
    assert recalled("When did I last bake bread?", MOVED).hits[0].event.id == "e-4"
