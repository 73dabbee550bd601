"""The live loop of a worker, in virtual time: its views, its reports of problems, and its recovery."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import pytest

from recallog_projections.projection import Projection
from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, Store
from recallog_projections.views import builtin
from recallog_projections.views.activity import ActivityProjection
from recallog_schemas import Event
from recallog_schemas.errors import InvariantViolation, LedgerMismatch, StorageError, StorageUnavailable
from recallog_streams import generations
from recallog_streams.ledgers.ledger import Manifest
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.live import (
    ANSWER_SECONDS,
    CHECK_SECONDS,
    IDLE_SECONDS,
    POLL_SECONDS,
    LedgerReplaced,
    LiveProjector,
    ProjectedViews,
)
from recallog_streams.partition_task import BACKOFF_SECONDS_MAX, PartitionTask, TaskState
from recallog_streams.projector import Projector
from support.events import numbered
from support.folding import check_kernel_views
from support.group_in_memory import InMemoryGroup
from support.oracle import expect
from support.virtual_time import run_in_virtual_time

SOON = 0.5
"""Virtual seconds in which a few batches are folded, and no check or retry of a failed partition need happen."""
ONE_CHECK = CHECK_SECONDS + POLL_SECONDS + SOON


class NewerActivity(ActivityProjection):
    version: ClassVar[int] = ActivityProjection.version + 1


class ADifferentLedger(MemoryLedger):
    """A ledger that can be replaced, unavailable or slow."""

    def __init__(self, events: int = 10) -> None:
        super().__init__(unique_ids=False)
        self.name = "the first one"
        self.away: Exception | None = None
        self.answers_after = 0.0
        self.put(numbered(events))

    def put(self, events: list[Event]) -> None:
        run_now(self.append(events))

    async def open(self) -> None:
        await self._reach()

    async def manifest(self) -> Manifest:
        await self._reach()
        return Manifest(ledger=self.name, partitions=1, partitioner="one")

    async def ends(self) -> list[int]:
        await self._reach()
        return await super().ends()

    async def _reach(self) -> None:
        await asyncio.sleep(self.answers_after)
        if self.away is not None:
            raise self.away


def run_now(work: Any) -> Any:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")


class AStore(MemoryStore):
    """A store that can be unavailable or refuse commits; `committed` are the offsets of applied commits."""

    def __init__(self) -> None:
        super().__init__()
        self.away: Exception | None = None
        self.commits_fail: Exception | None = None
        self.commit_seconds = 0.0
        self.tries = 0
        self.committed: list[int] = []

    async def pointer(self, partition: int) -> Any:
        self._reach()
        return await super().pointer(partition)

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        self._reach()
        return await super().checkpoint(generation)

    async def remember_manifest(self, manifest: bytes) -> bytes:
        self._reach()
        return await super().remember_manifest(manifest)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        self.tries += 1
        self._reach()
        if self.commits_fail is not None:
            raise self.commits_fail
        await asyncio.sleep(self.commit_seconds)
        outcome = await super().commit(generation, expected, new, changes)
        if outcome is Outcome.APPLIED:
            self.committed.append(new.offset)
        return outcome

    def _reach(self) -> None:
        if self.away is not None:
            raise self.away


class World:
    def __init__(self, *, assigned: bool = True, activity: ActivityProjection | None = None) -> None:
        self.ledger = ADifferentLedger()
        self.store = AStore()
        self.feed = InMemoryGroup(self.ledger, assigned=assigned)
        self.live = LiveProjector(ProjectedViews(self.projector(activity)), self.feed)

    def projector(self, activity: ActivityProjection | None = None, store: Store | None = None) -> Projector:
        ours: list[Projection] = [
            (activity or each) if each.name == "activity" else each for each in builtin.projections()
        ]
        return Projector(self.ledger, store or self.store, ours)

    @property
    def tasks(self) -> PartitionTask:
        (kept,) = self.live.tasks
        return kept

    def say(self, count: int) -> None:
        self.ledger.put(numbered(count, first=len(self.ledger.values())))

    def lose_the_views(self) -> None:
        vars(self.store).update(vars(MemoryStore()))

    async def check(self) -> None:
        """Check that the views equal the oracle for the whole ledger."""
        active = (await self.store.pointer(0)).active
        assert active is not None
        values = self.ledger.values()
        checkpoint = await self.store.checkpoint(active)
        assert checkpoint is not None
        assert checkpoint.offset == len(values) - 1
        check_kernel_views(self.store, active, expect(values, unique_ids=False))
        assert (self.live.problems, self.tasks.state, self.tasks.lag) == ([], TaskState.LIVE, 0)


@asynccontextmanager
async def running(world: World) -> AsyncIterator["asyncio.Task[None]"]:
    """Run the loop until the block ends; it must then stop within a moment."""
    task = asyncio.create_task(world.live.run())
    await asyncio.sleep(SOON)
    try:
        yield task
    finally:
        world.live.stop()
        await asyncio.wait([task], timeout=SOON)
        assert task.done()
        assert not world.feed.running


def in_virtual_time(test: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        run_in_virtual_time(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


@in_virtual_time
async def test_it_builds_the_first_views_and_then_folds_new_records() -> None:
    world = World()
    assert world.live.problems == ["not started"]
    async with running(world):
        await world.check()
        for _ in range(3):
            world.say(7)
            await asyncio.sleep(SOON)
            await world.check()
        assert len(world.store.committed) > 4


@in_virtual_time
async def test_a_worker_without_partitions_is_healthy_and_starts_assigned_ones() -> None:
    world = World(assigned=False)
    async with running(world):
        assert (world.live.tasks, world.live.problems) == ([], [])
        world.feed.assign(0)
        await asyncio.sleep(SOON)
        await world.check()


@in_virtual_time
async def test_a_partition_revoked_while_it_is_built_is_not_written_to() -> None:
    world = World()
    world.ledger.answers_after = 0.3
    async with running(world):
        await asyncio.sleep(1.0)
        assert world.tasks.state is TaskState.BUILDING
        world.feed.assign()
        await asyncio.sleep(ONE_CHECK)
        assert world.live.tasks == []
        assert world.feed.next is None
        committed = list(world.store.committed)
        await asyncio.sleep(10)
        assert world.store.committed == committed


@in_virtual_time
async def test_a_partition_assigned_again_continues_from_the_committed_checkpoint() -> None:
    world = World()
    async with running(world):
        world.feed.assign()
        await asyncio.sleep(SOON)
        world.say(5)
        await generations.current(world.projector(), 0)
        world.say(5)
        world.feed.assign(0)
        await asyncio.sleep(SOON)
        await world.check()
    assert world.store.committed[-1] == 19


@in_virtual_time
async def test_a_batch_committed_by_another_worker_changes_nothing() -> None:
    world = World()
    async with running(world):
        other = world.projector()
        for _ in range(5):
            world.say(4)
            await generations.current(other, 0)
            await asyncio.sleep(POLL_SECONDS * 3)
        await asyncio.sleep(SOON)
        await world.check()
    assert world.store.committed == sorted(set(world.store.committed))


@in_virtual_time
async def test_a_stale_batch_is_discarded_and_the_partition_continues() -> None:
    world = World()
    stale = iter([True, False] * 10)
    world.feed = InMemoryGroup(world.ledger, is_stale=lambda: next(stale, False))
    world.live = LiveProjector(ProjectedViews(world.projector()), world.feed)
    async with running(world):
        for _ in range(4):
            world.say(7)
            await asyncio.sleep(SOON)
        await world.check()


@in_virtual_time
async def test_an_unavailable_store_makes_the_partition_failed_until_it_is_back() -> None:
    world = World()
    async with running(world):
        world.store.away = StorageUnavailable("Redis is away")
        world.say(5)
        await asyncio.sleep(ONE_CHECK)
        assert world.tasks.state is TaskState.FAILED
        assert "partition 0: Redis is away" in world.live.problems
        assert "Redis is away" in world.live.problems
        world.store.away = None
        await asyncio.sleep(BACKOFF_SECONDS_MAX + SOON)
        await world.check()


@in_virtual_time
async def test_the_interval_of_retries_grows_up_to_a_bound() -> None:
    world = World()
    async with running(world):
        world.store.commits_fail = StorageUnavailable("no memory left")
        world.say(5)
        await asyncio.sleep(60)
        before = world.store.tries
        await asyncio.sleep(600)
        assert 600 / BACKOFF_SECONDS_MAX / 2 < world.store.tries - before <= 600 / BACKOFF_SECONDS_MAX + 1
        world.store.commits_fail = None
        await asyncio.sleep(BACKOFF_SECONDS_MAX + SOON)
        await world.check()


@in_virtual_time
async def test_a_rebuild_by_another_process_is_followed_with_and_without_new_records() -> None:
    world = World()
    async with running(world):
        for new_records in (3, 0):
            before = world.tasks.generation
            rebuilt = await generations.rebuild(world.projector(), 0)
            world.say(new_records) if new_records else None
            await asyncio.sleep(ONE_CHECK)
            assert world.tasks.generation == rebuilt.active != before
            await world.check()


@in_virtual_time
async def test_leftovers_of_a_rebuild_that_died_at_the_cutover_are_garbage_collected() -> None:
    world = World()
    async with running(world):
        replaced, builder = world.tasks.generation, world.projector()
        assert replaced is not None
        begun = await generations.begin(builder, 0)
        await builder.catch_up(begun.generation, len(world.ledger.values()))
        assert await world.store.activate(begun.generation)
        assert await world.store.checkpoint(replaced) is not None
        await asyncio.sleep(2 * ONE_CHECK)
        assert await world.store.checkpoint(replaced) is None
        await world.check()


@in_virtual_time
async def test_lost_views_are_rebuilt_without_new_records() -> None:
    world = World()
    async with running(world):
        world.lose_the_views()
        await asyncio.sleep(ONE_CHECK)
        await world.check()


@in_virtual_time
async def test_an_older_copy_of_the_views_is_detected_without_new_records() -> None:
    world = World()
    async with running(world):
        older = copy.deepcopy({name: vars(world.store)[name] for name in vars(MemoryStore())})
        world.say(6)
        await asyncio.sleep(SOON)
        vars(world.store).update(older)
        await asyncio.sleep(ONE_CHECK)
        await world.check()


@in_virtual_time
async def test_after_the_cutover_of_newer_code_it_is_idle_and_healthy() -> None:
    world = World()
    async with running(world):
        await generations.current(world.projector(NewerActivity()), 0)
        world.say(3)
        await asyncio.sleep(ONE_CHECK)
        assert (world.tasks.state, world.live.problems) == (TaskState.IDLE, [])
        assert "newer version" in world.tasks.why
        world.lose_the_views()  # including the generation of newer code
        await asyncio.sleep(IDLE_SECONDS + ONE_CHECK)
        await world.check()


@in_virtual_time
async def test_newer_code_builds_beside_the_old_and_cuts_over() -> None:
    world = World()
    old = await generations.current(world.projector(), 0)
    world.live = LiveProjector(ProjectedViews(world.projector(NewerActivity())), world.feed)
    async with running(world):
        await world.check()
        assert world.tasks.generation != old
        assert await world.store.checkpoint(old) is None


@in_virtual_time
async def test_a_ledger_that_replaces_the_open_one_is_not_folded() -> None:
    world = World()
    task = asyncio.create_task(world.live.run())
    await asyncio.sleep(SOON)
    committed = list(world.store.committed)
    world.ledger.name = "another one"
    world.say(5)
    await asyncio.wait([task], timeout=CHECK_SECONDS * 2)
    assert isinstance(task.exception(), LedgerReplaced)
    assert world.store.committed == committed
    assert not world.feed.running


@in_virtual_time
async def test_a_ledger_that_is_gone_when_records_are_fetched_must_be_opened_again() -> None:
    world = World()

    async def find_nothing() -> None:
        raise LedgerMismatch("the topic is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.feed, "start", find_nothing)
        with pytest.raises(LedgerReplaced, match="the topic is gone"):
            await world.live.run()


@in_virtual_time
async def test_a_replaced_ledger_is_not_folded_while_a_partition_starts() -> None:
    world = World()
    task = asyncio.create_task(world.live.run())
    await asyncio.sleep(SOON)
    world.feed.assign()
    await asyncio.sleep(POLL_SECONDS)
    committed = list(world.store.committed)
    world.ledger.name = "another one"
    world.say(5)
    world.feed.assign(0)
    await asyncio.wait([task], timeout=POLL_SECONDS * 3)
    assert isinstance(task.exception(), LedgerReplaced)
    assert world.store.committed == committed


@in_virtual_time
async def test_a_partition_assigned_again_with_other_records_is_refused() -> None:
    world = World()
    async with running(world):
        world.feed.assign()
        await asyncio.sleep(POLL_SECONDS)
        committed = list(world.store.committed)
        vars(world.ledger).update({**vars(ADifferentLedger(20)), "_id": vars(world.ledger)["_id"]})
        world.feed.assign(0)
        await asyncio.sleep(60)
        assert world.tasks.state is TaskState.FAILED
        assert "0:9, which the views have processed, is another one" in world.tasks.why
    assert world.store.committed == committed


@in_virtual_time
async def test_views_of_another_ledger_are_refused_until_they_are_deleted() -> None:
    world = World()
    await world.store.remember_manifest(msgspec.json.encode(Manifest("another one", 1, "one")))
    async with running(world):
        world.say(5)
        await asyncio.sleep(60)
        assert world.tasks.state is TaskState.FAILED
        assert any("computed from another ledger" in problem for problem in world.live.problems)
        assert world.store.committed == []
        world.lose_the_views()
        await asyncio.sleep(BACKOFF_SECONDS_MAX + ONE_CHECK)
        await world.check()


@in_virtual_time
async def test_views_that_have_processed_other_records_are_refused() -> None:
    world = World()
    async with running(world):
        pass
    other = World()
    other.store, other.ledger.name = world.store, world.ledger.name
    world.store.committed.clear()
    other.live = LiveProjector(ProjectedViews(other.projector()), other.feed)
    other.say(10)
    async with running(other):
        assert other.tasks.state is TaskState.FAILED
        assert "0:9, which the views have processed, is another one" in other.tasks.why
    assert world.store.committed == []


@in_virtual_time
async def test_a_ledger_that_does_not_answer_makes_it_unhealthy_before_calls_time_out() -> None:
    world = World()
    async with running(world):
        world.ledger.answers_after = 1_000.0
        await asyncio.sleep(ANSWER_SECONDS + ONE_CHECK)
        assert any("the ledger has not answered for 5 seconds" in problem for problem in world.live.problems)
        world.ledger.answers_after = 0.0
        world.say(3)
        await asyncio.sleep(ANSWER_SECONDS + BACKOFF_SECONDS_MAX + ONE_CHECK)
        await world.check()


@in_virtual_time
async def test_it_waits_for_a_ledger_that_is_unavailable_at_the_start() -> None:
    world = World()
    world.ledger.away = StorageUnavailable("Kafka is away")
    async with running(world):
        await asyncio.sleep(60)
        assert world.live.problems == ["Kafka is away"]
        world.ledger.away = None
        await asyncio.sleep(BACKOFF_SECONDS_MAX + SOON)
        await world.check()


@in_virtual_time
async def test_it_stops_while_a_service_hangs() -> None:
    world = World()
    async with running(world):
        world.ledger.answers_after = 1_000.0
        await asyncio.sleep(ANSWER_SECONDS)


@in_virtual_time
async def test_it_finishes_the_current_batch_before_it_stops() -> None:
    world = World()
    task = asyncio.create_task(world.live.run())
    await asyncio.sleep(SOON)
    world.store.commit_seconds = 3.0
    world.say(3)
    await asyncio.sleep(SOON)
    world.live.stop()
    await asyncio.sleep(SOON)
    assert not task.done()
    await task
    assert world.store.committed[-1] == 12
    assert not world.feed.running


@in_virtual_time
async def test_a_failed_record_source_is_closed_and_joined_again() -> None:
    world = World()
    failures = iter([False] * 4 + [True] * 5)
    world.feed = InMemoryGroup(world.ledger, fails=lambda: next(failures, False))
    world.live = LiveProjector(ProjectedViews(world.projector()), world.feed)
    async with running(world):
        await asyncio.sleep(30)
        assert world.feed.starts == 2
        world.say(5)
        await asyncio.sleep(SOON)
        await world.check()


@in_virtual_time
async def test_records_that_the_source_cannot_deliver_are_read_from_the_ledger() -> None:
    world = World()
    async with running(world):
        world.feed.next = 1_000  # it would never deliver anything again
        world.say(5)
        world.feed.no_longer = {0, 7}
        await asyncio.sleep(SOON)
        await world.check()


@pytest.mark.parametrize("error", [InvariantViolation("cannot be"), RuntimeError("a defect")])
@pytest.mark.parametrize("when", ["building", "live"])
def test_an_unexpected_error_ends_it(error: Exception, when: str) -> None:
    async def work() -> None:
        world = World()
        if when == "building":
            world.store.commits_fail = error
        task = asyncio.create_task(world.live.run())
        await asyncio.sleep(SOON)
        world.store.commits_fail = error
        world.say(5)
        await asyncio.wait([task], timeout=SOON)
        assert task.exception() is error
        assert not world.feed.running

    run_in_virtual_time(work())


@in_virtual_time
async def test_an_unsuitable_ledger_ends_it() -> None:
    world = World()
    world.ledger.away = StorageError("retention.ms=1000: events would be deleted")
    with pytest.raises(StorageError, match="retention"):
        await world.live.run()
