"""The rows do not depend on how many processes fold: they are those of one process, row by row."""

import json
import lzma
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Generation
from recallog_projections.views import builtin
from recallog_streams.fold import Fold
from recallog_streams.parallel.catching_up import ParallelCatchUp
from recallog_streams.parallel.workers import Workers, start_workers
from recallog_streams.projector import Projector
from support.events import one_loop, run
from support.folding import all_rows
from support.parallel import OPENED, NumberedLedger, make_projections, spread
from support.random_entries import random_history
from support.random_events import random_ledger
from support.registering import registered

pytestmark = pytest.mark.models("long_term")

GOLDEN = Path(__file__).parents[1] / "golden"
SEEDS = st.integers(0, 2**32)
BATCHES = st.sampled_from((1, 3, 20, 1000))

Pools = Sequence[Workers]


class SmallCommits(MemoryStore):
    """A store that takes few changes at a time."""

    commit_changes_max = 60


@pytest.fixture(scope="module")
def pools() -> Iterator[Pools]:
    """Two processes, and three. They run for all tests, since starting them takes most of the time."""

    async def start() -> Pools:
        fold = Fold(builtin.projections(), unique_ids=False)
        begin = (start_workers(n, make_projections, fold, unique_ids=False, store=SmallCommits()) for n in (2, 3))
        return [await processes.enter_async_context(each) for each in begin]

    processes = AsyncExitStack()
    with registered("shop", [OPENED]), one_loop():
        yield run(start())
        run(processes.aclose())


def random_values(seed: int, size: int) -> list[bytes]:
    """Events of several spaces with settings, thresholds, captures, declared and registered kinds; dead letters."""
    rng = random.Random(seed)
    histories = [random_ledger(rng, rng.randrange(size + 1), unique_ids=False) for _ in range(3)]
    histories += [[json.dumps(fields).encode() for fields in random_history(rng, rng.randrange(size + 1))]]
    return spread(rng, histories)


def projector_of(values: Sequence[bytes], batch_records: int) -> tuple[Projector, Generation]:
    ledger = NumberedLedger(values, unique_ids=False, batch_records=batch_records)
    projector = Projector(ledger, SmallCommits(), builtin.projections())
    return projector, run(projector.first_generation(0, 0))


def rows_of_one_process(values: Sequence[bytes]) -> dict[str, dict[tuple[str, str, str], bytes]]:
    projector, generation = projector_of(values, 1000)
    run(projector.catch_up(generation, len(values)))
    return all_rows(projector, generation)


@settings(max_examples=40)
@given(seed=SEEDS, size=st.integers(1, 60), batch_records=BATCHES)
def test_the_rows_are_the_same_with_one_two_and_three_processes(
    pools: Pools, seed: int, size: int, batch_records: int
) -> None:
    values = random_values(seed, size)
    expected = rows_of_one_process(values)
    for workers in pools:
        projector, generation = projector_of(values, batch_records)
        run(ParallelCatchUp(None).catch_up_with(workers, projector, generation, len(values)))
        assert all_rows(projector, generation) == expected


@settings(max_examples=25)
@given(seed=SEEDS, size=st.integers(1, 60), batch_records=BATCHES, data=st.data())
def test_another_number_of_processes_goes_on_from_any_checkpoint(
    pools: Pools, seed: int, size: int, batch_records: int, data: st.DataObject
) -> None:
    values = random_values(seed, size)
    projector, generation = projector_of(values, batch_records)
    for until in sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4), label="until")):
        workers = data.draw(st.sampled_from((None, *pools)), label="workers")
        if workers is None:
            run(projector.catch_up(generation, until))
        else:
            run(ParallelCatchUp(None).catch_up_with(workers, projector, generation, until))
    run(projector.catch_up(generation, len(values)))
    assert all_rows(projector, generation) == rows_of_one_process(values)


@settings(max_examples=25)
@given(seed=SEEDS, size=st.integers(1, 60), batch_records=BATCHES, ahead=st.integers(1, 30))
def test_another_process_may_move_the_checkpoint_meanwhile(
    pools: Pools, seed: int, size: int, batch_records: int, ahead: int
) -> None:
    values = random_values(seed, size)
    projector, generation = projector_of(values, batch_records)
    other = Projector(projector.ledger, projector.store, builtin.projections())
    rng = random.Random(seed)

    def progress(done: int, total: int) -> None:
        if rng.random() < 0.3:
            work = other.catch_up(generation, min(done + ahead, total))
            with pytest.raises(StopIteration):  # a store in memory never waits
                work.send(None)

    run(ParallelCatchUp(None).catch_up_with(pools[0], projector, generation, len(values), progress))
    assert all_rows(projector, generation) == rows_of_one_process(values)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("**/*.jsonl*")), ids=lambda path: path.name)
def test_recorded_ledgers_have_the_same_rows(pools: Pools, path: Path) -> None:
    content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    values = content.splitlines()
    expected = rows_of_one_process(values)
    for workers in pools:
        projector, generation = projector_of(values, 50)
        run(ParallelCatchUp(None).catch_up_with(workers, projector, generation, len(values)))
        assert all_rows(projector, generation) == expected
