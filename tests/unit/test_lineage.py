"""What an event or entry was made from, and what was made from it."""

import pytest

from recallog import Memory
from recallog_schemas.views import Lineage
from support.events import event, run

pytestmark = pytest.mark.models("long_term", "beliefs")


def told(links: object) -> list[tuple[str, str]]:
    return [(each.relation, each.id) for each in links]  # type: ignore[attr-defined]


async def bakery() -> Memory:
    """A baker hears two things, answers one, believes something because of both, and keeps a fact of the first."""
    memory = Memory.in_memory()
    await memory.publish_many(
        [
            event(id="e-1", kind="world.observed", payload={"text": "The mill burned down."}),
            event(id="e-2", agent="baker", payload={"text": "Then there is no flour."}, causation_id="e-1"),
            event(
                id="b-1",
                agent="baker",
                kind="agent.reflected",
                payload={"belief": "Bread will be dear.", "based_on": ["e-1", "e-2"]},
            ),
        ]
    )
    await memory.long_term.retain("village", "baker", "The mill is gone.", entry_id="l-1", based_on=["e-1"])
    return memory


def lineage(event_id: str, agent: str = "baker") -> Lineage:
    async def asked() -> Lineage:
        async with await bakery() as memory:
            return await memory.lineage("village", agent, event_id)

    return run(asked())


def test_an_event_has_its_cause_and_what_was_made_from_it() -> None:
    assert told(lineage("e-2").sources) == [("cause", "e-1")]
    assert told(lineage("e-1").products) == [("cause", "e-2"), ("source", "b-1"), ("source", "l-1")]


def test_a_belief_names_the_events_that_it_is_based_on() -> None:
    found = lineage("b-1")
    assert told(found.sources) == [("source", "e-1"), ("source", "e-2")]
    assert [link.memory and link.memory.preview for link in found.sources] == [
        "The mill burned down.",
        "Then there is no flour.",
    ]


def test_an_entry_names_its_sources() -> None:
    found = lineage("l-1")
    assert found.memory is not None
    assert found.memory.preview == "The mill is gone."
    assert told(found.sources) == [("source", "e-1")]


def test_what_the_agent_may_not_see_is_not_among_the_products() -> None:
    assert told(lineage("e-1", agent="miller").products) == [("source", "b-1")]  # reflections are shared


def test_of_a_source_that_the_agent_may_not_see_there_is_only_the_id() -> None:
    async def asked() -> Lineage:
        async with Memory.in_memory() as memory:
            await memory.publish(event(id="secret", agent="miller", kind="agent.thought", payload={"text": "Hush."}))
            await memory.publish(event(id="e-9", agent="baker", causation_id="secret"))
            return await memory.lineage("village", "baker", "e-9")

    (link,) = run(asked()).sources
    assert (link.id, link.memory) == ("secret", None)


@pytest.mark.parametrize("event_id", ["nothing", "secret"])
def test_an_event_that_the_agent_may_not_see_has_no_lineage(event_id: str) -> None:
    async def asked() -> Lineage:
        async with Memory.in_memory() as memory:
            await memory.publish(event(id="secret", agent="miller", kind="agent.thought", payload={"text": "Hush."}))
            return await memory.lineage("village", "baker", event_id)

    found = run(asked())
    assert (found.memory, found.sources, found.products, found.ok) == (None, (), (), False)


def test_what_was_made_later_is_not_in_the_past() -> None:
    async def asked() -> Lineage:
        async with await bakery() as memory:
            return await memory.lineage("village", "baker", "e-1", as_of="0:1")

    assert told(run(asked()).products) == [("cause", "e-2")]


def test_more_products_than_an_answer_has_are_counted() -> None:
    async def asked() -> Lineage:
        async with Memory.in_memory() as memory:
            await memory.publish(event(id="first", agent="baker"))
            await memory.publish_many(
                [event(id=f"e-{number}", agent="baker", causation_id="first") for number in range(103)]
            )
            return await memory.lineage("village", "baker", "first")

    found = run(asked())
    assert (len(found.products), found.left_out) == (100, 3)
    assert found.products[-1].id == "e-102"


def test_entries_that_the_agent_may_not_see_are_not_counted() -> None:
    async def asked() -> Lineage:
        async with Memory.in_memory() as memory:
            await memory.publish(event(id="e-1", kind="world.observed", payload={"text": "The mill burned down."}))
            await memory.long_term.retain("village", "baker", "The mill is gone.", entry_id="l-1", based_on=["e-1"])
            for number in range(102):
                await memory.long_term.retain("village", "miller", f"Secret {number}.", based_on=["e-1"])
            return await memory.lineage("village", "baker", "e-1")

    found = run(asked())
    assert (told(found.products), found.left_out) == ([("source", "l-1")], 0)
