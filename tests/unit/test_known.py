"""`known` of each answer about a space or an agent: whether any event is about it, and not only whether it is empty."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recallog import Memory, Position
from recallog.operations import pipeline
from recallog.operations.operation import Operation
from recallog_projections.index.engines.edge import EdgeEngine
from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import OfAgent, OfSpace
from support.events import event, run
from support.indexing import catch_up, indexing_of, memory_with

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

# Event n has the position 0:n, and happened n minutes after noon.
EVENTS = [
    event(space="city", agent="judge", at=NOON),
    event("world.observed", agent="narrator", id="shared", at=NOON + timedelta(minutes=1)),
    event(at=NOON + timedelta(minutes=2)),
    event("agent.thought", agent="miller", audience=["smith"], at=NOON + timedelta(minutes=3)),
    event("agent.configured", agent="widow", payload={"window": 3}, at=NOON + timedelta(minutes=4)),
]
ARGUMENTS: dict[str, Any] = {
    "event_id": "shared",
    "ids": ["shared"],
    "query": "Bread!",
    "since": "2000-01-01T00:00:00Z",
}
"""Of required parameters, beside the space and the agent."""

READS = {name: each for name, each in Memory.operations.items() if each.read_only}
OF_AGENT = {name: each for name, each in READS.items() if issubclass(each.answer, OfAgent)}
OF_SPACE = {name: each for name, each in READS.items() if issubclass(each.answer, OfSpace)}
IN_THE_PAST = {name: each for name, each in (OF_AGENT | OF_SPACE).items() if "as_of" in each.parameters}

ANYBODY = [
    ("village", "baker", True),  # spoke
    ("village", "miller", True),  # thought
    ("village", "narrator", True),  # has only shared events, which are in no agent's own log
    ("village", "smith", True),  # was only addressed
    ("village", "widow", True),  # has only bookkeeping, which is not remembered
    ("village", "stranger", False),
    ("village", "judge", False),  # acted in another space
    ("city", "judge", True),
    ("city", "baker", False),
]
GROWTH = [
    ("narrator", 1, True),
    ("baker", 1, False),
    ("baker", 2, True),
    ("smith", 2, False),
    ("smith", 3, True),
    ("widow", 3, False),
    ("widow", 4, True),
    ("stranger", 4, False),
]
"""Whether an agent of the village is known as of event n."""


def required_by(operation: Operation) -> set[str]:
    return {name for name, each in operation.parameters.items() if each.default is each.empty}


async def known(memory: Memory, operation: Operation, space: str, agent: str, **more: Any) -> bool:
    given = {**ARGUMENTS, "space": space, "agent": agent}
    answer = await pipeline.call(memory, operation, {name: given[name] for name in required_by(operation)} | more)
    return bool(answer.known)


def ask(operation: str, space: str, agent: str, **more: Any) -> bool:
    async def work() -> bool:
        async with Memory.in_memory() as memory:
            await memory.publish_many(EVENTS)
            return await known(memory, Memory.operations[operation], space, agent, **more)

    return run(work())


def test_every_operation_that_requires_a_space_says_whether_it_is_known() -> None:
    required = {name: required_by(each) for name, each in READS.items()}
    assert OF_AGENT.keys() == {name for name, each in required.items() if {"space", "agent"} <= each}
    assert OF_SPACE.keys() == {name for name, each in required.items() if "space" in each and "agent" not in each}


@pytest.mark.parametrize(
    ("operation", "space", "agent", "is_known"),
    # The event that `around` needs is in the village.
    [(name, *each) for name in OF_AGENT for each in ANYBODY if (name, each[0]) != ("around", "city")],
)
def test_an_agent_is_known_if_an_event_is_by_it_or_addressed_to_it(
    operation: str, space: str, agent: str, is_known: bool
) -> None:
    assert ask(operation, space, agent) == is_known


@pytest.mark.parametrize("operation", [*OF_SPACE, *OF_AGENT])
def test_nothing_is_known_of_a_space_without_events(operation: str) -> None:
    if operation == "around":
        with pytest.raises(OutOfRange, match="may see no event"):
            ask(operation, "nowhere", "baker")
    else:
        assert not ask(operation, "nowhere", "baker")


@pytest.mark.parametrize("operation", OF_SPACE)
def test_a_space_with_an_event_is_known(operation: str) -> None:
    assert ask(operation, "village", "")
    assert ask(operation, "city", "")


@pytest.mark.parametrize("operation", [name for name in OF_AGENT if name in IN_THE_PAST])
@pytest.mark.parametrize("by_time", [False, True], ids=["position", "time"])
@pytest.mark.parametrize(("agent", "number", "is_known"), GROWTH)
def test_an_agent_is_known_from_the_first_event_that_is_about_it(
    operation: str, by_time: bool, agent: str, number: int, is_known: bool
) -> None:
    assert ask(operation, "village", agent, as_of=moment(number, by_time)) == is_known


@pytest.mark.parametrize("operation", [name for name in OF_SPACE if name in IN_THE_PAST])
@pytest.mark.parametrize("by_time", [False, True], ids=["position", "time"])
def test_a_space_is_known_from_its_first_event(operation: str, by_time: bool) -> None:
    assert not ask(operation, "village", "", as_of=moment(0, by_time))
    assert ask(operation, "village", "", as_of=moment(1, by_time))


def moment(number: int, by_time: bool) -> Position | datetime:
    return EVENTS[number].at if by_time else Position(0, number)


@pytest.mark.parametrize("operation", OF_AGENT)
def test_an_index_changes_nothing_of_it(tmp_path: Path, operation: str) -> None:
    async def work() -> None:
        async with memory_with(tmp_path, lambda ledger: indexing_of(ledger, EdgeEngine(tmp_path / "engine"))) as memory:
            await memory.publish_many(EVENTS)
            assert memory._components.index is not None
            await catch_up(memory._components.index.indexer)
            for space, agent, is_known in ANYBODY:
                if (operation, space) != ("around", "city"):
                    found = await known(memory, Memory.operations[operation], space, agent)
                    assert found == is_known, (space, agent)

    run(work())
