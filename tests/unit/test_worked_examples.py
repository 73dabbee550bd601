"""The worked examples of the ledger-view memory document and of the memory model, one by one.

Those that need a semantic index (it raises on every call, the same events indexed twice, of equal texts the newer one
scores higher) come with the index.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from recallog import Event, Memory, Position
from recallog_schemas.views import EpisodicView, SalientView, View
from support.events import after, event, numbered

if TYPE_CHECKING:
    from recallog_schemas.models.beliefs.views import ReflectionView

AGENTS = ("baker", "miller", "narrator", "nobody")


def event_of(kind: str, agent: str = "baker", turn: int = 0, text: str = "Bread!", **fields: Any) -> Event:
    return event(kind, agent=agent, turn=turn, payload={"text": text}, **fields)


def reflecting_every(threshold: int, agent: str = "baker") -> Event:
    return event("agent.configured", agent=agent, payload={"reflection_threshold": threshold})


def spoken(count: int, agent: str = "baker") -> list[Event]:
    return [event_of("agent.spoke", agent) for _ in range(count)]


def episodic(home: Path, events: Sequence[Event], agent: str = "baker", **question: Any) -> EpisodicView:
    return after(home, events, lambda memory: memory.episodic("village", agent, **question))


def turns(home: Path, events: Sequence[Event], agent: str = "baker", **question: Any) -> list[int]:
    return [memory.event.turn for memory in episodic(home, events, agent, **question).memories]


def salient(home: Path, events: Sequence[Event], query: str = "", **question: Any) -> SalientView:
    return after(home, events, lambda memory: memory.salient("village", "baker", query, **question))


def reflection(home: Path, *events: Event, agent: str = "baker") -> "ReflectionView":
    return after(home, events, lambda memory: memory.reflection("village", agent))


async def records(memory: Memory) -> int:
    return (await memory.admin.ledger_ends())[0]


# The ledger.


def test_the_same_event_id_appended_twice_is_one_event(tmp_path: Path) -> None:
    async def ask(memory: Memory) -> int:
        await memory.publish(one)
        return await records(memory)

    one = event(id="e-1")
    assert after(tmp_path, [one], ask) == 1


def test_an_event_twice_in_one_call_is_one_event(tmp_path: Path) -> None:
    one = event(id="e-1")
    assert after(tmp_path, [one, one], records) == 1


def test_a_ledger_that_is_opened_again_still_has_one_event_and_its_turn_42(tmp_path: Path) -> None:
    one = event(id="e-1", turn=42)
    after(tmp_path, [one], records)
    assert turns(tmp_path, [one]) == [42]


def test_of_six_events_the_tail_from_offset_3_is_three(tmp_path: Path) -> None:
    async def tail(memory: Memory) -> list[int]:
        return [offset async for batch in memory.admin.records(Position(0, 3)) for offset, _ in batch.records]

    assert after(tmp_path, numbered(6), tail) == [3, 4, 5]


def test_after_four_events_the_next_offset_is_four(tmp_path: Path) -> None:
    assert after(tmp_path, numbered(4), records) == 4


@pytest.mark.parametrize("kind", ["nodot", "Bad.Kind", "bad kind", "trailing.", ".leading", "two..dots"])
def test_malformed_kinds_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="kind"):
        event(kind)


@pytest.mark.parametrize("kind", ["clue.found", "image.generated"])
def test_well_formed_kinds_are_accepted(kind: str) -> None:
    assert event(kind).kind == kind


def test_an_unknown_field_of_the_envelope_is_refused() -> None:
    with pytest.raises(ValueError, match="mood"):
        event(mood="sour")


def test_the_schema_version_of_a_payload_defaults_to_1() -> None:
    assert event().schema_version == 1


# The window.


def test_of_five_observations_a_window_of_two_holds_turns_3_and_4(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("world.observed", turn=turn) for turn in range(5)], window=2) == [3, 4]


def test_of_ten_events_a_window_of_three_holds_three(tmp_path: Path) -> None:
    assert len(turns(tmp_path, numbered(10), window=3)) == 3


def test_the_default_window_is_eight(tmp_path: Path) -> None:
    assert len(turns(tmp_path, numbered(10))) == 8


# Visibility.


def test_another_s_thought_is_never_visible(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.thought", "miller")]) == []


def test_one_s_own_thought_is_visible(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.thought", turn=1)]) == [1]


@pytest.mark.parametrize("kind", ["user.injected", "world.observed"])
def test_events_of_others_of_these_kinds_are_visible(tmp_path: Path, kind: str) -> None:
    assert turns(tmp_path, [event_of(kind, "narrator", turn=1)]) == [1]


def test_another_s_speech_is_not_visible_by_default(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "miller")]) == []


def test_another_s_speech_is_visible_if_the_run_shares_it(tmp_path: Path) -> None:
    started = event("run.started", agent="narrator", payload={"shared_kinds": ["agent.spoke"]})
    assert turns(tmp_path, [started, event_of("agent.spoke", "miller", turn=1)]) == [0, 1]


# Salience.


@pytest.mark.parametrize(
    ("kind", "turns_old", "score"),
    [
        ("user.injected", 0, 0.685),
        ("agent.spoke", 0, 0.55),
        ("agent.thought", 0, 0.52),
        ("world.observed", 7, 0.40863),
        ("judge.verdict", 20, 0.32413),
        ("judge.verdict", 5, 0.51261),
        ("run.started", 10, 0.23715),
        ("image.generated", 3, 0.44633),
    ],
)
def test_without_a_query_an_event_scores(tmp_path: Path, kind: str, turns_old: int, score: float) -> None:
    view = salient(tmp_path, [event_of(kind, turn=40 - turns_old), event("clock.ticked", turn=40)])
    assert [round(memory.score, 5) for memory in view.memories] == [score]


def test_a_final_verdict_of_this_turn_that_is_all_of_the_query_scores_one_the_maximum(tmp_path: Path) -> None:
    (memory,) = salient(tmp_path, [event_of("verdict.final", text="Guilty as charged")], "guilty AS charged").memories
    assert memory.score == pytest.approx(1.0, abs=1e-12)
    assert (memory.relevance, memory.recency, memory.importance) == (1, 1, 1)


def test_of_ten_observations_three_are_salient_in_the_order_of_their_turns(tmp_path: Path) -> None:
    view = salient(tmp_path, [event_of("world.observed", turn=turn) for turn in range(10)], top_k=3)
    assert [memory.event.turn for memory in view.memories] == [7, 8, 9]


def test_the_newer_of_two_events_with_equal_scores_is_salient(tmp_path: Path) -> None:
    (memory,) = salient(tmp_path, [event_of("agent.spoke"), event_of("agent.spoke")], top_k=1).memories
    assert memory.position == Position(0, 1)


def test_salient_events_are_in_ledger_order_also_within_a_turn(tmp_path: Path) -> None:
    """The original sorted by turn alone, and events of one turn by score."""
    events = [event_of("agent.thought"), event_of("user.injected"), event_of("agent.spoke")]
    assert [memory.position.offset for memory in salient(tmp_path, events).memories] == [0, 1, 2]


# Reflection.


@pytest.mark.models("beliefs")
def test_with_threshold_5_three_visible_events_make_no_reflection_due(tmp_path: Path) -> None:
    assert not reflection(tmp_path, reflecting_every(5), *spoken(3)).due


@pytest.mark.models("beliefs")
def test_with_threshold_5_five_visible_events_make_one_due_and_a_second_query_makes_no_other(tmp_path: Path) -> None:
    first = reflection(tmp_path, reflecting_every(5), *spoken(5))
    assert first.due
    assert reflection(tmp_path) == first


@pytest.mark.models("beliefs")
def test_with_threshold_3_a_reflection_is_due_after_3_and_once_it_is_given_after_3_more(tmp_path: Path) -> None:
    first = reflection(tmp_path, reflecting_every(3), *spoken(3))
    assert first.due
    assert not reflection(tmp_path, first.answer("Bread."), *spoken(2)).due
    second = reflection(tmp_path, *spoken(1))
    assert second.due
    assert second.trigger != first.trigger


@pytest.mark.models("beliefs")
def test_with_threshold_3_speech_of_peers_makes_none_due(tmp_path: Path) -> None:
    view = reflection(tmp_path, reflecting_every(3), *spoken(3, "miller"))
    assert (view.due, view.events) == (False, 0)


@pytest.mark.models("beliefs")
def test_with_threshold_5_a_count_that_jumps_from_4_to_7_makes_exactly_one_due(tmp_path: Path) -> None:
    """The original tested whether the count is a multiple of the threshold, and missed this case."""
    assert not reflection(tmp_path, reflecting_every(5), *spoken(4)).due
    view = reflection(tmp_path, *spoken(3))
    assert (view.due, view.events, view.since) == (True, 7, Position(0, 5))
    (pending,) = after(tmp_path, [], lambda memory: memory.pending())
    assert (pending.trigger, pending.events) == (view.trigger, 7)


@pytest.mark.models("beliefs")
def test_with_threshold_5_twelve_events_at_once_make_one_due_until_a_reflection_lands(tmp_path: Path) -> None:
    view = reflection(tmp_path, reflecting_every(5), *spoken(12))
    assert len(after(tmp_path, [], lambda memory: memory.pending())) == 1
    answered = reflection(tmp_path, view.answer("Bread."))
    assert (answered.due, answered.events) == (False, 0)


@pytest.mark.models("beliefs")
def test_one_s_own_reflection_resets_the_count_to_zero(tmp_path: Path) -> None:
    assert reflection(tmp_path, reflecting_every(5), *spoken(4), event_of("agent.reflected")).events == 0


@pytest.mark.models("beliefs")
def test_a_peer_s_reflection_counts_one(tmp_path: Path) -> None:
    assert reflection(tmp_path, reflecting_every(5), *spoken(4), event_of("agent.reflected", "miller")).events == 5


# Replay.


def busy_run() -> list[Event]:
    """Events of all kinds that memory uses, by two agents and a narrator."""
    settings = [reflecting_every(3), reflecting_every(4, "miller")]
    kinds = ["world.observed", "agent.spoke", "user.injected", "agent.thought", "agent.reflected", "clock.ticked"]
    acts = [event_of(kinds[turn % 6], AGENTS[turn % 3], turn, f"Word {turn % 7} of {turn}") for turn in range(50)]
    return [*settings, *acts]


async def everything(memory: Memory) -> list[View]:
    """All answers about every agent, and the pending triggers."""
    answers: list[View] = [await memory.scene("village"), *await memory.pending()]
    for agent in AGENTS:
        answers += [
            await memory.episodic("village", agent, window=100),
            await memory.salient("village", agent, "word 3"),
            await memory.reflection("village", agent),
            await memory.beliefs("village", agent),
        ]
    return [answer.model_copy(update={"generation": ""}) for answer in answers]


@pytest.mark.models("beliefs")
def test_views_that_are_wiped_and_replayed_are_the_same_for_every_agent(tmp_path: Path) -> None:
    before = after(tmp_path, busy_run(), everything)
    for file in tmp_path.glob("views*"):
        file.unlink()
    assert after(tmp_path, [], everything) == before


@pytest.mark.models("beliefs")
def test_a_replay_publishes_nothing(tmp_path: Path) -> None:
    async def rebuilt(memory: Memory) -> int:
        assert await memory.pending()
        await memory.admin.rebuild()
        return await records(memory)

    assert after(tmp_path, busy_run(), rebuilt) == len(busy_run())


@pytest.mark.models("beliefs")
def test_an_agent_that_first_acts_after_fifty_events_remembers_what_a_pure_function_finds(tmp_path: Path) -> None:
    shared = {"world.observed", "judge.verdict", "user.injected", "run.started", "agent.reflected"}
    events = [*busy_run(), event_of("agent.thought", "late", 50)]
    visible = [each for each in events if each.kind in shared or each.agent == "late"]
    found = episodic(tmp_path, events, "late", window=100)
    assert [memory.event for memory in found.memories] == visible
