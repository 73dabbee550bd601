"""The publisher of triggers: what it sends, again and when, and what it never sends."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

import pytest

from recallog import Event
from recallog.extending import Projection
from recallog.queries import due
from recallog.reading.projection_group import BUILT_IN, ProjectionGroup
from recallog.reading.query_router import QueryRouter
from recallog.reading.view_access import WaitForWorkers
from recallog_projections.concurrency import cancel_all
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.views import builtin
from recallog_projections.views.activity import ActivityProjection
from recallog_schemas import triggers
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.models.beliefs.triggers import REFLECTION, reflection_of
from recallog_schemas.models.long_term.triggers import MIGRATION, RETRACTION
from recallog_service.reacting import publisher as publishers
from recallog_service.reacting.publisher import AGAIN_SECONDS, TriggerPublisher
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.ledgers.trigger_queue import Doorbell
from recallog_streams.live import LiveProjector, ProjectedViews
from recallog_streams.partition_task import TaskState
from recallog_streams.projector import Projector
from recallog_streams.stop_signal import StopSignal
from support.events import event
from support.group_in_memory import InMemoryGroup
from support.own_promises import Promises
from support.virtual_time import run_in_virtual_time

pytestmark = pytest.mark.models("beliefs", "long_term")

SPACE = "village"


class Topic:
    """Takes messages, or refuses them."""

    def __init__(self) -> None:
        self.sent: list[Doorbell] = []
        self.away = False

    async def send(self, messages: Sequence[Doorbell]) -> None:
        await asyncio.sleep(0.001)
        if self.away:
            raise StorageUnavailable("the broker is away")
        self.sent += messages


class World:
    """One worker, its publisher, and a topic."""

    def __init__(self, own: Projection | None = None) -> None:
        """With `own`, the views are those of a projection of the user's."""
        self.ledger = MemoryLedger(unique_ids=False)
        self.store = MemoryStore()
        self.projections = builtin.projections() if own is None else builtin.with_settings(own)
        self.live = LiveProjector(ProjectedViews(self.projector()), InMemoryGroup(self.ledger, assigned=True))
        views = ProjectionGroup(
            BUILT_IN, self.store, self.projections, self.projector(), WaitForWorkers(self.projector(), 10.0)
        )
        self.router = QueryRouter(self.ledger, views, None)
        self.topic = Topic()
        self.counts: dict[bool, int] = {False: 0, True: 0}
        self.publisher = TriggerPublisher(
            self.router,
            self.live,
            self.topic,
            self.count,
            recurring=own is None,  # type: ignore[arg-type]
        )

    def projector(self) -> Projector:
        return Projector(self.ledger, self.store, self.projections)

    def count(self, messages: int, repeated: bool) -> None:
        self.counts[repeated] += messages

    async def due(self) -> set[str]:
        query = due.pending_triggers if len(self.projections) > 3 else due.own_triggers
        return {row.trigger for row in await self.router.of_partition(0, query)}

    @property
    def names(self) -> list[str]:
        return [message.trigger for message in self.topic.sent]


def in_world(work: Callable[[World], Awaitable[None]], *before: Event, own: Projection | None = None) -> None:
    """Run `work` beside a worker in virtual time, on a ledger that begins with some events."""

    async def run() -> None:
        world = World(own)
        await world.ledger.append(before)
        stopping = StopSignal()
        tasks = [asyncio.create_task(world.live.run()), asyncio.create_task(world.publisher.run(stopping))]
        try:
            await work(world)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            await cancel_all(*tasks)

    run_in_virtual_time(run())


def erasing(name: str) -> list[Event]:
    """Events after which a retraction is due: an entry that was made from one made from an erased one."""
    first, second, third = (f"{name}-{number}" for number in (1, 2, 3))
    return [
        event("memory.retained", id=first, payload={"text": f"About {first}."}),
        event("memory.retained", id=second, payload={"text": f"About {second}.", "sources": [first]}),
        event("memory.retained", id=third, payload={"text": f"About {third}.", "sources": [second]}),
        event("memory.erased", payload={"entries": [first]}),
    ]


def answer_to(id_: str) -> Event:
    trigger = triggers.parse(id_)
    assert trigger is not None
    return event("reaction.done", id=trigger.answer_id, causation_id=id_, payload={"trigger": id_, "events": 0})


def test_each_trigger_is_sent_once_and_not_again_after_its_answer() -> None:
    async def work(world: World) -> None:
        for number in range(5):
            await world.ledger.append(erasing(f"e{number}"))
            await asyncio.sleep(1.0)
        assert len(world.names) == 5
        assert set(world.names) == await world.due()
        assert len(world.publisher.unanswered[0]) == 5
        await world.ledger.append([answer_to(id_) for id_ in world.names])
        await asyncio.sleep(10 * AGAIN_SECONDS)
        assert len(world.names) == 5
        assert world.publisher.unanswered == {0: []}
        assert world.counts == {False: 5, True: 0}

    in_world(work)


def test_what_was_due_before_is_sent_and_plans_and_reflections_too() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        assert len(world.names) == 1
        wants = event("agent.configured", agent="baker", payload={"reflection_threshold": 2})
        await world.ledger.append([wants, *(event("world.observed", agent="narrator") for _ in range(2))])
        await asyncio.sleep(1.0)
        kinds = [id_.partition("/")[0] for id_ in world.names]
        assert kinds == [RETRACTION, REFLECTION]
        assert set(world.names) == await world.due()

    in_world(work, *erasing("e"))


def test_an_unanswered_trigger_is_sent_again_and_the_pauses_do_not_grow() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(AGAIN_SECONDS - 2.0)
        assert len(world.names) == 1
        await asyncio.sleep(60 * AGAIN_SECONDS)  # agents are away for ten minutes
        sent = len(world.names)
        assert sent in range(50, 62)
        await asyncio.sleep(AGAIN_SECONDS + 1.0)
        assert len(world.names) == sent + 1
        assert set(world.names) == await world.due()

    in_world(work, *erasing("e"))


def test_a_trigger_waits_from_when_it_was_first_sent_however_often_it_is_sent_again() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(5 * AGAIN_SECONDS)
        assert len(world.names) > 1
        (waited,) = world.publisher.unanswered[0]
        assert 4.9 * AGAIN_SECONDS < waited <= 5 * AGAIN_SECONDS

    in_world(work, *erasing("e"))


def test_a_backlog_that_agents_work_on_is_not_sent_again() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        for number in range(COUNT):  # one every five seconds, in their order
            await world.ledger.append([answer_to(world.names[number])])
            await asyncio.sleep(AGAIN_SECONDS / 2)
        assert world.counts == {False: COUNT, True: 0}

    in_world(work, *(each for number in range(COUNT) for each in erasing(f"e{number:02}")))


def test_a_trigger_whose_message_was_lost_is_sent_again_although_later_ones_are_answered() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        (lost,) = world.names
        for number in range(6):
            await world.ledger.append(erasing(f"later-{number}"))
            await asyncio.sleep(2.0)
            await world.ledger.append([answer_to(world.names[-1])])
            await asyncio.sleep(1.0)
        await asyncio.sleep(2.0)
        assert world.names.count(lost) == 2

    in_world(work, *erasing("e"))


COUNT = 20


def test_a_kind_with_too_many_unanswered_triggers_does_not_hold_up_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishers, "SENT_MAX", 6)

    async def work(world: World) -> None:
        await asyncio.sleep(2.0)
        kinds = [id_.partition("/")[0] for id_ in world.names]
        assert kinds == [RETRACTION] * 6 + [MIGRATION]
        first = set(world.names)
        for _ in range(COUNT):  # the others follow as those are answered, each once
            await world.ledger.append([answer_to(id_) for id_ in (await world.due()) & set(world.names)])
            await asyncio.sleep(2.0)
        assert first < set(world.names)
        assert world.counts == {False: COUNT + 1, True: 0}
        assert await world.due() == set()

    note = {"namespace": ["working"], "key": "notes", "value": "LESSON: Bread burns after forty minutes."}
    in_world(
        work,
        *(each for number in range(COUNT) for each in erasing(f"e{number:02}")),
        event("item.put", payload=note),
        event("session.ended", session="s-1", payload={}),
    )


def test_a_trigger_that_is_not_due_any_more_is_forgotten_without_its_answer() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        assert [id_.partition("/")[0] for id_ in world.names] == [REFLECTION]
        await world.ledger.append([event("agent.configured", agent="baker", payload={"reflection_threshold": 50})])
        await asyncio.sleep(10 * AGAIN_SECONDS)
        assert await world.due() == set()
        assert len(world.names) == 1
        assert world.publisher.unanswered == {0: []}

    wants = event("agent.configured", agent="baker", payload={"reflection_threshold": 2})
    in_world(work, wants, *(event("world.observed", agent="narrator") for _ in range(2)))


def test_a_rebuild_sends_nothing_but_again_what_is_still_due() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        answered, open_ = world.names
        await world.ledger.append([answer_to(answered)])
        await asyncio.sleep(1.0)
        await generations.rebuild(world.projector(), 0)
        await world.ledger.append([event()])  # the worker notices the cutover
        await asyncio.sleep(5.0)
        assert world.names == [answered, open_, open_]

    in_world(work, *erasing("a"), *erasing("b"))


class NewerActivity(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version + 1


@pytest.mark.parametrize("seconds", [AGAIN_SECONDS - 0.5 + step / 10 for step in range(11)])
def test_views_of_newer_code_are_left_to_its_workers_and_are_no_problem(seconds: float) -> None:
    """The cutover is at any moment before the projector's check and the publisher's look, when a repeat is due."""

    async def work(world: World) -> None:
        await asyncio.sleep(seconds)
        newer = [NewerActivity() if each.name == ActivityProjection.name else each for each in world.projections]
        await generations.rebuild(Projector(world.ledger, world.store, newer), 0)
        sent = len(world.names)
        for _ in range(200):
            await asyncio.sleep(0.01)
            assert world.publisher.problem == ""
            assert world.live.problems == []
        assert [task.state for task in world.live.tasks] == [TaskState.IDLE]
        assert world.publisher.unanswered == {}
        await asyncio.sleep(AGAIN_SECONDS)
        assert len(world.names) == sent

    in_world(work, *erasing("e"))


def test_while_the_topic_cannot_be_written_nothing_is_lost() -> None:
    async def work(world: World) -> None:
        world.topic.away = True
        await world.ledger.append(erasing("e"))
        await asyncio.sleep(30.0)
        assert "the broker is away" in world.publisher.problem
        assert world.names == []
        world.topic.away = False
        await asyncio.sleep(6.0)
        assert set(world.names) == await world.due()
        assert len(world.names) == 1
        assert world.publisher.problem == ""

    in_world(work)


def test_what_a_user_s_projection_makes_due_is_sent_again_until_it_is_answered() -> None:
    async def work(world: World) -> None:
        await world.ledger.append([event(payload={"text": "I promise bread. I promise cake."}), event()])
        await asyncio.sleep(1.0)
        assert len(world.names) == 2
        assert set(world.names) == await world.due()
        await world.ledger.append([answer_to(world.names[0])])
        await asyncio.sleep(AGAIN_SECONDS + 1.0)
        assert world.names == [*world.names[:2], world.names[1]]
        assert await world.due() == {world.names[1]}
        await world.ledger.append([answer_to(world.names[1])])
        await asyncio.sleep(10 * AGAIN_SECONDS)
        assert len(world.names) == 3
        assert not await world.due()

    in_world(work, own=Promises())


def test_a_trigger_whose_answer_does_not_count_is_sent_again_only_after_its_pause() -> None:
    async def work(world: World) -> None:
        await asyncio.sleep(1.0)
        (trigger,) = world.names
        payload = {"trigger": trigger, "reason": "no"}
        answer = event("reflection.failed", id=taken.answer_id, causation_id=trigger, payload=payload)
        for _ in range(3):  # repeats of a foreign event that has the id of the answer
            await world.ledger.append([answer])
            await asyncio.sleep(1.0)
        assert world.names == [trigger]
        assert await world.due() == {trigger}
        await asyncio.sleep(AGAIN_SECONDS)
        assert world.names == [trigger, trigger]

    wants = event("agent.configured", agent="baker", payload={"reflection_threshold": 2})
    taken = reflection_of(SPACE, "baker", 0)
    foreign = event("agent.spoke", id=taken.answer_id)
    in_world(work, foreign, wants, *(event("world.observed", agent="narrator") for _ in range(2)))
