"""The cost of finding due reflections: it grows only with their number, not with agents, spaces or partitions."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress

import pytest

from recallog import Memory
from recallog.composition import assemble
from recallog.models.beliefs.extractive import Extractive
from recallog.models.beliefs.reactor import ReflectionReactor
from recallog.reacting import LoopMemory
from recallog.reactors import loop
from recallog.reactors.answering import Answers
from recallog.reactors.loop import ReactorLoop
from recallog_projections.stores.memory import MemoryStore
from recallog_schemas import Event, limits
from recallog_schemas.errors import RecallogError, StorageUnavailable
from recallog_schemas.views import PendingTrigger
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.ledgers.memory import MemoryLedger
from support.events import event, run
from support.partitioned import CountingStore, PartitionedLedger

pytestmark = pytest.mark.models("beliefs")

SECONDS_MAX = 60.0


def wants(agent: str, threshold: int, space: str = "village") -> Event:
    return event("agent.configured", space=space, agent=agent, payload={"reflection_threshold": threshold})


def seen(space: str = "village") -> Event:
    return event("world.observed", space=space, agent="narrator")


# Rows read.


async def _read(due: int, others: int, spaces: int = 1) -> tuple[int, int]:
    """The calls and rows that finding `due` agents needs beside `others` in the same space, and other spaces."""
    store = CountingStore()
    async with Memory(assemble(MemoryLedger(), lambda namespace: store)) as memory:
        events = [wants(f"due-{number}", 1) for number in range(due)]
        events += [wants(f"other-{number}", 100) for number in range(others)]
        events += [wants("baker", 1, f"town-{number}") for number in range(1, spaces)]
        for first in range(0, len(events), limits.APPEND_EVENTS_MAX):
            await memory.publish_many(events[first : first + limits.APPEND_EVENTS_MAX])
        await memory.publish(seen())
        await memory.catch_up()
        store.calls = store.rows = 0
        assert len(await memory.pending("village")) == due
        return store.calls, store.rows


def test_agents_that_are_not_due_cost_nothing() -> None:
    assert run(_read(3, 200)) == run(_read(3, 3_000))


def test_other_spaces_cost_nothing() -> None:
    assert run(_read(3, 200)) == run(_read(3, 200, spaces=50))


def test_each_agent_that_is_due_costs_a_few_rows() -> None:
    (_, few), (_, many) = run(_read(10, 200)), run(_read(60, 200))
    assert (many - few) / 50 < 10  # half of them to find since when it is due


async def _status(spaces: int) -> int:
    """The calls of `status` with an agent that is due, and one that never reflects, in each space."""
    store = CountingStore()
    async with Memory(assemble(MemoryLedger(), lambda namespace: store)) as memory:
        for number in range(spaces):
            space = f"town-{number}"
            late = event(space=space, agent="smith", turn=limits.UNREFLECTED_TURNS + 1)
            await memory.publish_many([wants("baker", 1, space), seen(space), late])
        await memory.catch_up()
        store.calls = 0
        status = await memory.admin.status()
        assert (status.pending_total, status.unreflected_total) == (spaces, spaces)
        return store.calls


def test_the_status_makes_no_calls_for_each_space() -> None:
    """Each is a round trip on a cluster."""
    assert run(_status(200)) <= run(_status(5)) + 5


# Calls of the reactor.


class RecordedMemory(LoopMemory):
    """A memory that records the calls of the loop."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory, memory._access)
        self.memory = memory
        self.caught_up: list[int] = []
        self.looks: list[str | int] = []
        """The spaces, or the partition, of each look."""
        self.error: RecallogError | None = None
        """Raised by the next look."""
        self._changed = asyncio.Condition()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SECONDS_MAX), self._changed:
            await self._changed.wait_for(condition)

    async def catch_up(self, partition: int) -> None:
        self.caught_up.append(partition)
        await super().catch_up(partition)

    async def reflections(self, partition: int, spaces: Sequence[str] | None) -> Sequence[PendingTrigger]:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        found = await super().reflections(partition, spaces)
        self.looks.append(partition if spaces is None else " ".join(spaces))
        async with self._changed:
            self._changed.notify_all()
        return found


def at_once(error: RecallogError) -> float:
    """No pause after the error that a test causes."""
    if not isinstance(error, StorageUnavailable):
        raise error
    return 0.0


@asynccontextmanager
async def running(ledger: Ledger, *events: Event, space: str | None = None) -> AsyncIterator[RecordedMemory]:
    """A reactor in the background of a memory that holds `events`."""
    async with Memory(assemble(ledger, lambda namespace: MemoryStore())) as memory:
        await memory.publish_many(events)
        recorded = RecordedMemory(memory)
        reactors = [ReflectionReactor(memory._access, Extractive())]
        task = asyncio.create_task(
            ReactorLoop(recorded, ledger, Answers(recorded, ledger, reactors), nullcontext).run(space, at_once)
        )
        try:
            yield recorded
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "POLL_SECONDS", 0.01)


def test_the_reactor_looks_only_at_the_space_and_partition_that_have_a_new_event() -> None:
    spaces = [f"village-{number}" for number in range(6)]

    async def work() -> None:
        ledger = PartitionedLedger(3)
        async with running(ledger, *(wants("baker", 2, space) for space in spaces)) as memory:
            await memory.until(lambda: set(memory.looks) == {0, 1, 2})
            memory.looks.clear()
            memory.caught_up.clear()
            await memory.memory.publish(seen("village-1"))
            await memory.until(lambda: memory.looks == ["village-1"])
            await memory.memory.publish(seen("village-4"))
            await memory.until(lambda: memory.looks == ["village-1", "village-4"])
            assert memory.caught_up == [1, 1]
            # The second event makes the reflection due; the answer is a new event, and makes the reactor look again.
            await memory.memory.publish(seen("village-1"))
            await memory.until(lambda: memory.looks[2:] == ["village-1", "village-1"])
            assert [belief.event.kind for belief in (await memory.memory.beliefs("village-1", "baker")).beliefs]
            assert set(memory.caught_up) == {1}

    run(work())


def test_after_many_new_events_the_reactor_looks_at_the_whole_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHANGED_RECORDS_MAX", 2)

    async def work() -> None:
        ledger = PartitionedLedger(2)
        async with running(ledger, wants("baker", 9, "village-1")) as memory:
            await memory.until(lambda: memory.looks == [1])
            await ledger.append([seen("village-1") for _ in range(3)])
            await memory.until(lambda: memory.looks == [1, 1])

    run(work())


def test_a_reactor_of_one_space_looks_only_at_its_space() -> None:
    async def work() -> None:
        ledger = PartitionedLedger(2)
        events = [wants("baker", 9, "village-1"), wants("baker", 9, "village-2")]
        async with running(ledger, *events, space="village-1") as memory:
            await memory.until(lambda: memory.looks == ["village-1"])
            await memory.memory.publish(seen("village-2"))
            await memory.memory.publish(seen("village-1"))
            await memory.until(lambda: memory.looks == ["village-1", "village-1"])
            assert memory.caught_up == [1, 1]

    run(work())


def test_a_look_that_failed_is_repeated() -> None:
    async def work() -> None:
        ledger = PartitionedLedger(2)
        async with running(ledger, wants("baker", 1, "village-1")) as memory:
            await memory.until(lambda: memory.looks == [1])
            memory.error = StorageUnavailable("the store is away")
            await memory.memory.publish(seen("village-1"))
            await memory.until(lambda: memory.looks[1:] == ["village-1", "village-1"])
            assert (await memory.memory.beliefs("village-1", "baker")).beliefs

    run(work())
