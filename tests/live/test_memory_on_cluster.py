"""A memory on Kafka and Redis answers every query like an embedded memory with the same events."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from live.conftest import NewRedis
from live.support import Cluster
from recallog import Event, Memory, Position
from recallog_schemas.errors import OutOfRange, Rebuilding
from support.events import MOMENT, event
from support.random_events import AGENTS, SPACES, random_event

EVENTS = 240
WITHOUT = {"generation", "checkpoint", "partition", "ledger", "ledger_bytes", "views_bytes"}
"""What is different in two memories that say the same."""


@dataclass
class Both:
    """A memory on a cluster and an embedded one, with the positions of the events in each."""

    cluster: Memory
    embedded: Memory
    events: list[Event]
    positions: dict[int, dict[Position, str]]
    last: dict[int, dict[str, Position]]
    """By memory and space: the position of the space's last event."""

    async def publish(self, events: list[Event]) -> None:
        for memory in (self.cluster, self.embedded):
            for each, position in zip(events, await memory.publish_many(events), strict=True):
                self.positions.setdefault(id(memory), {})[position] = each.id
                self.last.setdefault(id(memory), {})[each.space] = position
        self.events += events

    async def ask(self, question: Callable[[Memory], Awaitable[Any]]) -> Any:
        """The answer of both, which must be equal after positions are replaced by the events at them."""
        await self.cluster.catch_up()
        answers = [self.plain(memory, await question(memory)) for memory in (self.cluster, self.embedded)]
        assert answers[0] == answers[1]
        return answers[0]

    def after(self, memory: Memory, space: str) -> Position:
        return self.last[id(memory)][space]

    def position_of(self, memory: Memory, wanted: Event) -> Position:
        return next(position for position, id_ in self.positions[id(memory)].items() if id_ == wanted.id)

    def plain(self, memory: Memory, value: Any) -> Any:
        if isinstance(value, BaseModel):
            return {
                name: self.plain(memory, getattr(value, name))
                for name in type(value).model_fields
                if name not in WITHOUT
            }
        if isinstance(value, Position):
            return self.positions[id(memory)].get(value, "an answer to a trigger")
        if isinstance(value, list | tuple):
            return [self.plain(memory, item) for item in value]
        return value


async def opened(cluster: Cluster, folder: Path) -> AsyncIterator[Both]:
    async with AsyncExitStack() as open_:
        on_cluster = await open_.enter_async_context(Memory.open(cluster.settings))
        embedded = await open_.enter_async_context(Memory.open(folder / "embedded"))
        both = Both(on_cluster, embedded, [], {}, {})
        rng = random.Random(20261122)
        await both.publish([random_event(rng) for _ in range(EVENTS)])
        yield both


@pytest.mark.models("prompt")
def test_every_query_has_the_answer_of_an_embedded_memory(cluster: Cluster, tmp_path: Path) -> None:
    async def work() -> None:
        async for both in opened(cluster, tmp_path):
            await ask_everything(both)
            await ask_the_past(both)
            await operate(both)
            await react(both)

    asyncio.run(work())


async def ask_everything(both: Both) -> None:
    """Every query, for agents that exist and for one that does not."""
    for space in (*SPACES, "nowhere"):
        await both.ask(lambda memory, space=space: memory.scene(space))  # type: ignore[misc]
        await both.ask(lambda memory, space=space: memory.space(space))  # type: ignore[misc]
        await both.ask(lambda memory, space=space: memory.pending(space))  # type: ignore[misc]
        for agent in (*AGENTS, "stranger"):
            await ask_about(both, space, agent)
    assert [found["space"] for found in (await both.ask(lambda memory: memory.spaces()))["items"]] == sorted(SPACES)
    assert (await both.ask(lambda memory: memory.pending()))["items"]
    assert await both.ask(lambda memory: memory.admin.dead_letters()) == {"items": [], "next": None}


async def ask_about(both: Both, space: str, agent: str) -> None:
    questions: list[Callable[[Memory], Awaitable[Any]]] = [
        lambda memory: memory.episodic(space, agent),
        lambda memory: memory.episodic(space, agent, window=50),
        lambda memory: memory.timeline(space, agent, limit=20),
        lambda memory: memory.timeline(space, agent, kinds=["agent.spoke"], session="morning"),
        lambda memory: memory.salient(space, agent),
        lambda memory: memory.salient(space, agent, "bread of the mill", top_k=5, turn=50),
        lambda memory: memory.reflection(space, agent),
        lambda memory: memory.beliefs(space, agent),
        lambda memory: memory.beliefs(space, agent, reader="judge"),
        lambda memory: memory.context(space, agent, budget_tokens=600),
        lambda memory: memory.agent_settings(space, agent),
    ]
    questions += [
        lambda memory, each=each: memory.explain(space, agent, each.id, query="bread")  # type: ignore[misc]
        for each in both.events[-3:]
    ]
    for question in questions:
        await both.ask(question)


async def ask_the_past(both: Both) -> None:
    """Queries as of positions and times, and all pages of timelines."""
    space = SPACES[0]
    chosen = [one for one in both.events if one.space == space][len(both.events) // 5]
    times = [datetime.fromisoformat(MOMENT) + timedelta(minutes=20), datetime.now(UTC)]
    for agent in AGENTS:
        then = await both.ask(
            lambda memory, agent=agent: memory.episodic(space, agent, as_of=both.position_of(memory, chosen))  # type: ignore[misc]
        )
        for moment in times:
            await both.ask(
                lambda memory, agent=agent, moment=moment: memory.salient(space, agent, "mill", as_of=moment)  # type: ignore[misc]
            )
        now = await both.ask(
            lambda memory, agent=agent: memory.episodic(space, agent, after=both.after(memory, space))  # type: ignore[misc]
        )
        assert then != now

        async def pages(memory: Memory, agent: str = agent) -> list[Any]:
            page = await memory.timeline(space, agent, limit=15)
            found = [page]
            while page.older is not None:
                page = await memory.timeline(space, agent, limit=15, before=page.older)
                found.append(page)
            return found

        assert len(await both.ask(pages)) > 1
    beyond = Position(both.after(both.cluster, space).partition, 100_000)
    for question in (both.cluster.episodic(space, "baker", after=beyond), both.cluster.scene(space, as_of=beyond)):
        with pytest.raises(OutOfRange):
            await question


async def operate(both: Both) -> None:
    """Status, verification, and a rebuild after which every answer is the same."""

    async def status(memory: Memory) -> list[Any]:
        found = await memory.admin.status()
        assert [row.lag for row in found.partitions] == [0] * len(found.partitions)
        unreflected = sorted(found.unreflected, key=lambda each: (each.space, each.agent))
        return [found.records, found.spaces, found.agents, found.sessions, found.pending_total, unreflected]

    async def generations(memory: Memory) -> set[str | None]:
        return {row.generation for row in (await memory.admin.status()).partitions}

    assert (await both.ask(status))[:2] == [EVENTS, len(SPACES)]
    report = await both.cluster.admin.verify()
    assert [check for check in report.tables if check.difference is not None] == []
    before = await generations(both.cluster)
    await both.cluster.admin.rebuild()
    assert not before & await generations(both.cluster)
    await both.publish([event(space=space, turn=1_000) for space in SPACES])
    await ask_everything(both)


async def react(both: Both) -> None:
    """Due reflections are answered, on a cluster as well.

    Beliefs may differ: on a cluster an agent may answer before the views contain the answer of another one.
    """

    async def answers(memory: Memory) -> list[Any]:
        reactions = [reaction for space in SPACES for reaction in await memory.react(space)]
        for given in reactions:
            believed = (await memory.beliefs(given.space, given.agent, after=given.position)).beliefs[-1]
            assert (believed.position, believed.text) == (given.position, given.text)
        return [(reaction.space, reaction.agent, reaction.trigger, reaction.kind) for reaction in reactions]

    assert len(await both.ask(answers)) >= 2
    assert [check for check in (await both.cluster.admin.verify()).tables if check.difference is not None] == []


def test_a_query_with_after_sees_the_published_event(cluster: Cluster) -> None:
    async def work(memory: Memory) -> None:
        for turn in range(20):
            position = await memory.publish(event(space="mill", turn=turn, payload={"text": f"turn {turn}"}))
            view = await memory.episodic("mill", "baker", window=1, after=position)
            assert [each.event.turn for each in view.memories] == [turn]
            assert view.checkpoint is not None
            assert view.checkpoint.offset >= position.offset

    cluster.ask(work)


def test_without_a_worker_the_error_says_what_to_start(
    kafka: str, topic: str, own_redis: NewRedis, tmp_path: Path
) -> None:
    with Cluster(kafka, topic, own_redis().url, tmp_path) as without_worker:

        async def publish(memory: Memory) -> Position:
            return await memory.publish(event())

        position = without_worker.ask(publish)
        for question in (
            lambda memory: memory.episodic("village", "baker"),
            lambda memory: memory.episodic("village", "baker", after=position),
            lambda memory: memory.spaces(),
            lambda memory: memory.admin.dead_letters(),
        ):
            error = without_worker.refusal(question, after_wait_seconds=0.2)
            assert isinstance(error, Rebuilding)
            assert "no worker is building them. Start one: recallog worker" in str(error)
