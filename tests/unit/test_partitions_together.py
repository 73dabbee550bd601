"""Concurrent work on several partitions: here each partition waits until the other one is read."""

import asyncio
from operator import attrgetter

import pytest

from recallog import Memory
from recallog.composition import assemble
from recallog_projections.concurrency import gather_limited
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Pointer
from recallog_schemas.errors import InvalidArgument, OutOfRange, StorageUnavailable
from support.events import event, run
from support.partitioned import PartitionedLedger

SECONDS_MAX = 60.0


class MeetingStore(MemoryStore):
    """Once `barrier` is set, the first read of the pointer of a partition waits for that of the other one."""

    def __init__(self) -> None:
        super().__init__()
        self.barrier: asyncio.Barrier | None = None
        self._met: set[int] = set()

    def expect_both(self) -> None:
        self.barrier = asyncio.Barrier(2)
        self._met.clear()

    async def pointer(self, partition: int) -> Pointer:
        if self.barrier is not None and partition not in self._met:
            self._met.add(partition)
            await self.barrier.wait()
        return await super().pointer(partition)


@pytest.mark.parametrize(
    "method",
    [
        "catch_up",
        "pending",
        "spaces",
        "react",
        "admin.status",
        "admin.dead_letters",
        "admin.plan_rebuild",
        "admin.rebuild",
        "admin.abort_rebuild",
    ],
)
def test_two_partitions_are_queried_concurrently(method: str) -> None:
    async def work() -> None:
        store = MeetingStore()
        async with Memory(assemble(PartitionedLedger(2), lambda namespace: store)) as memory:
            await memory.publish_many([event(space="village-0"), event(space="village-1")])
            await memory.catch_up()
            store.expect_both()
            async with asyncio.timeout(SECONDS_MAX):
                await attrgetter(method)(memory)()

    run(work())


@pytest.mark.models("beliefs")
def test_one_partition_alone_can_be_queried() -> None:
    async def work() -> None:
        async with Memory(assemble(PartitionedLedger(2), lambda namespace: MemoryStore())) as memory:
            wants = [
                event("agent.configured", space=f"village-{number}", payload={"reflection_threshold": 1})
                for number in range(4)
            ]
            await memory.publish_many([*wants, *(event(space=f"village-{number}") for number in range(4))])
            odd = await memory.pending(partition=1)
            assert [trigger.space for trigger in odd] == ["village-1", "village-3"]
            assert len(await memory.pending()) == 4
            with pytest.raises(OutOfRange, match="there is no partition 2"):
                await memory.pending(partition=2)
            with pytest.raises(InvalidArgument) as raised:
                await memory.pending(partition=-1)
            assert (raised.value.path, raised.value.rule) == ("partition", "greater_than_equal")

    run(work())


def test_the_first_error_is_raised_when_the_work_for_the_other_partitions_has_ended() -> None:
    ended: list[int] = []

    async def work(partition: int, others: asyncio.Event) -> None:
        if partition == 1:
            await others.wait()
            raise StorageUnavailable("partition 1 is away")
        try:
            others.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(partition)

    async def check() -> None:
        others = asyncio.Event()
        with pytest.raises(StorageUnavailable, match="partition 1"):
            async with asyncio.timeout(SECONDS_MAX):
                await gather_limited(lambda partition: work(partition, others), range(3))
        assert sorted(ended) == [0, 2]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(check())


def test_no_more_partitions_are_worked_on_at_once_than_allowed() -> None:
    under_way: set[int] = set()
    most = 0

    async def work(partition: int) -> int:
        nonlocal most
        under_way.add(partition)
        most = max(most, len(under_way))
        await asyncio.sleep(0)
        under_way.remove(partition)
        return partition

    async def check() -> None:
        assert await gather_limited(work, range(20), at_once=3) == list(range(20))

    run(check())
    assert most == 3
