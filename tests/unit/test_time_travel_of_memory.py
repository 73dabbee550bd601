"""Time travel for every query: an answer as of a position equals the one given then."""

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Event, Memory, Position
from recallog.reading.time_travel import AsOf
from recallog_schemas.views import View
from support.events import event, run
from support.random_events import AGENTS, SPACES, random_event

EVENTS, MOMENTS = 150, 50
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

Ask = Callable[[Memory, str, str, AsOf | None], Awaitable[View]]

QUESTIONS: dict[str, Ask] = {
    "episodic": lambda memory, space, agent, as_of: memory.episodic(space, agent, as_of=as_of),
    "timeline": lambda memory, space, agent, as_of: memory.timeline(space, agent, limit=7, as_of=as_of),
    "salient": lambda memory, space, agent, as_of: memory.salient(space, agent, "bread of the mill", as_of=as_of),
    "reflection": lambda memory, space, agent, as_of: memory.reflection(space, agent, as_of=as_of),
    "beliefs": lambda memory, space, agent, as_of: memory.beliefs(space, agent, as_of=as_of),
    "beliefs for a reader": lambda memory, space, agent, as_of: memory.beliefs(
        space, agent, reader="judge", as_of=as_of
    ),
    "scene": lambda memory, space, agent, as_of: memory.scene(space, as_of=as_of),
    "context": lambda memory, space, agent, as_of: memory.context(space, agent, as_of=as_of),
    "context on a budget": lambda memory, space, agent, as_of: memory.context(
        space, agent, query="bread", budget_tokens=150, as_of=as_of
    ),
    "explain": lambda memory, space, agent, as_of: memory.explain(space, agent, "e-20", query="mill", as_of=as_of),
    "explain what came late": lambda memory, space, agent, as_of: memory.explain(space, agent, "e-120", as_of=as_of),
    "kinds": lambda memory, space, agent, as_of: memory.kinds(space, as_of=as_of),
    "agent_settings": lambda memory, space, agent, as_of: memory.agent_settings(space, agent, as_of=as_of),
}


def grown() -> list[Event]:
    dice = random.Random(2)
    return [random_event(dice).model_copy(update={"id": f"e-{number}"}) for number in range(EVENTS)]


def plain(answer: View) -> dict[str, Any]:
    """All fields of an answer except the generation of the views, in it and in the views within it."""
    fields = answer.model_dump(exclude={"generation"})
    return fields | {name: plain(getattr(answer, name)) for name in ("reflection",) if name in fields}


@pytest.mark.models("prompt")
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_as_of_a_position_is_the_one_given_right_after_it(tmp_path: Path, question: str) -> None:
    ask = QUESTIONS[question]
    dice = random.Random(question)

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            given = []
            for each in grown():
                position = await memory.publish(each)
                space, agent = dice.choice(SPACES), dice.choice(AGENTS)
                given.append((space, agent, position, plain(await ask(memory, space, agent, None))))
            for space, agent, position, then in dice.sample(given, MOMENTS):
                assert plain(await ask(memory, space, agent, position)) == then, (space, agent, position)

    run(work())


@pytest.mark.models("prompt")
def test_the_compared_answers_are_not_empty(tmp_path: Path) -> None:
    """The random events contain enough of every kind."""

    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await memory.publish_many(grown())
            agents = [(space, agent) for space in SPACES for agent in AGENTS]
            assert len(await memory.pending()) > 1
            assert all([(await memory.beliefs(*each)).beliefs for each in agents])
            assert all([(await memory.salient(*each, "bread")).memories for each in agents])
            assert any([(await memory.agent_settings(*each)).use_salience for each in agents])
            assert any([(await memory.context(*each, budget_tokens=150)).dropped for each in agents])

    run(work())


# As of a time: later events are ignored, later settings apply.


def minute(n: int) -> datetime:
    return NOON + timedelta(minutes=n)


def event_of(kind: str, at: int, text: str = "Bread!", **fields: Any) -> Event:
    """An event that happened at minute `at`, independently of its position."""
    return event(kind, at=minute(at), payload={"text": text}, **fields)


def configured(at: int, **payload: Any) -> Event:
    return event("agent.configured", at=minute(at), payload=payload)


def as_of(home: Path, moment: int, events: list[Event], ask: Callable[..., Awaitable[Any]], **question: Any) -> Any:
    async def work() -> Any:
        async with Memory.open(home) as memory:
            await memory.publish_many(events)
            return await ask(memory, as_of=minute(moment), **question)

    return run(work())


async def ask_salient(memory: Memory, **question: Any) -> Any:
    return await memory.salient("village", "baker", **question)


async def ask_reflection(memory: Memory, **question: Any) -> Any:
    return await memory.reflection("village", "baker", **question)


async def ask_beliefs(memory: Memory, **question: Any) -> Any:
    return await memory.beliefs("village", "baker", **question)


async def ask_scene(memory: Memory, **question: Any) -> Any:
    return await memory.scene("village", **question)


async def ask_context(memory: Memory, **question: Any) -> Any:
    return await memory.context("village", "baker", **question)


def texts(memories: Any) -> list[str]:
    return [memory.text for memory in memories]


def test_the_clock_of_salience_is_that_of_the_given_time(tmp_path: Path) -> None:
    events = [
        event_of("agent.spoke", 1, turn=3),
        event_of("agent.spoke", 9, turn=50),
        event("clock.ticked", at=minute(8)),
    ]
    view = as_of(tmp_path, 5, events, ask_salient)
    assert view.turn == 3
    assert texts(view.memories) == ["Bread!"]
    assert view.memories[0].recency == 1


def test_a_later_tick_does_not_move_the_clock(tmp_path: Path) -> None:
    ticked = event("clock.ticked", turn=80, at=minute(9), payload={})
    assert as_of(tmp_path, 5, [event_of("agent.spoke", 1, turn=3), ticked], ask_salient).turn == 3
    assert as_of(tmp_path, 9, [], ask_salient).turn == 80


@pytest.mark.models("beliefs")
def test_a_later_belief_is_not_shown(tmp_path: Path) -> None:
    events = [event_of("agent.reflected", 1, "Bread is dear."), event_of("agent.reflected", 9, "Bread is cheap.")]
    assert texts(as_of(tmp_path, 5, events, ask_beliefs).beliefs) == ["Bread is dear."]


def test_the_scene_is_that_of_the_given_time(tmp_path: Path) -> None:
    events = [event_of("world.observed", 1, "The mill turns."), event_of("world.observed", 9, "The mill burns.")]
    assert texts(as_of(tmp_path, 5, events, ask_scene).events) == ["The mill turns."]


@pytest.mark.models("beliefs")
def test_a_later_reflection_answers_no_trigger(tmp_path: Path) -> None:
    spoken = [event_of("agent.spoke", 1), event_of("agent.spoke", 2)]
    events = [configured(0, reflection_threshold=2), *spoken, event_of("agent.reflected", 9)]
    view = as_of(tmp_path, 5, events, ask_reflection)
    assert (view.due, view.events, view.last) == (True, 2, None)
    assert not as_of(tmp_path, 9, [], ask_reflection).due


@pytest.mark.models("beliefs")
def test_later_events_make_no_reflection_due(tmp_path: Path) -> None:
    events = [configured(0, reflection_threshold=2), event_of("agent.spoke", 1), event_of("agent.spoke", 9)]
    view = as_of(tmp_path, 5, events, ask_reflection)
    assert (view.due, view.events) == (False, 1)


@pytest.mark.models("prompt")
def test_a_later_visitor_is_not_shown(tmp_path: Path) -> None:
    events = [event_of("user.injected", 1, "Good day."), event_of("user.injected", 9, "Farewell.")]
    prompt = as_of(tmp_path, 5, events, ask_context)
    assert "Good day." in prompt.text
    assert "Farewell." not in prompt.text


@pytest.mark.models("prompt")
def test_later_settings_of_an_agent_apply(tmp_path: Path) -> None:
    spoken = [event_of("agent.spoke", 1), event_of("agent.spoke", 2)]
    later = configured(9, salience_top_k=1, reflection_threshold=2, persona="You are proud.")
    events = [*spoken, later]
    assert len(as_of(tmp_path, 5, events, ask_salient).memories) == 1
    assert "You are proud." in as_of(tmp_path, 5, [], ask_context).text
    view = as_of(tmp_path, 5, [], ask_reflection)
    assert (view.due, view.since) == (True, Position(0, 2))


def test_later_settings_of_a_space_apply(tmp_path: Path) -> None:
    later = event("space.configured", at=minute(9), payload={"scene_kinds": ["judge.verdict"]})
    events = [event_of("world.observed", 1, "The mill turns."), event_of("judge.verdict", 2, "Guilty."), later]
    assert texts(as_of(tmp_path, 5, events, ask_scene).events) == ["Guilty."]


@pytest.mark.models("prompt")
def test_a_later_event_is_unknown(tmp_path: Path) -> None:
    async def ask(memory: Memory, **question: Any) -> Any:
        return await memory.explain("village", "baker", "e-1", **question)

    found = as_of(tmp_path, 5, [event_of("agent.spoke", 9, "Fire!", id="e-1")], ask)
    assert (found.verdict, found.position, found.memory) == ("unknown", None, None)
    assert as_of(tmp_path, 9, [], ask).verdict == "remembered"
