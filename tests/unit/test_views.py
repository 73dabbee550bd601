"""Views that are lists: length, index, iteration, JSON and text; the JSON and `repr` of every answer to a query."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from recallog import Memory, Position
from recallog.operations import pipeline
from recallog.operations.operation import Operation
from recallog_schemas.views import (
    AgentsView,
    AgentView,
    DeadLetter,
    DeadLettersView,
    ListView,
    PendingTrigger,
    PendingView,
    Published,
    Reaction,
    ReactionsView,
    RebuildPlan,
    RebuildPlans,
    RebuildReport,
    RebuildReports,
    RetryReport,
    SpacesView,
    SpaceView,
    View,
)
from support.events import event, run

FIRST, LAST = Position(0, 0), Position(0, 41)
LETTER = DeadLetter(
    views="built-in", position=LAST, reason="conflict", detail="other content", space="village", id="e-1", kind=""
)
REACTION = Reaction(
    space="village", agent="widow", trigger="t", kind="agent.reflected", text="He\nlies.", based_on=(), position=LAST
)
FAILURE = REACTION.model_copy(update={"kind": "reflection.failed", "text": "no model"})

LISTS: list[tuple[ListView[Any], list[str]]] = [
    (
        AgentsView(
            generation="g", checkpoint=LAST, space="village", known=True,
            items=(AgentView(name="baker", events=1_200, first=FIRST, last=LAST),),
        ),
        ["baker: 1,200 events, from 0:0 to 0:41"],
    ),
    (DeadLettersView(items=(LETTER,)), ["0:41  village  ?  e-1  conflict: other content"]),
    (
        PendingView(
            items=(
                PendingTrigger(
                    space="village", agent="widow", kind="reflection.due", trigger="t", events=1_200, threshold=1_000
                ),
                PendingTrigger(
                    space="village", agent="widow", kind="migration.due", trigger="t", events=2, threshold=None
                ),
                PendingTrigger(
                    space="village", agent="widow", kind="retraction.due", trigger="t", events=1, threshold=None
                ),
            )
        ),
        [
            "village  widow  reflection.due  1,200 of 1,000 events",
            "village  widow  migration.due  2 texts",
            "village  widow  retraction.due  1 entry",
        ],
    ),
    (Published(items=(FIRST, LAST)), ["0:0", "0:41"]),
    (
        ReactionsView(items=(REACTION, FAILURE)),
        ["0:41  village  widow  agent.reflected  He lies.", "0:41  village  widow  reflection.failed  no model"],
    ),
    (
        RebuildPlans(items=(RebuildPlan(views="words", partition=1, records=42, replaces=None, joins="n"),)),
        ["words, partition 1: 42 records, joining n, replacing nothing"],
    ),
    (
        RebuildReports(
            items=(
                RebuildReport(
                    views="words", partition=0, replaced="o", generation="n", joined=True, records=4_000, seconds=2.0
                ),
            )
        ),
        ["rebuilt 4,000 records in 2.0 s (2,000/s, joined one under way): o → n"],
    ),
    (RetryReport(items=(LETTER,), applied=2), ["2 of 3 applied", "0:41  village  ?  e-1  conflict: other content"]),
    (
        SpacesView(
            items=(
                SpaceView(
                    generation="g", checkpoint=LAST, space="village", events=42, agents=3, sessions=0, first=FIRST,
                    last=LAST,
                ),
            )
        ),
        ["village: 42 events, 3 agents, 0 sessions, from 0:0 to 0:41"],
    ),
]  # fmt: skip


def with_items(view: ListView[Any], count: int) -> ListView[Any]:
    """The view with its first item repeated."""
    return view.model_copy(update={"items": (view.items[0],) * count})


def lists(argument: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(argument, [view for view, _ in LISTS], ids=lambda view: type(view).__name__)


@lists("view")
def test_a_list_has_the_length_indexes_and_iteration_of_its_items(view: ListView[Any]) -> None:
    assert len(view) == len(view.items)
    assert [view[list_index] for list_index in range(len(view))] == list(view) == list(view.items)
    assert view[-1] == view.items[-1]
    assert view[0] in view
    with pytest.raises(IndexError):
        view[len(view)]
    (*unpacked,) = view
    assert unpacked == list(view.items)


@lists("view")
def test_a_list_without_items_is_false(view: ListView[Any]) -> None:
    empty = with_items(view, 0)
    assert (len(empty), list(empty), bool(empty)) == (0, [], False)
    assert view


@lists("view")
def test_a_list_is_read_again_from_its_json(view: ListView[Any]) -> None:
    for each in (view, with_items(view, 0), with_items(view, 3)):
        document = json.loads(each.model_dump_json())
        assert len(document["items"]) == len(each)
        assert type(each).model_validate_json(each.model_dump_json()) == each


@lists("view")
def test_a_list_is_immutable(view: ListView[Any]) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        view.items = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        view.items[0] = view.items[0]  # type: ignore[index]


@pytest.mark.models("all")
@pytest.mark.parametrize(("view", "lines"), LISTS, ids=[type(view).__name__ for view, _ in LISTS])
def test_the_text_of_a_list_has_a_line_for_each_item(view: ListView[Any], lines: list[str]) -> None:
    assert view.format().splitlines() == lines


@lists("view")
def test_the_text_of_an_empty_list_says_so(view: ListView[Any]) -> None:
    said = "2 of 2 applied" if isinstance(view, RetryReport) else "(nothing)"
    assert with_items(view, 0).format() == said


@pytest.mark.models("beliefs")
def test_a_list_is_ok_unless_it_names_a_failure() -> None:
    ok = {type(view): view.ok for view, _ in LISTS}
    assert [each for each in ok if not ok[each]] == [ReactionsView, RetryReport]
    assert ReactionsView(items=(REACTION,)).ok
    assert RetryReport(items=(), applied=3).ok


# The answers to queries.

ARGUMENTS: dict[str, Any] = {
    "space": "village", "agent": "baker", "event_id": "e-1", "ids": ["e-1", "nosuch"], "query": "Bread!",
    "since": "2000-01-01T00:00:00Z",
}  # fmt: skip
QUERIES = [each for each in Memory.operations.values() if each.scope == "read"]


async def answer(operation: Operation, required: set[str]) -> Any:
    async with Memory.in_memory() as memory:
        due = event("agent.configured", payload={"reflection_threshold": 1, "persona": "Proud."})
        belief = event("agent.reflected", agent="miller", payload={"belief": "Bread is dear."})
        await memory.publish_many([due, event(id="e-1"), event("world.observed", agent="narrator"), belief])
        return await pipeline.call(memory, operation, {name: ARGUMENTS[name] for name in required})


@pytest.mark.parametrize("operation", QUERIES, ids=lambda each: each.name)
def test_an_answer_is_read_again_from_its_json_and_has_a_text(operation: Operation) -> None:
    required = {name for name, each in operation.parameters.items() if each.default is each.empty}
    view = run(answer(operation, required))
    assert isinstance(view, View)
    assert type(view) is operation.answer
    data = operation.to_json(view)
    assert type(view).model_validate_json(data) == view
    assert view.format().strip()


@pytest.mark.parametrize("operation", QUERIES, ids=lambda each: each.name)
def test_the_representation_of_an_answer_is_one_short_line_that_names_what_it_is_about(operation: Operation) -> None:
    required = {name for name, each in operation.parameters.items() if each.default is each.empty}
    view = run(answer(operation, required))
    assert len(repr(view)) < 300
    assert "\n" not in repr(view)
    subject = ", ".join(f"{name}={ARGUMENTS[name]!r}" for name in ("space", "agent") if getattr(view, name, None))
    assert repr(view).startswith(f"{type(view).__name__}({subject}")


def test_the_representation_of_a_view_counts_its_items_and_cuts_its_texts() -> None:
    async def work() -> list[str]:
        async with Memory.in_memory() as memory:
            await memory.publish_many([event(id=f"e-{n}", payload={"text": "Bread! " * n}) for n in range(1, 21)])
            view = await memory.episodic("village", "baker")
            return [repr(view), repr(view.memories[-1])]

    assert run(work()) == [
        "EpisodicView(space='village', agent='baker', known=True, window=8, memories=8)",
        f"Remembered(id='e-20', agent='baker', kind='agent.spoke', position='0:19', text='{('Bread! ' * 20)[:59]}…')",
    ]
