"""Regression tests of concurrency defects, each named by what happened."""

from collections.abc import Sequence

import pytest

from recallog_projections.rows import Changes
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome, ReadResult
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import builtin
from recallog_schemas import codec
from recallog_schemas.errors import StorageUnavailable
from recallog_streams import generations
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.events import numbered
from support.folding import finish, ledger_at
from support.oracle import expect
from support.scheduler import Process, SteppedLedger, SteppedStore
from support.view_checking import check_views

pytestmark = pytest.mark.models("all")


class FailingStore(MemoryStore):
    """A store whose nth call of one kind fails before it takes effect."""

    fail_read = fail_commit = -1

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        self.fail_read -= 1
        if self.fail_read == 0:
            raise StorageUnavailable("a read failed")
        return await super().read(partition, rows, logs, generation)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        self.fail_commit -= 1
        if self.fail_commit == 0:
            raise StorageUnavailable("a commit failed")
        return await super().commit(generation, expected, new, changes)


@pytest.fixture
def ledger() -> MemoryLedger:
    return ledger_at([codec.encode(each) for each in numbered(12)], batch_records=4)


def check(ledger: MemoryLedger, store: MemoryStore) -> None:
    active = finish(store.pointer(0)).active
    assert active is not None
    check_views(store, active, expect(ledger.values(), unique_ids=True))


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_failed_commit_repeated_by_the_same_process_counts_once(ledger: MemoryLedger, number: int) -> None:
    """The rows of the failed batch stayed in the projector's cache, and the retry counted its events twice."""
    store = FailingStore()
    store.fail_commit = number
    projector = Projector(ledger, store, builtin.projections())
    with pytest.raises(StorageUnavailable):
        finish(generations.current(projector, 0))
    finish(generations.current(projector, 0))
    check(ledger, store)


@pytest.mark.parametrize("number", range(1, 5))
def test_a_read_that_failed_in_the_middle_of_a_batch_leaves_no_cached_rows(number: int) -> None:
    """Half of a batch was in the cache when a row could not be fetched, and the retry continued from it."""
    events = [event for turn in range(4) for n in range(8) for event in numbered(1, first=turn, space=f"space-{n}")]
    values = [codec.encode(event) for event in events]
    ledger, store = ledger_at(values[:16], batch_records=4), FailingStore()
    finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    for value in values[16:]:
        ledger.append_bytes(value)
    projector = Projector(ledger, store, builtin.projections())  # with an empty cache
    store.fail_read = number
    with pytest.raises(StorageUnavailable):
        finish(generations.current(projector, 0))
    finish(generations.current(projector, 0))
    check(ledger, store)


@pytest.mark.parametrize("first_ahead_by", range(0, 40, 3))
def test_two_concurrent_queries_in_one_process_count_every_event_once(
    ledger: MemoryLedger, first_ahead_by: int
) -> None:
    """Two tasks folded the same batch into the same cached rows."""
    store = MemoryStore()
    stepped = SteppedStore(store, lambda: False, [])
    projector = Projector(SteppedLedger(ledger, lambda: False), stepped, builtin.projections())
    finish(generations.current(projector, 0))  # warms the cache
    for each in numbered(9, first=12):
        ledger.append_bytes(codec.encode(each))

    async def ask() -> None:
        await generations.current(projector, 0)

    first, second = Process("first", ask()), Process("second", ask())
    for _ in range(first_ahead_by):
        if first.alive:
            first.step()
    while first.alive or second.alive:
        for process in (first, second):
            if process.alive:
                process.step()
    check(ledger, store)


@pytest.mark.parametrize("ahead_by", range(0, 120, 3))
def test_a_query_during_a_rebuild_is_answered_whenever_the_cutover_happens(ledger: MemoryLedger, ahead_by: int) -> None:
    """A generation collected between two calls of one query raised `Rebuilding` although another one was active."""
    store = MemoryStore()
    stepped_ledger, stepped = SteppedLedger(ledger, lambda: False), SteppedStore(store, lambda: False, [])
    finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    for each in numbered(9, first=12):
        ledger.append_bytes(codec.encode(each))

    async def ask() -> None:
        await generations.current(Projector(stepped_ledger, stepped, builtin.projections()), 0)

    async def rebuild() -> None:
        await generations.rebuild(Projector(stepped_ledger, stepped, builtin.projections()), 0)

    rebuilder = Process("rebuilder", rebuild())
    reader = Process("reader", ask())
    for _ in range(ahead_by):
        if rebuilder.alive:
            rebuilder.step()
    while rebuilder.alive or reader.alive:
        for process in (reader, rebuilder):
            if process.alive:
                process.step()
    check(ledger, store)


@pytest.mark.parametrize("ahead_by", range(0, 60, 3))
def test_joining_a_rebuild_that_another_process_finishes_starts_no_further_rebuild(
    ledger: MemoryLedger, ahead_by: int
) -> None:
    store = MemoryStore()
    created: list[Generation] = []
    stepped_ledger, stepped = SteppedLedger(ledger, lambda: False), SteppedStore(store, lambda: False, created)
    finish(generations.current(Projector(ledger, store, builtin.projections()), 0))
    joined: list[bool] = []

    async def rebuild() -> None:
        rebuilt = await generations.rebuild(Projector(stepped_ledger, stepped, builtin.projections()), 0)
        joined.append(rebuilt.joined)

    first, second = Process("first", rebuild()), Process("second", rebuild())
    for _ in range(6):
        first.step()
        second.step()
    assert finish(store.pointer(0)).building is not None
    for _ in range(ahead_by):
        if first.alive:
            first.step()
    while first.alive or second.alive:
        for process in (second, first):
            if process.alive:
                process.step()
    assert sorted(joined) == [False, True]
    check(ledger, store)
