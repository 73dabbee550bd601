"""Hits that belong together: of one stretch of a conversation, and a memory with those that it supersedes."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog.retrieval.weights import REACH
from recallog_schemas import Position
from recallog_schemas.views import RecallView
from recallog_schemas.views.grouping import group_hits
from support.cli import recallog
from support.events import event, run

pytestmark = pytest.mark.models("long_term", "prompt")


@dataclass(frozen=True)
class Hit:
    key: str
    position: Position
    near: str | None = None
    superseded_by: str | None = None


names = st.none() | st.sampled_from("abcdef")


@given(st.lists(st.tuples(names, names), max_size=6))
def test_every_hit_is_in_one_group(named: list[tuple[str | None, str | None]]) -> None:
    hits = [Hit(key, Position(0, place), *of) for place, (key, of) in enumerate(zip("abcdef", named, strict=False))]
    groups = group_hits(hits)
    assert sorted(hit.key for group in groups for hit in group) == sorted(hit.key for hit in hits)


def test_what_holds_now_is_first_and_what_is_past_is_last() -> None:
    old, other, new = (
        Hit("old", Position(0, 1), None, "new"),
        Hit("other", Position(0, 2), "new"),
        Hit("new", Position(0, 3)),
    )
    assert group_hits([old, other, new]) == [[new, other, old]]


def said(*texts: str, session: str = "s") -> list[Event]:
    return [
        event(id=f"{session}-{turn}", session=session, turn=turn, payload={"text": text}, kind="agent.spoke")
        for turn, text in enumerate(texts)
    ]


def recalled(events: list[Event], question: str, **options: int) -> RecallView:
    async def work() -> RecallView:
        async with Memory.in_memory() as memory:
            await memory.publish_many(events)
            return await memory.recall("village", "baker", question, **options)

    return run(work())


MILL = said("The mill burned.", "How did the mill burn?", "The mill had dry wood.")
FAR = said(*("Nothing.",) * (REACH + 4), "The mill is built again.", session="later")


def test_hits_of_one_stretch_of_a_conversation_name_the_best_of_them() -> None:
    view = recalled([*MILL, *FAR], "the mill", top_k=4)
    groups = group_hits(view.hits)
    assert {frozenset(hit.event.id for hit in group) for group in groups} == {
        frozenset({"s-0", "s-1", "s-2"}),
        frozenset({f"later-{REACH + 4}"}),
    }
    assert all(hit.near in (None, groups[0][0].event.id, groups[1][0].event.id) for hit in view.hits)


def test_hits_at_two_ends_of_a_conversation_are_two_groups() -> None:
    view = recalled(said("The mill burned.", *("Nothing.",) * (REACH + 1), "The mill is built again."), "the mill")
    assert {group[0].text for group in group_hits(view.hits)} == {"The mill burned.", "The mill is built again."}


def test_further_hits_change_no_group_of_those_before_them() -> None:
    whole = recalled([*MILL, *FAR], "the mill", top_k=6).hits
    for top_k in range(1, len(whole)):
        assert recalled([*MILL, *FAR], "the mill", top_k=top_k).hits == whole[:top_k]


def test_an_event_names_the_later_one_of_its_author_that_disagrees() -> None:
    moved = [*said("I live in Rome.", session="old"), *said("I live in Milan.", session="new")]
    view = recalled(moved, "Where do I live? In Rome?")
    ((now, past),) = group_hits(view.hits)
    assert (now.text, past.text, past.superseded_by) == ("I live in Milan.", "I live in Rome.", "new-0")
    assert past.valid_until == now.at
    assert view.format().splitlines()[1].startswith("  [turn 000]")
    assert "[past since" in view.format().splitlines()[1]


def test_what_another_author_says_supersedes_nothing() -> None:
    said_by_two = [*said("I live in Rome."), event(id="other", agent="miller", payload={"text": "I live in Milan."})]
    assert all(hit.superseded_by is None for hit in recalled(said_by_two, "Who lives in Rome or Milan?").hits)


def test_the_command_shows_the_text_of_what_is_past(tmp_path: Path) -> None:
    in_folder = {"RECALLOG_HOME": str(tmp_path / "memory"), "RECALLOG_INDEX": "off"}
    for text in ("Ann lives in Rome.", "Ann lives in Oslo."):
        recallog("long-term", "retain", "village", "baker", text, **in_folder)
    said = recallog("recall", "village", "baker", "Where does Ann live?", **in_folder).out
    assert "Ann lives in Oslo." in said
    assert "): Ann lives in Rome." in said


def test_a_prompt_shows_a_group_together_and_its_best_hit_first() -> None:
    async def work() -> str:
        async with Memory.in_memory() as memory:
            await memory.publish(event(kind="agent.configured", payload={"window": 1}))
            await memory.publish_many([*MILL, *FAR, *said("It rains.", session="last")])
            return (await memory.context("village", "baker", query="Why did the mill burn?")).text

    lines = run(work()).split("RECALLED\n")[1].split("\n\n")[0].splitlines()
    assert [line.startswith("  ") for line in lines[:3]] == [False, True, True]
    assert {line.strip().partition("] ")[2] for line in lines[:3]} >= {"The mill burned.", "The mill had dry wood."}
