"""Visibility: own, addressed and shared events. Worked examples on a real folder."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory, Position
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.kinds import CATALOGUE, shared_kinds
from recallog_schemas.views import EpisodicView
from support.events import event, run
from support.payloads import LEAST


def event_of(kind: str, agent: str, turn: int, text: str | None = None, **fields: Any) -> Event:
    return event(kind, agent=agent, turn=turn, payload={"text": text or f"{kind} {turn}"}, **fields)


def configured(agent: str = "baker", **payload: Any) -> Event:
    return event("agent.configured", agent=agent, payload=payload)


def sharing(*kinds: str, kind: str = "space.configured") -> Event:
    return event(kind, agent="narrator", payload={"shared_kinds": list(kinds)})


def view(home: Path, events: Iterable[Event], agent: str = "baker", **question: Any) -> EpisodicView:
    async def work() -> EpisodicView:
        async with Memory.open(home) as memory:
            await memory.publish_many(list(events))
            return await memory.episodic("village", agent, **question)

    return run(work())


def turns(home: Path, events: Iterable[Event], agent: str = "baker", **question: Any) -> list[int]:
    return [memory.event.turn for memory in view(home, events, agent, **question).memories]


# The window.


def test_of_five_observations_a_window_of_two_holds_the_last_two_in_order(tmp_path: Path) -> None:
    observed = [event_of("world.observed", "narrator", turn) for turn in range(5)]
    assert turns(tmp_path, observed, window=2) == [3, 4]


def test_of_ten_events_a_window_of_three_holds_three(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "baker", turn) for turn in range(10)], window=3) == [7, 8, 9]


def test_the_window_is_eight_by_default(tmp_path: Path) -> None:
    found = view(tmp_path, [event_of("agent.spoke", "baker", turn) for turn in range(20)])
    assert found.window == 8
    assert [memory.event.turn for memory in found.memories] == list(range(12, 20))


def test_an_agent_s_window_setting_applies_only_to_it(tmp_path: Path) -> None:
    events = [*(event_of("world.observed", "narrator", turn) for turn in range(20)), configured(window=3)]
    assert turns(tmp_path, events) == [17, 18, 19]
    assert len(turns(tmp_path, [], "miller")) == 8


def test_a_window_wider_than_the_default_shows_more(tmp_path: Path) -> None:
    events = [configured(window=15), *(event_of("agent.spoke", "baker", turn) for turn in range(20))]
    assert turns(tmp_path, events) == list(range(5, 20))


def test_a_window_of_null_is_the_default_again(tmp_path: Path) -> None:
    spoken = [event_of("agent.spoke", "baker", turn) for turn in range(20)]
    assert view(tmp_path, [*spoken, configured(window=3), configured(window=None)]).window == 8


def test_another_setting_does_not_change_the_window(tmp_path: Path) -> None:
    assert view(tmp_path, [configured(window=3), configured(persona="Proud.")]).window == 3


def test_the_window_of_a_query_takes_precedence(tmp_path: Path) -> None:
    spoken = [event_of("agent.spoke", "baker", turn) for turn in range(20)]
    assert len(turns(tmp_path, [*spoken, configured(window=3)], window=5)) == 5


@pytest.mark.parametrize("window", [0, -1, 2001])
def test_a_window_out_of_bounds_is_an_error(tmp_path: Path, window: int) -> None:
    with pytest.raises(InvalidArgument, match=r"^window: "):
        view(tmp_path, [], window=window)


def test_a_setting_is_not_remembered_and_does_not_count_in_the_window(tmp_path: Path) -> None:
    events = [event_of("agent.spoke", "baker", 1), configured(window=2), event_of("agent.spoke", "baker", 2)]
    assert turns(tmp_path, events) == [1, 2]


# Visibility.


def test_thoughts_are_visible_only_to_their_own_agent(tmp_path: Path) -> None:
    thoughts = [event_of("agent.thought", "baker", 1), event_of("agent.thought", "miller", 2)]
    assert turns(tmp_path, thoughts) == [1]


@pytest.mark.parametrize("kind", sorted(shared_kinds()))
def test_events_of_shared_kinds_are_visible_to_all(tmp_path: Path, kind: str) -> None:
    shared = event(kind, agent="narrator", turn=1, payload={"text": "t", **LEAST[kind]})
    assert turns(tmp_path, [shared]) == [1]


def test_speech_of_others_is_not_visible_by_default(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "miller", 1), event_of("clue.found", "miller", 2)]) == []


@pytest.mark.parametrize("kind", ["space.configured", "run.started"])
def test_shared_speech_is_visible_and_earlier_speech_stays_private(tmp_path: Path, kind: str) -> None:
    before, after = event_of("agent.spoke", "miller", 1), event_of("agent.spoke", "miller", 2)
    assert 1 not in turns(tmp_path, [before, sharing("agent.spoke", kind=kind), after])
    assert 2 in turns(tmp_path, [])


def test_an_event_that_was_shared_when_published_stays_shared(tmp_path: Path) -> None:
    events = [
        event_of("world.observed", "narrator", 1),
        sharing("agent.spoke"),
        event_of("world.observed", "narrator", 2),
    ]
    assert turns(tmp_path, events) == [1]


def test_shared_kinds_replace_the_set_and_null_restores_the_default(tmp_path: Path) -> None:
    default = event("space.configured", agent="narrator", payload={"shared_kinds": None})
    events = [sharing(), event_of("world.observed", "narrator", 1), default, event_of("world.observed", "narrator", 2)]
    assert turns(tmp_path, events) == [2]


def test_an_event_that_shares_its_own_kind_has_the_visibility_before_it(tmp_path: Path) -> None:
    started = event("run.started", agent="narrator", turn=1, payload={"goal": "g", "shared_kinds": []})
    assert turns(tmp_path, [started, event_of("world.observed", "narrator", 2)]) == [1]


def test_shared_kinds_apply_to_one_space(tmp_path: Path) -> None:
    elsewhere = event("space.configured", space="town", agent="narrator", payload={"shared_kinds": ["agent.spoke"]})
    assert turns(tmp_path, [elsewhere, event_of("agent.spoke", "miller", 1)]) == []


def test_an_addressed_event_is_visible_only_to_its_audience(tmp_path: Path) -> None:
    whisper = event_of("agent.thought", "miller", 1, audience=["baker", "smith"])
    assert turns(tmp_path, [whisper]) == [1]
    assert turns(tmp_path, [], "smith") == [1]
    assert turns(tmp_path, [], "widow") == []


def test_an_agent_sees_its_own_event_addressed_to_others(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "baker", 1, audience=["miller"])]) == [1]


def test_an_audience_narrows_a_shared_kind(tmp_path: Path) -> None:
    verdict = event_of("judge.verdict", "judge", 1, audience=["miller"])
    assert turns(tmp_path, [verdict]) == []
    assert turns(tmp_path, [], "miller") == [1]
    assert turns(tmp_path, [], "judge") == [1]


def test_an_event_with_an_empty_audience_is_private(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("world.observed", "narrator", 1, audience=[])]) == []
    assert turns(tmp_path, [], "narrator") == [1]


def test_a_name_given_twice_in_an_audience_counts_once(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "miller", 1, audience=["baker", "baker", "miller"])]) == [1]
    assert turns(tmp_path, [], "miller") == [1]


def test_nothing_of_one_space_is_visible_in_another(tmp_path: Path) -> None:
    events = [
        event_of("world.observed", "narrator", 1, space="town"),
        event_of("agent.spoke", "baker", 2, space="village/inn"),
    ]
    assert turns(tmp_path, events) == []


# An agent first seen late.


def pure(events: Iterable[Event], agent: str) -> list[Event]:
    """The turns that `agent` may see in the whole run: a second implementation of the rules of visibility."""
    shared: Collection[str] = shared_kinds()
    seen = []
    for each in events:
        public = each.audience is None and each.kind in shared
        kind = CATALOGUE.get(each.kind)
        episode = kind is None or kind.is_episode
        if episode and (public or each.agent == agent or agent in (each.audience or ())):
            seen.append(each)
        if each.kind == "space.configured" or (each.kind == "run.started" and each.payload.get("shared_kinds")):
            shared = each.payload["shared_kinds"]
    return seen


def test_an_agent_first_seen_after_fifty_events_remembers_earlier_shared_events(tmp_path: Path) -> None:
    kinds = ["world.observed", "agent.spoke", "agent.thought", "user.injected", "judge.verdict"]
    events = [event_of(kinds[turn % 5], f"agent-{turn % 3}", turn) for turn in range(50)]
    events += [event_of("agent.thought", "late", 50), event_of("world.observed", "narrator", 51)]
    found = view(tmp_path, events, "late", window=100)
    assert [memory.event for memory in found.memories] == pure(events, "late")
    assert len(found.memories) == 32


AGENTS = ["baker", "miller", "smith", "late"]
some_events = st.one_of(
    st.builds(
        lambda kind, agent, audience: event(kind, agent=agent, audience=audience, payload={"text": "t"}),
        st.sampled_from(["agent.spoke", "world.observed", "agent.thought", "clock.ticked", "image.generated"]),
        st.sampled_from(AGENTS),
        st.none() | st.none() | st.lists(st.sampled_from(AGENTS), max_size=2),
    ),
    st.builds(
        lambda shared, kind: sharing(*shared, kind=kind),
        st.lists(st.sampled_from(["agent.spoke", "world.observed", "image.generated"]), min_size=1, max_size=2),
        st.sampled_from(["space.configured", "run.started"]),
    ),
)


@settings(max_examples=60)
@given(st.lists(some_events, max_size=25), st.sampled_from(AGENTS), st.integers(1, 30))
def test_memory_is_a_pure_function_of_the_ledger(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], agent: str, window: int
) -> None:
    found = view(tmp_path_factory.mktemp("memory"), events, agent, window=window)
    assert [memory.event for memory in found.memories] == pure(events, agent)[-window:]


# Text.


def test_a_memory_is_shown_with_its_turn_and_kind(tmp_path: Path) -> None:
    events = [
        event_of("world.observed", "narrator", 3, "The mill burned."),
        event_of("agent.spoke", "baker", 1204, "[Oh]"),
    ]
    assert (
        view(tmp_path, events).format()
        == "[turn 003][world.observed][narrator] The mill burned.\n[turn 1204][agent.spoke] [Oh]"
    )


def test_an_empty_memory_is_stated(tmp_path: Path) -> None:
    assert view(tmp_path, []).format() == "(no prior memory)"


def test_an_answer_carries_its_checkpoint(tmp_path: Path) -> None:
    assert view(tmp_path, []).checkpoint is None
    found = view(tmp_path, [event_of("agent.spoke", "baker", turn) for turn in range(3)])
    assert found.checkpoint == Position(0, 2)
    assert found.generation
    assert [memory.position for memory in found.memories] == [Position(0, 0), Position(0, 1), Position(0, 2)]


def test_an_unknown_space_or_agent_has_an_empty_memory(tmp_path: Path) -> None:
    assert turns(tmp_path, [event_of("agent.spoke", "baker", 1)], "nobody") == []

    async def work() -> int:
        async with Memory.open(tmp_path) as memory:
            return len((await memory.episodic("nowhere", "baker")).memories)

    assert run(work()) == 0


@pytest.mark.parametrize("name", ["", "a ", "-", "a\n", "a" * 257])
def test_a_query_with_an_invalid_name_is_an_error_that_quotes_it(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            for field, question in (
                ("space", memory.episodic(name, "baker")),
                ("agent", memory.episodic("village", name)),
                ("space", memory.timeline(name, "baker")),
                ("agent", memory.timeline("village", name)),
                ("space", memory.space(name)),
            ):
                with pytest.raises(InvalidArgument) as raised:
                    await question
                assert raised.value.path == field

    run(work())
