"""Random histories of beliefs and their grounds: the graph equals one that is recomputed naively from the ledger, for
each reader, now and at any moment of the past, before and after a rebuild."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog import Event, Memory
from recallog_schemas import codec
from support.beliefs_oracle import expect_graph, observed
from support.campaigns import trials
from support.events import run

pytestmark = pytest.mark.models("beliefs", "long_term")

SPACE = "village"
AGENTS = ("baker", "miller", "smith")
SUBJECTS = ("the miller", "The  Miller", "trade", "TRADE ", "the weir")
SHARED = ["agent.reflected", "world.observed"]


def random_history(choose: random.Random, size: int) -> list[dict[str, Any]]:
    """Events of agents that believe, keep entries, and correct, retract and forget them; some of them not their own."""
    events: list[dict[str, Any]] = []
    beliefs: list[str] = []
    entries: list[str] = []
    for number in range(size):
        agent = choose.choice(AGENTS)
        audience = choose.choice([None, None, None, [], [choose.choice(AGENTS)]])
        event: dict[str, Any] = {"space": SPACE, "agent": agent, "id": f"e-{number}", "audience": audience}
        dice = choose.random()
        if dice < 0.6 or not entries:
            payload: dict[str, Any] = {"belief": f"Belief {number}."}
            if choose.random() < 0.9:
                names = choose.sample(SUBJECTS, choose.randint(1, 2))
                payload["about"] = names[0] if len(names) == 1 else names
            if choose.random() < 0.8:
                payload["stance"] = choose.choice(["for", "against"])
            if beliefs and choose.random() < 0.3:
                payload["supersedes"] = choose.choice(beliefs)
            grounds = [*beliefs, *entries, "nothing"]
            payload["based_on"] = choose.sample(grounds, min(len(grounds), choose.randint(0, 3)))
            event |= {"kind": "agent.reflected", "payload": payload}
            beliefs.append(event["id"])
            if not entries:
                entries.append(f"entry-{number}")
                events.append(_entry(entries[-1], choose.choice(AGENTS), audience, number))
        elif dice < 0.7:
            entries.append(f"entry-{number}")
            event = _entry(entries[-1], agent, audience, number)
        elif dice < 0.75:
            shared = choose.choice([SHARED, SHARED[1:]])
            event |= {"kind": "space.configured", "payload": {"shared_kinds": shared}, "audience": None}
        else:
            entry = choose.choice(entries)
            kind, payload = choose.choice(
                [
                    ("memory.updated", {"entry": entry, "text": f"Text {number} of {entry} is another one."}),
                    ("memory.retracted", {"entry": entry}),
                    ("memory.erased", {"entries": [entry]}),
                ]
            )
            event |= {"kind": kind, "payload": payload, "audience": None}
        events.append(event)
    return events


def _entry(id_: str, agent: str, audience: list[str] | None, number: int) -> dict[str, Any]:
    payload = {"text": f"Text {number} was kept as {id_}.", "type": "note"}
    return {
        "space": SPACE, "agent": agent, "id": id_, "kind": "memory.retained", "payload": payload, "audience": audience
    }  # fmt: skip


async def history_of(memory: Memory) -> list[tuple[int, Event]]:
    return [(offset, codec.decode(data)) async for batch in memory.admin.records() for offset, data in batch.records]


@settings(max_examples=trials(25, of=400), deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(1, 90))
def test_the_graph_equals_a_naive_recomputation(seed: int, size: int) -> None:
    async def work() -> None:
        choose = random.Random(seed)
        async with Memory.in_memory() as memory:
            await memory.publish_many(random_history(choose, size))
            history = await history_of(memory)

            async def check() -> None:
                for reader in (*AGENTS, "stranger"):
                    graph = await memory.beliefs.graph(SPACE, reader)
                    assert observed(graph) == expect_graph(history, reader)
                    of_one = await memory.beliefs.graph(SPACE, reader, about="the MILLER")
                    assert observed(of_one) == expect_graph(history, reader, "the miller")
                    found = await memory.beliefs.contradictions(SPACE, reader)
                    opposite = [each for each in graph.edges if each.relation in ("contradicts", "disputes")]
                    assert [
                        (each.relation, each.subject, each.later.event.id, each.earlier.event.id)
                        for each in reversed(found.contradictions)
                    ] == [(each.relation, each.subject, each.source, each.target) for each in opposite]

            await check()
            reader, until = choose.choice(AGENTS), choose.randrange(len(history))
            then = await memory.beliefs.graph(SPACE, reader, as_of=f"0:{until}")
            assert observed(then) == expect_graph(history, reader, until=until)
            await memory.admin.rebuild("views")
            await check()

    run(work())


def test_of_more_beliefs_than_the_views_retain_the_newest_are_linked() -> None:
    """The agent's own log and the log of the space drop beliefs at different moments."""

    async def work() -> None:
        async with Memory.in_memory() as memory:
            events = [
                {
                    "space": SPACE,
                    "agent": AGENTS[number % 2],
                    "id": f"b-{number}",
                    "kind": "agent.reflected",
                    "payload": {
                        "belief": f"Belief {number}.",
                        "about": SUBJECTS[number % 5 if number % 10 else 0],
                        "stance": "for" if number % 3 else "against",
                        "supersedes": f"b-{number - 40}",
                    },
                    "audience": [] if number < 300 and number % 2 else None,
                }
                for number in range(700)
            ]
            for first in range(0, 700, 100):
                await memory.publish_many(events[first : first + 100])
            history = await history_of(memory)
            for reader in (*AGENTS, "stranger"):
                assert observed(await memory.beliefs.graph(SPACE, reader)) == expect_graph(history, reader)

    run(work())


def test_what_an_agent_may_not_see_changes_nothing_of_its_graph() -> None:
    """Neither an edge nor its absence, a number, or a belief that others push out."""

    async def work() -> None:
        answers = []
        for hidden in (0, 400):
            async with Memory.in_memory() as memory:
                await memory.publish_many(
                    [
                        _belief("b-0", "baker", "for"),
                        _belief("b-1", "miller", "against"),
                        _belief("b-2", "baker", "for"),
                    ]
                )
                for number in range(hidden):
                    supersedes = ("b-0", "b-1")[number % 2]
                    await memory.publish(
                        _belief(f"h-{number}", ("baker", "miller")[number % 2], "against", [], supersedes=supersedes)
                    )
                graph = await memory.beliefs.graph(SPACE, "smith")
                answers.append(graph.model_dump(exclude={"generation", "checkpoint"}))
        assert answers[0] == answers[1]
        assert len(answers[0]["edges"]) == 3

    run(work())


def _belief(id_: str, agent: str, stance: str, audience: list[str] | None = None, **more: str) -> dict[str, Any]:
    payload = {"belief": f"Belief {id_}.", "about": "the weir", "stance": stance, **more}
    return {
        "space": SPACE, "agent": agent, "id": id_, "kind": "agent.reflected", "payload": payload, "audience": audience,
        "at": "2026-03-01T12:00:00Z",
    }  # fmt: skip
