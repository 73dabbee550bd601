"""The pause of the garbage collector: for one run of a fold, or for one large batch, and always resumed."""

import asyncio
import gc
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Outcome
from recallog_projections.tables import LogName, RowKey
from recallog_projections.views import builtin
from recallog_schemas import codec
from recallog_streams.collector import pause_collection
from recallog_streams.fold import Fold
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.ledgers.memory import MemoryLedger
from recallog_streams.projector import Projector
from support.events import numbered, run
from support.waiting import WAIT_SECONDS


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


async def _fold(states: list[bool]) -> None:
    """Fold events of agents whose rows have to be fetched; `states`: whether the collector ran meanwhile."""
    fold = Fold(builtin.projections(), unique_ids=False)

    async def fetch(rows: Sequence[RowKey], logs: Sequence[LogName]) -> tuple[Sequence[bytes | None], Sequence[int]]:
        states.append(gc.isenabled())
        await asyncio.sleep(0)
        states.append(gc.isenabled())
        return [None] * len(rows), [0] * len(logs)

    events = [each.model_copy(update={"agent": f"agent-{number}"}) for number, each in enumerate(numbered(100))]
    records = [(number, codec.encode(each)) for number, each in enumerate(events)]
    await fold.process(fold.decode(Batch(0, 0, len(records), records)), fold.new_rows(), fetch)


def test_the_collector_runs_whenever_a_fold_awaits_and_after_it() -> None:
    states: list[bool] = []
    run(_fold(states))
    assert len(states) >= 4
    assert all(states)
    assert gc.isenabled()


def test_it_is_paused_while_projections_are_applied() -> None:
    states: list[bool] = []

    class Watching(type(builtin.projections()[0])):  # type: ignore[misc]
        def apply(self, *args: object) -> None:
            states.append(gc.isenabled())

    fold = Fold([Watching()], unique_ids=True)

    async def fetch(rows: Sequence[RowKey], logs: Sequence[LogName]) -> tuple[Sequence[bytes | None], Sequence[int]]:
        return [None] * len(rows), [0] * len(logs)

    records = [(number, codec.encode(each)) for number, each in enumerate(numbered(3))]
    run(fold.process(fold.decode(Batch(0, 0, 3, records)), fold.new_rows(), fetch))
    assert states == [False]


@pytest.mark.parametrize(("events", "paused"), [(2, False), (200, True)])
def test_it_is_paused_until_a_large_batch_is_committed_and_its_objects_are_freed(events: int, paused: bool) -> None:
    states: list[bool] = []

    class Committing(MemoryStore):
        async def commit(self, *given: Any) -> Outcome:
            states.append(gc.isenabled())
            return await super().commit(*given)

    async def work() -> None:
        ledger = MemoryLedger()
        await ledger.append(numbered(events))
        projector = Projector(ledger, Committing(), builtin.projections())
        await projector.catch_up(await projector.first_generation(0, events), events)

    run(work())
    assert states == [not paused]
    assert gc.isenabled()


def test_a_collector_that_the_user_has_disabled_stays_disabled() -> None:
    states: list[bool] = []
    gc.disable()
    run(_fold(states))
    assert not any(states)
    assert not gc.isenabled()


def test_a_fold_that_fails_resumes_the_collector() -> None:
    fold = Fold(builtin.projections(), unique_ids=True)

    async def fetch(rows: Sequence[RowKey], logs: Sequence[LogName]) -> tuple[Sequence[bytes | None], Sequence[int]]:
        raise ConnectionError("the store is away")

    with pytest.raises(ConnectionError):
        run(fold.process(fold.decode(Batch(0, 0, 1, [(0, codec.encode(numbered(1)[0]))])), fold.new_rows(), fetch))
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError), pause_collection():
        raise ZeroDivisionError
    assert gc.isenabled()


def test_a_nested_pause_ends_with_the_outer_one() -> None:
    with pause_collection():
        with pause_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_thread_s_pause_ends_with_its_block_though_another_thread_s_has_begun_in_it() -> None:
    entered, left = threading.Event(), threading.Event()
    states: list[bool] = []

    def other() -> None:
        with pause_collection():
            entered.set()
            assert left.wait(WAIT_SECONDS)
            states.append(gc.isenabled())
        states.append(gc.isenabled())

    thread = threading.Thread(target=other)
    with pause_collection():
        thread.start()
        assert entered.wait(WAIT_SECONDS)
    assert gc.isenabled()
    left.set()
    thread.join(WAIT_SECONDS)
    assert states == [True, True]


def test_threads_that_fold_at_once_leave_the_collector_enabled() -> None:
    def work() -> None:
        for _ in range(20_000):
            with pause_collection():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert gc.isenabled()


def _works_in_a_process_of_its_own() -> None:
    states: list[bool] = []
    asyncio.run(_fold(states))
    os._exit(0 if states and all(states) and gc.isenabled() else 1)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_a_forked_process_folds_with_its_collector_resumed(start: str) -> None:
    """A forked child does not inherit the pause of a thread that folds in its parent."""
    process = multiprocessing.get_context(start).Process(target=_works_in_a_process_of_its_own)
    began, end = threading.Event(), threading.Event()

    def parent() -> None:
        with pause_collection():
            began.set()
            assert end.wait(60)

    folding = threading.Thread(target=parent)
    folding.start()
    assert began.wait(WAIT_SECONDS)
    process.start()
    process.join(60)
    end.set()
    folding.join(WAIT_SECONDS)
    assert process.exitcode == 0


@pytest.mark.parametrize(("setting", "collected"), [("", True), ("collect_rarely()", False)])
def test_in_a_worker_the_events_of_a_batch_cause_no_collection(setting: str, collected: bool) -> None:
    program = f"""
import gc
from recallog_streams.collector import collect_rarely
{setting}
runs = []
gc.callbacks.append(lambda phase, info: runs.append(phase))
events = [[] for _ in range(100_000)]
print(bool(runs))
"""
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == str(collected)
