"""`eval memory`: what the views of a memory show of a conversation, with shares worked out by hand."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Position
from recallog.views import Remembered
from recallog_eval import coverage
from recallog_eval.coverage import AFTER_ALL, AFTER_SESSION, CoverageFile, CoverageResult, Covered
from recallog_eval.locomo_questions import Question
from recallog_eval.shown import NewestTurns, Shown, show_events
from recallog_schemas.errors import SettingsError
from recallog_schemas.token_estimate import estimate_tokens
from support.cli import recallog

pytestmark = pytest.mark.models("all")

SESSIONS = (
    (("Ann", "The mill by the river burned down."), ("Bob", "Was anybody hurt in the fire?")),
    (("Bob", "My sister bought a grey horse."), ("Bob", "She rides it to the market.")),
)
QUESTIONS = ((["D1:1"], 4), (["D1:2", "D2:1"], 1), (["D2:2"], 2), (["D1:1"], 5))
"""The evidence of each question, and its category; those of category 5 are left out."""


def conversation(sessions: Sequence[Sequence[tuple[str, str]]] = SESSIONS) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for number, turns in enumerate(sessions, 1):
        told[f"session_{number}_date_time"] = f"1:56 pm on {7 + number} May, 2023"
        told[f"session_{number}"] = [
            {"speaker": speaker, "dia_id": f"D{number}:{turn}", "text": text}
            for turn, (speaker, text) in enumerate(turns, 1)
        ]
    asked = [
        {"question": f"What about {number}?", "answer": "That.", "evidence": evidence, "category": category}
        for number, (evidence, category) in enumerate(QUESTIONS, 1)
    ]
    return {"sample_id": "conv-1", "conversation": told, "qa": asked}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([conversation()]))
    return path


def views_of(file: Path, settings: dict[str, Any], *more: object) -> dict[tuple[str, str], dict[str, Any]]:
    """The figures of each view by moment and name."""
    ended = recallog("eval", "memory", file, "--index", "off", "--settings", json.dumps(settings), "--json", *more)
    assert (ended.code, ended.err) == (0, "")
    (of_file,) = ended.json["files"]
    return {(each["moment"], each["view"]): each for each in of_file["views"]}


def shares(figures: dict[str, Any]) -> tuple[float, float]:
    """The shares of questions of which any, and all, of the evidence is shown."""
    return figures["shares"]["any"], figures["shares"]["all"]


# Figures of a whole run


def test_a_window_shows_the_evidence_that_is_among_its_events_at_each_moment(file: Path) -> None:
    views = views_of(file, {"window": 2, "reflection_threshold": 100})
    # After the conversation the window is D2:1 and D2:2: a part of the second question, and the third.
    assert shares(views[AFTER_ALL, "window"]) == pytest.approx((2 / 3, 1 / 3))
    # The first question is asked after the first session, when the window is D1:1 and D1:2.
    assert shares(views[AFTER_SESSION, "window"]) == pytest.approx((1, 2 / 3))
    for moment in (AFTER_ALL, AFTER_SESSION):
        window = views[moment, "window"]
        assert window["newest"] == window["shares"]  # it is the newest turns
        assert (window["change"]["any"]["difference"], window["against_earlier"]) == (0, None)


def test_beliefs_show_the_events_that_they_are_based_on(file: Path) -> None:
    views = views_of(file, {"reflection_threshold": 2})
    # Ann sees the beginning of the first session, D1:1 | D1:2, D2:1 | D2:2: two reflections, none about D2:2.
    assert shares(views[AFTER_ALL, "beliefs"]) == pytest.approx((2 / 3, 2 / 3))
    assert shares(views[AFTER_ALL, "quotes in beliefs"]) == pytest.approx((2 / 3, 2 / 3))
    assert views[AFTER_ALL, "beliefs"]["tokens"] > 0


def test_without_reflections_there_are_no_beliefs_and_no_tokens_of_them(file: Path) -> None:
    beliefs = views_of(file, {"reflection_threshold": 100})[AFTER_ALL, "beliefs"]
    assert (shares(beliefs), beliefs["tokens"], beliefs["newest"]) == ((0, 0), 0, {"any": 0, "all": 0})


def test_a_prompt_shows_what_its_sections_quote(file: Path) -> None:
    views = views_of(file, {"window": 2, "reflection_threshold": 100, "rag": {"enabled": False}})
    assert shares(views[AFTER_ALL, "prompt"]) == shares(views[AFTER_ALL, "window"])
    assert views[AFTER_ALL, "prompt"]["tokens"] > views[AFTER_ALL, "window"]["tokens"]


def test_a_compaction_of_a_long_session_and_a_summary_of_what_was_archived_are_measured(tmp_path: Path) -> None:
    long = [("Ann" if turn % 2 else "Bob", f"Sentence {turn} about the grey horse.") for turn in range(1, 22)]
    path = tmp_path / "locomo.json"
    later = [[("Bob", "Hello.")] for _ in range(12)]  # a day each: what is archived has been idle for a week
    path.write_text(json.dumps([conversation([long, SESSIONS[1], *later])]))
    views = views_of(path, {"reflection_threshold": 100})
    # Of 21 messages 13 are compacted; their last 12, D1:2 to D1:13, are quoted. D1:1 is not, nor are the others.
    assert shares(views[AFTER_ALL, "compactions"]) == pytest.approx((1 / 3, 0))
    assert views[AFTER_ALL, "summaries of archived entries"]["tokens"] > 0
    assert views[AFTER_ALL, "stream summaries"]["tokens"] > 0


# Parts


def turn(number: int, text: str, kind: str = "agent.spoke", **payload: Any) -> Remembered:
    event = Event(
        id=f"D1:{number}", space="conv-1", agent="Ann", kind=kind, turn=number, at=datetime(2023, 5, 8, tzinfo=UTC),
        payload={"text": text, **payload},
    )  # fmt: skip
    return Remembered(position=Position(0, number), event=event, text=text)


def test_a_text_shows_a_turn_if_it_quotes_the_first_half_of_it() -> None:
    texts = {
        "D1:1": "The mill by the river burned down last night.",
        "D1:2": "Was\nanybody hurt in the fire, and who was it?",
    }
    assert Shown("summary", '"The mill by the river b…".').find_shown(texts, texts) == {"D1:1"}
    assert Shown("summary", '"The mill by the river".').find_shown(texts, texts) == set()
    assert Shown("summary", "Was anybody\nhurt in the fire,").find_shown(texts, texts) == {"D1:2"}


def test_a_short_turn_is_shown_if_twenty_characters_or_all_of_it_are_quoted() -> None:
    texts = {"D1:1": "Oh, yes, indeed it was me.", "D1:2": "Oh, no!"}
    assert Shown("summary", "Oh, yes, indeed it is.").find_shown(texts, texts) == set()
    assert Shown("summary", "Oh, yes, indeed it was.").find_shown(texts, texts) == {"D1:1"}
    assert Shown("summary", "Oh, no, oh, no!").find_shown(texts, texts) == set()
    assert Shown("summary", "Ann: Oh, no!").find_shown(texts, texts) == {"D1:2"}


def test_a_view_of_events_shows_them_and_what_a_belief_among_them_is_based_on() -> None:
    belief = turn(3, "A fire.", "agent.reflected", belief="A fire.", based_on=["D1:1"])
    shown = show_events("window", [turn(2, "The mill burned down."), belief], "Ann")
    assert shown.find_shown({"D1:1", "D1:2", "D1:9"}, {}) == {"D1:1", "D1:2"}
    assert shown.tokens == estimate_tokens(
        "[turn 002][agent.spoke] The mill burned down.\n[turn 003][agent.reflected] A fire."
    )


def test_the_newest_turns_fill_a_number_of_tokens_and_the_last_may_exceed_it() -> None:
    turns = [turn(number, "The mill burned down.") for number in range(1, 6)]
    cost = estimate_tokens(f"{turns[0].line('Ann')}\n")
    newest = NewestTurns(turns, "Ann")
    assert [len(newest.within(tokens)) for tokens in (0, 1, cost, cost + 1, 100 * cost)] == [0, 1, 1, 2, 5]
    assert newest.within(cost) == {"D1:5"}


def covered(number: int, shown: int, newest: int = 0) -> Covered:
    return Covered(space="conv-1", number=number, evidence=2, shown=shown, newest=newest, tokens=10 * number)


def test_figures_are_shares_of_questions_and_changes_are_paired() -> None:
    figures = coverage.summarize(
        "window", AFTER_ALL, [covered(1, 0, 2), covered(2, 1, 1), covered(3, 2), covered(4, 2)]
    )
    assert (figures.tokens, figures.shares, figures.newest) == (
        25,
        {"any": 0.75, "all": 0.5},
        {"any": 0.5, "all": 0.25},
    )
    change = figures.change["any"]
    assert (change.difference, change.wins, change.losses) == (0.25, 2, 1)


def file_of(*questions: Covered, digest: str = "00") -> CoverageFile:
    views = (coverage.summarize("window", AFTER_ALL, questions),)
    return CoverageFile(file="locomo.json", file_sha256=digest, settings={}, views=views)


def asked(*numbers: int) -> list[Question]:
    return [Question("conv-1", number, "Ann", "What?", 1, ("D1:1", "D1:2")) for number in numbers]


def test_a_result_is_compared_with_one_of_the_same_questions_about_the_same_content_only() -> None:
    earlier = CoverageResult(files=(file_of(covered(1, 0), covered(2, 2)),))
    before = coverage.find_comparable(earlier, "locomo.json", "00", asked(2, 1))
    (view,) = coverage.compare(file_of(covered(1, 2), covered(2, 2)), before).views
    assert view.against_earlier is not None
    assert [view.against_earlier[name].difference for name in ("any", "all")] == [0.5, 0.5]
    with pytest.raises(SettingsError, match="Run with the same --limit"):
        coverage.find_comparable(earlier, "locomo.json", "00", asked(1))
    with pytest.raises(SettingsError, match="Evaluate the same file"):
        coverage.find_comparable(earlier, "locomo.json", "01", asked(1, 2))


# The command


def test_a_run_is_reported_saved_and_compared_with_itself(tmp_path: Path, file: Path) -> None:
    kept = tmp_path / "result.json"
    first = recallog("eval", "memory", file, "--index", "off", "--out", kept)
    assert first.code == 0
    assert re.search(r"asked after the conversation +tokens +any +newest +change", first.out)
    assert "changes from the newest turns" in first.err
    assert len(coverage.read(kept).files[0].views[0].questions) == 3
    again = recallog("eval", "memory", file, "--index", "off", "--against", kept)
    assert again.code == 0
    assert re.search(r"salient events .* \+0\.0 \[\+0\.0 to \+0\.0\]", again.out)
    assert f"from the same view in {kept}" in again.err
    other = recallog("eval", "memory", file, "--index", "off", "--against", kept, "--limit", 2)
    assert (other.code, "asks other questions" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--settings", "window=2"], "not JSON"),
        (["--settings", "[2]"], "not an object"),
        (["--settings", '{"windows": 2}'], "windows"),
        (["--out", "nowhere/at/all.json"], "does not exist"),
        (["--against", "absent.json"], "cannot read"),
        (["absent.json"], "cannot read"),
    ],
)
def test_wrong_options_are_a_usage_error_that_names_them(file: Path, options: list[str], why: str) -> None:
    ended = recallog("eval", "memory", file, "--index", "off", *options)
    assert (ended.code, ended.out) == (2, "")
    assert why in ended.err


def test_a_file_without_questions_has_nothing_to_measure(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text(json.dumps([conversation() | {"qa": []}]))
    ended = recallog("eval", "memory", tmp_path / "empty.json")
    assert (ended.code, "no question of the file has evidence" in ended.err) == (1, True)


@pytest.mark.parametrize(("content", "why"), [("{}", "files"), ("[", "JSON")])
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: str, why: str) -> None:
    (tmp_path / "no-result.json").write_text(content)
    with pytest.raises(SettingsError, match=f"not a result of `eval memory`: {why}"):
        coverage.read(tmp_path / "no-result.json")


def test_help_shows_an_example() -> None:
    assert "Example: recallog eval memory locomo10.json" in recallog("eval", "memory", "--help").out
