"""Recall of questions that name a time: memories of that time come first, none is left out."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from recallog import Event, Memory
from recallog.retrieval import dates, time_scope
from recallog_projections.index import points
from recallog_projections.index.engines.engine import Filter
from recallog_projections.views.outline import Outline
from recallog_schemas.views import RecallView
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


def test_one_session_is_neither_the_first_nor_the_last() -> None:
    found = dates.find("What did I say in our first conversation?")
    assert time_scope.scope(found, MONDAY, Outline((), "only", "only", None)) is None


def test_a_scope_narrows_filters_and_never_widens_them() -> None:
    scope = time_scope.scope(dates.find("yesterday"), MONDAY, None)
    assert scope is not None
    ((since, until),) = scope.ranges
    assert [*scope.filters(Filter("chat", ("user",)))] == [
        Filter("chat", ("user",), since=since, until=until + time_scope.AFTERWARDS)
    ]
    bounds = Filter("chat", ("user",), since=since + 1, until=until - 1)
    assert [*scope.filters(bounds)] == [bounds]
