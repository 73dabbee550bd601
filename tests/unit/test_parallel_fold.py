"""When workers fold, and what happens if they cannot."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar

import msgspec
import pytest

from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.tables import Table
from recallog_projections.views import builtin
from recallog_schemas import Event, Record, codec, limits
from recallog_streams.parallel.catching_up import ParallelCatchUp
from recallog_streams.parallel.processes import WorkerProcess
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector
from support.events import MOMENT, run
from support.folding import all_rows
from support.parallel import OPENED, NumberedLedger
from support.processes import workers_of
from support.registering import registered

AllRows = dict[str, dict[tuple[str, str, str], bytes]]


class Seen(msgspec.Struct, frozen=True):
    events: int


SEEN = Table("all.seen", Seen)
NEIGHBOURS = Table("neighbours", Seen)


class CountsAll:
    """Writes one row for all spaces."""

    name: ClassVar[str] = "counts_all"
    version: ClassVar[int] = 1
    tables = (SEEN,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        row = rows.get(SEEN, "") or Seen(0)
        rows.put(SEEN, Seen(row.events + len(run)), "")


class ReadsNeighbour:
    """Reads a row of another space."""

    name: ClassVar[str] = "reads_neighbour"
    version: ClassVar[int] = 1
    tables = (NEIGHBOURS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        left = rows.get(NEIGHBOURS, f"space-{(int(space.partition('-')[2]) + 1) % 4}") or Seen(0)
        rows.put(NEIGHBOURS, Seen(left.events + len(run)), space)


class Own:
    """Writes a row for each space, and can be made in any process."""

    name: ClassVar[str] = "own"
    version: ClassVar[int] = 1
    tables = (NEIGHBOURS,)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        row = rows.get(NEIGHBOURS, space) or Seen(0)
        rows.put(NEIGHBOURS, Seen(row.events + len(run)), space)


def own() -> list[Projection]:
    return builtin.with_settings(Own())


def counts_all() -> list[Projection]:
    return builtin.with_settings(CountsAll())


def reads_neighbour() -> list[Projection]:
    return builtin.with_settings(ReadsNeighbour())


def ends_at_once() -> list[Projection]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@pytest.fixture(autouse=True)
def _few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARALLEL_RECORDS_MIN", 10)


def events(count: int = 200) -> list[bytes]:
    common = {"kind": "agent.spoke", "agent": "baker", "at": MOMENT}
    made = [Event(id=f"e-{n}", space=f"space-{n % 4}", payload={"text": f"word {n}"}, **common) for n in range(count)]
    return [codec.encode(each) for each in made]


def fold(
    catch_up: ParallelCatchUp, make: Callable[[], Sequence[Projection]], progress: Progress | None = None
) -> AllRows:
    values = events()
    ledger = NumberedLedger(values, unique_ids=True, batch_records=20)
    projector = Projector(ledger, MemoryStore(), make())

    async def work() -> AllRows:
        generation = await projector.first_generation(0, 0)
        await catch_up(projector, generation, len(values), progress)
        return all_rows(projector, generation)

    return run(work())


def test_workers_fold_large_ledgers_and_end_afterwards() -> None:
    found: list[int] = []

    def progress(done: int, total: int) -> None:
        found.append(len(workers_of(os.getpid())))

    rows = fold(ParallelCatchUp(own, workers=3), own, progress)
    assert rows == fold(ParallelCatchUp(None), own)
    assert set(found) == {3}
    assert workers_of(os.getpid()) == []


def test_progress_is_that_of_the_whole() -> None:
    seen: list[tuple[int, int]] = []
    fold(ParallelCatchUp(own, workers=2), own, lambda *done: seen.append(done))
    assert seen == [(done, 200) for done in range(20, 201, 20)]


def test_a_small_ledger_is_folded_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PARALLEL_RECORDS_MIN", 1_000)
    found: list[int] = []
    fold(ParallelCatchUp(own, workers=2), own, lambda done, total: found.append(len(workers_of(os.getpid()))))
    assert set(found) == {0}


@pytest.mark.parametrize("make", [counts_all, reads_neighbour])
def test_projections_whose_rows_spaces_share_are_folded_in_one_process(
    make: Callable[[], Sequence[Projection]], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        assert fold(ParallelCatchUp(make, workers=2), make) == fold(ParallelCatchUp(None), make)
    assert "has rows that several spaces may share" in caplog.text


def test_projections_that_another_process_cannot_make_are_folded_in_this_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def local() -> list[Projection]:
        return own()

    with caplog.at_level(logging.INFO):
        assert fold(ParallelCatchUp(local, workers=2), local) == fold(ParallelCatchUp(None), own)
    assert "other processes cannot get the projections" in caplog.text


def test_kinds_that_only_this_process_knows_are_folded_in_it(caplog: pytest.LogCaptureFixture) -> None:
    with registered("shop", [OPENED]), caplog.at_level(logging.INFO):
        assert fold(ParallelCatchUp(own, workers=2), own) == fold(ParallelCatchUp(None), own)
    assert "other processes do not know the same kinds" in caplog.text


def test_workers_that_end_while_they_start_are_replaced_by_this_process(caplog: pytest.LogCaptureFixture) -> None:
    expected = fold(ParallelCatchUp(None), own)
    values = events()
    projector = Projector(NumberedLedger(values, unique_ids=True, batch_records=20), MemoryStore(), own())

    async def work() -> AllRows:
        generation = await projector.first_generation(0, 0)
        await ParallelCatchUp(ends_at_once, workers=2)(projector, generation, len(values))
        return all_rows(projector, generation)

    assert run(work()) == expected
    assert "a worker process has ended with exit code -9" in caplog.text


def test_a_worker_that_is_killed_leaves_the_rest_to_this_process(caplog: pytest.LogCaptureFixture) -> None:
    def progress(done: int, total: int) -> None:
        if done == 60:
            os.kill(workers_of(os.getpid())[0], signal.SIGKILL)

    assert fold(ParallelCatchUp(own, workers=2), own, progress) == fold(ParallelCatchUp(None), own)
    assert "a worker process has ended with exit code -9; the fold continues in one process" in caplog.text
    assert workers_of(os.getpid()) == []


@pytest.mark.parametrize("turns", range(5))
def test_a_worker_whose_start_is_cancelled_is_not_left(turns: int) -> None:
    async def work() -> None:
        starting = asyncio.create_task(WorkerProcess.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            (await starting).close()
        assert workers_of(os.getpid()) == []

    run(work())


def test_a_throttled_fold_pauses_that_share_of_the_time() -> None:
    began, worked = time.monotonic(), time.process_time()
    fold(ParallelCatchUp(own, throttle=0.9), own)
    assert time.monotonic() - began > 4 * (time.process_time() - worked)


def test_a_throttled_fold_has_the_same_rows() -> None:
    assert fold(ParallelCatchUp(own, workers=2, throttle=0.5), own) == fold(ParallelCatchUp(None), own)
