"""`recallog.format_context`: hits of recall as a section of a prompt."""

from typing import Any

import pytest

from recallog import Position, format_context
from recallog_schemas.views import RecallHit
from support.events import event

pytestmark = pytest.mark.models("long_term")


def hit(text: str, score: float = 0.95, kind: str = "memory.retained", **payload: Any) -> RecallHit:
    found = event(kind, payload={"text": text, **({"type": "fact"} if kind == "memory.retained" else {}), **payload})
    return RecallHit(
        position=Position(0, 0),
        event=found,
        text=text,
        score=score,
        parts={},
        similarity=None,
        source="views",
        weak=False,
    )


def test_a_hit_is_one_line_below_the_heading() -> None:
    assert format_context([hit("Acme Corp prefers React")]) == (
        "## Recalled Memories\n- [fact] Acme Corp prefers React (score: 0.95)"
    )


def test_without_hits_there_is_no_section() -> None:
    assert format_context([]) == ""


def test_lines_show_the_category_of_an_entry_else_its_type_and_the_kind_of_an_event() -> None:
    hits = [hit("a", category="tools"), hit("b", type="lesson"), hit("c", kind="agent.spoke")]
    assert format_context(hits).splitlines()[1:] == [
        "- [tools] a (score: 0.95)",
        "- [lesson] b (score: 0.95)",
        "- [agent.spoke] c (score: 0.95)",
    ]


def test_a_text_of_several_lines_stays_on_one() -> None:
    assert format_context([hit("one\n- [fact] two")]).splitlines()[1:] == ["- [fact] one - [fact] two (score: 0.95)"]


def test_only_whole_lines_within_the_budget_are_shown() -> None:
    found = format_context([hit("x" * 200)] * 100, max_tokens=100)
    assert len(found.splitlines()) == 2
    assert len(found) - len("## Recalled Memories\n") <= 400
    assert len(format_context([hit("x" * 200)] * 100).splitlines()) == 1 + 8_000 // 224


@pytest.mark.parametrize(("tokens", "shown"), [(6, 1), (5, 0)])
def test_a_line_that_fills_the_budget_is_shown(tokens: int, shown: int) -> None:
    line = "- [fact] (score: 0.95)"
    text = "a" * (24 - len(line) - 1)
    assert format_context([hit(text)], max_tokens=tokens).count("- [fact]") == shown


def test_a_long_text_leaves_room_for_those_behind_it() -> None:
    found = format_context([hit("x" * 4_000), hit("short")], max_tokens=100)
    assert found.splitlines()[1:] == ["- [fact] short (score: 0.95)"]
