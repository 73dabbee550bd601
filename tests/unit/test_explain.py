"""Explanations why an agent remembers an event or not: each verdict with its sentence."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.views import Explanation
from recallog_schemas import codec
from recallog_schemas.errors import InvalidArgument
from support.altering import plant_record
from support.events import event, run

pytestmark = pytest.mark.models("prompt")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "The miller waters the flour."


def event_of(number: int, kind: str = "agent.spoke", text: str = "Bread!", **fields: Any) -> Event:
    """The event `e-<number>` of turn and minute `number`."""
    at = NOON + timedelta(minutes=number)
    return event(kind, id=f"e-{number}", turn=number, at=at, payload={"text": text}, **fields)


def configured(**payload: Any) -> Event:
    return event("agent.configured", payload=payload)


def explained(home: Path, events: Sequence[Event], number: int, agent: str = "baker", **question: Any) -> Explanation:
    async def work() -> Explanation:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            return await memory.explain("village", agent, f"e-{number}", **question)

    return run(work())


def written_by_a_newer_recallog(home: Path, number: int) -> None:
    """Append an event that this version cannot read."""
    data = codec.encode(event_of(number)).replace(b'"schema_version":1', b'"schema_version":2')
    plant_record(home / "ledger.db", data, f"e-{number}")


# Remembered.


def test_an_event_within_the_window_is_remembered_for_its_age(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(n) for n in range(10)], 4)
    assert (found.verdict, found.in_episodic, found.newer, found.window) == ("remembered", True, 5, 8)
    assert found.why == "it is among the newest 8 events that baker may see (5 newer)"


def test_a_strong_event_is_remembered_for_its_salience_however_old(tmp_path: Path) -> None:
    settings = configured(use_salience=True, salience_top_k=2, window=1)
    found = explained(tmp_path, [event_of(0, "verdict.final"), *(event_of(n) for n in range(1, 5)), settings], 0)
    assert (found.verdict, found.in_episodic, found.in_salient, found.rank) == ("remembered", False, True, 1)
    assert found.why == "it ranks 1 of 5 by salience, and the strongest 2 are remembered"


def test_the_sections_of_the_prompt_that_show_an_event_are_named(tmp_path: Path) -> None:
    events = [
        event_of(0, "run.started"),
        event_of(1, "user.injected"),
        event_of(2, "agent.reflected"),
        event("tool.used", id="e-3", turn=3, at=NOON, payload={"tool": "oven"}),
        event_of(4, "world.observed"),
        event_of(5),
        event_of(6, agent="miller"),
    ]
    events[0] = event("run.started", id="e-0", at=NOON, payload={"goal": "Bake."})
    named = [explained(tmp_path, events if n == 0 else [], n).sections for n in range(7)]
    headings = ["SHARED GOAL", "VISITOR", "YOUR BELIEFS", "ACTION HISTORY", "CURRENT SCENE", "YOUR MEMORY"]
    assert named == [*((heading,) for heading in headings), ()]
    assert "  in the prompt under VISITOR\n" in explained(tmp_path, [], 1).format()


def test_the_evidence_of_a_due_reflection_is_in_the_output_format(tmp_path: Path) -> None:
    events = [configured(reflection_threshold=3), *(event_of(n) for n in range(12))]
    assert explained(tmp_path, events, 0).sections == ("OUTPUT FORMAT",)
    assert explained(tmp_path, [], 11).sections == ("YOUR MEMORY", "OUTPUT FORMAT")


def test_an_event_that_another_section_shows_is_remembered_however_old(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0, "user.injected"), *(event_of(n) for n in range(1, 2_200))], 0)
    assert (found.verdict, found.sections, found.in_episodic) == ("remembered", ("VISITOR",), False)
    assert (found.newer, found.why) == (2_199, "a section of the prompt shows it, though 2,199 are newer")


def test_without_a_query_relevance_is_that_of_the_prompt(tmp_path: Path) -> None:
    settings = configured(use_salience=True, salience_top_k=1, rag={"enabled": False})
    events = [settings, event_of(0, "world.observed", "The mill burns.")]
    events += [event_of(1, text="the mill"), event_of(2, text="bread")]
    assert explained(tmp_path, events, 1).query == "The mill burns."
    assert [explained(tmp_path, [], n).verdict for n in (1, 2)] == ["remembered", "outscored"]


# Not remembered, though the agent may see it.


def test_an_event_before_the_window_is_not_remembered(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(n) for n in range(10)], 1)
    assert (found.verdict, found.in_episodic, found.newer) == ("out_of_window", False, 8)
    assert found.why == "of the events that baker may see 8 are newer, and the window holds 8"


def test_a_weak_event_is_outscored_even_if_it_is_new(tmp_path: Path) -> None:
    events = [event_of(0, "verdict.final"), event_of(1, "judge.verdict"), event_of(2, "agent.thought")]
    found = explained(tmp_path, [configured(use_salience=True, salience_top_k=2), *events], 2)
    assert (found.verdict, found.in_episodic, found.in_salient, found.rank) == ("outscored", True, False, 3)
    assert found.why == "it ranks 3 of 3 by salience; the weakest of the strongest 2 has 0.627"


def test_a_query_changes_the_rank(tmp_path: Path) -> None:
    events = [configured(use_salience=True, salience_top_k=1), event_of(1, text="the mill"), event_of(2, text="bread")]
    assert explained(tmp_path, events, 1).verdict == "outscored"
    assert explained(tmp_path, [], 1, query="the mill").verdict == "remembered"
    assert explained(tmp_path, [], 1, top_k=2).verdict == "remembered"


@pytest.mark.parametrize("number", [0, 999])
def test_a_visible_event_older_than_the_newest_2000_is_not_reported_as_invisible(tmp_path: Path, number: int) -> None:
    """The agent's log and the shared one held all their events: together more than a query reads."""
    found = explained(tmp_path, [event_of(n, ("agent.spoke", "world.observed")[n % 2]) for n in range(3_000)], number)
    assert found.verdict != "not_visible"


def test_an_event_dropped_from_the_views_is_distinguished_from_an_invisible_one(
    tmp_path: Path,
) -> None:
    found = explained(tmp_path, [event_of(n) for n in range(2_100)], 50)
    assert (found.verdict, found.position, found.memory) == ("not_kept", Position(0, 50), None)
    assert found.newer == 2_049
    assert found.why == (
        "the views keep what baker may see from 0:100 on, and it is older. Query as of 0:50 to see whether it was "
        "remembered then"
    )


def test_newer_events_are_counted_beyond_those_that_the_logs_retain(tmp_path: Path) -> None:
    """The agent's own log still has the event, but the shared one has dropped most of the newer ones."""
    events = [*(event_of(n) for n in range(3)), *(event_of(n, "world.observed") for n in range(3, 2_503))]
    found = explained(tmp_path, [*events, event_of(2_503)], 1)
    assert (found.verdict, found.newer) == ("out_of_window", 2_502)
    assert found.why == "of the events that baker may see 2,502 are newer, and the window holds 8"


def test_a_dropped_event_of_another_is_not_visible(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0, agent="miller"), *(event_of(n) for n in range(1, 2_100))], 0)
    assert (found.verdict, found.newer, found.sections) == ("not_visible", None, ())


def test_a_dropped_event_is_remembered_as_of_its_own_time(tmp_path: Path) -> None:
    assert explained(tmp_path, [event_of(n) for n in range(2_100)], 50, as_of=Position(0, 50)).verdict == "remembered"


# Bookkeeping events and invisible events.


def test_an_invisible_event_has_the_verdict_not_visible(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0), event_of(1, agent="miller", text=SECRET)], 1)
    assert (found.verdict, found.position) == ("not_visible", Position(0, 1))
    assert found.why == "it is neither by baker nor addressed to baker, and was not shared when it was published"


@pytest.mark.parametrize(
    "secret",
    [
        event_of(0, agent="miller", text=SECRET),
        event_of(0, "agent.thought", agent="miller", text=SECRET),
        event_of(0, "user.injected", agent="visitor", text=SECRET, audience=["miller"]),
        event_of(0, "agent.reflected", agent="miller", text=SECRET, audience=[]),
        event_of(0, "image.generated", agent="miller", text=SECRET),
    ],
    ids=["speech", "thought", "whisper", "private belief", "unknown kind"],
)
def test_nothing_leaks_of_an_invisible_event(tmp_path: Path, secret: Event) -> None:
    found = explained(tmp_path, [secret, event_of(1)], 0, query="flour")
    assert (found.memory, found.rank, found.newer, found.sum()) == (None, None, None, "")
    assert SECRET not in found.model_dump_json()
    assert "miller" not in found.model_dump_json()
    assert secret.kind not in found.model_dump_json()


def test_invisible_events_are_not_counted_among_the_scored_ones(tmp_path: Path) -> None:
    assert explained(tmp_path, [event_of(0, agent="miller"), event_of(1)], 0).considered == 1


def test_no_agent_remembers_a_bookkeeping_event(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0, "clock.ticked")], 0)
    assert (found.verdict, found.memory) == ("bookkeeping", None)
    assert found.why == "clock.ticked is a bookkeeping kind, which no agent remembers"


def test_a_record_that_could_not_be_applied_is_a_dead_letter(tmp_path: Path) -> None:
    explained(tmp_path, [event_of(0)], 0)
    written_by_a_newer_recallog(tmp_path, 1)
    found = explained(tmp_path, [], 1)
    assert (found.verdict, found.position, found.memory) == ("dead_letter", Position(0, 1), None)
    assert found.why == "it could not be applied: future_schema. See: recallog dead-letters show 0:1"


# Unknown.


def test_an_id_without_an_event_is_unknown(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0)], 7)
    assert (found.verdict, found.position) == ("unknown", None)
    assert found.why == "there is no event of this id in village"


def test_an_event_of_another_space_is_unknown(tmp_path: Path) -> None:
    assert explained(tmp_path, [event_of(0, space="city")], 0).verdict == "unknown"


def test_every_id_is_unknown_in_an_empty_ledger(tmp_path: Path) -> None:
    assert explained(tmp_path, [], 0).verdict == "unknown"


def test_as_of_a_position_before_it_an_event_is_unknown(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0), event_of(1)], 1, as_of=Position(0, 0))
    assert (found.verdict, found.position) == ("unknown", None)
    assert found.why == "there is no event of this id in village"


def test_as_of_a_time_before_it_happened_an_event_is_unknown(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(0), event_of(5, text=SECRET)], 5, as_of=NOON)
    assert (found.verdict, found.position, found.memory) == ("unknown", None, None)
    assert found.why == "there was no event of this id in village then: it happened later"
    assert SECRET not in found.model_dump_json()


# Terms of the score.


def test_the_terms_of_the_score_are_returned_with_their_weights(tmp_path: Path) -> None:
    found = explained(tmp_path, [event_of(3, text="the mill turns"), event_of(10)], 3, query="mill")
    assert found.sum() == "0.30 x relevance 0.333 + 0.40 x recency 0.497 + 0.30 x importance 0.500 = 0.449"


def test_the_agent_s_own_weights_are_applied(tmp_path: Path) -> None:
    weights = configured(salience_weights={"relevance": 1.0, "recency": 0.0, "importance": 0.0})
    found = explained(tmp_path, [weights, event_of(3, text="the mill turns")], 3, query="mill")
    assert found.sum() == "1.00 x relevance 0.333 + 0.00 x recency 1.000 + 0.00 x importance 0.500 = 0.333"


@pytest.mark.parametrize(("field", "value"), [("top_k", 0), ("top_k", 2001), ("turn", -1), ("turn", 2**53)])
def test_an_argument_out_of_bounds_is_an_error_that_names_the_field(tmp_path: Path, field: str, value: int) -> None:
    with pytest.raises(InvalidArgument) as raised:
        explained(tmp_path, [], 0, **{field: value})
    assert raised.value.path == field
