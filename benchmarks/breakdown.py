"""Time of each step of a live fold, and of each projection."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.fold import BEFORE
from benchmarks.homes import Home, grow, opened, restore_views
from benchmarks.measure import Measure, Setup, seconds, without_garbage_collection
from benchmarks.workload import villages
from recallog_projections.projection import Projection
from recallog_projections.rows import Changes, Rows
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Checkpoint, Generation, Outcome
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import Record
from recallog_schemas.errors import InvariantViolation
from recallog_streams import chain, generations
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.projector import Projector


class Laps:
    """Seconds per step by a clock, in the order of the steps."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.now = clock
        self._last = clock()

    def lap(self, step: str) -> None:
        now = self.now()
        self.seconds[step] += now - self._last
        self._last = now


async def measure(setup: Setup) -> list[Measure]:
    grown = setup.size(100_000, 20_000)
    folder = setup.folder / "breakdown"
    setup.report(f"breakdown: appending {BEFORE + grown:,} events")
    await grow(folder, villages(BEFORE + grown), BEFORE)
    runs: list[dict[str, float]] = []
    with without_garbage_collection():
        for repetition in range(setup.repetitions):
            setup.report(f"breakdown: {repetition + 1} of {setup.repetitions}")
            runs.append(await _run(folder))
    steps = {step: median(run[step] for run in runs) / grown * 1e6 for step in runs[0]}
    return [Measure(f"breakdown: {step}", value, "µs/event") for step, value in steps.items()]


async def _run(folder: Path) -> dict[str, float]:
    restore_views(folder)
    async with opened(folder) as home:
        taken = dict(await _steps(home))
    restore_views(folder)
    async with opened(folder) as home:
        whole = await seconds(generations.current(home.projector, 0))
        share = whole - sum(taken.values())
        flat = await _flat(home)
    return {**taken, "the rest (loop, thread hand-overs)": share, "live, whole": whole, "flat fold, MemoryStore": flat}


async def _steps(home: Home) -> dict[str, float]:
    generation = (await home.store.pointer(0)).active
    if generation is None:
        raise InvariantViolation("the views were not built")
    checkpoint = await home.store.checkpoint(generation)
    if checkpoint is None:
        raise InvariantViolation("the views were lost")
    (end,) = await home.ledger.ends()
    laps = Laps()
    folded = TimedFold(home.projections, home.projector, laps)
    async for batch in home.ledger.read(0, checkpoint.offset + 1, end):
        laps.lap("ledger read")
        changes = await folded.fold(generation, batch)
        linked, block_ends = chain.extend_chain(checkpoint.chain, batch)
        changes = Changes({**changes.rows, **block_ends}, changes.logs, changes.keep)
        laps.lap("chain")
        new = Checkpoint(batch.next - 1, batch.records[-1][0], b"-" * 16, linked)
        if await home.store.commit(generation, checkpoint, new, changes) is not Outcome.APPLIED:
            raise InvariantViolation("another process writes the views of the benchmark")
        laps.lap("store commit")
        checkpoint = new
    return laps.seconds


class TimedFold:
    """A fold of batches that measures its steps, and each projection."""

    def __init__(self, projections: Sequence[Projection], projector: Projector, laps: Laps) -> None:
        self._laps, self._store, self._fold = laps, projector.store, projector.fold
        self._rows = self._fold.new_rows()
        self._applied = 0.0
        for call in self._fold.calls:
            call.apply = self._timed(call.name, call.apply)

    def _timed(self, name: str, apply: Callable[[Rows, Sequence[Record]], None]) -> Callable[..., None]:
        def timed(rows: Rows, run: Sequence[Record]) -> None:
            began = self._laps.now()
            apply(rows, run)
            taken = self._laps.now() - began
            self._laps.seconds[f"apply {name}"] += taken
            self._applied += taken

        return timed

    async def fold(self, generation: Generation, batch: Batch) -> Changes:
        """The changes of a batch. Rows are fetched, runs that lacked them are applied again, and all of it counts."""
        records = self._fold.decode(batch)
        self._laps.lap("decode")
        self._applied = 0.0
        changes, count = await self._fold.process(records, self._rows, partial(self._fetch, generation))
        if count != len(records):
            raise InvariantViolation("a batch of the benchmark is more than one commit")
        self._laps.lap("runs, fetches, encoded changes")
        self._laps.seconds["runs, fetches, encoded changes"] -= self._applied
        return changes

    async def _fetch(
        self, generation: Generation, row_keys: Sequence[RowKey], logs: Sequence[LogName]
    ) -> tuple[Sequence[bytes | None], Sequence[int]]:
        found = await self._store.read(generation.partition, row_keys, [(log, 0) for log in logs], generation)
        return found.rows, [tail.total for tail in found.logs]


async def _flat(home: Home) -> float:
    """Seconds to fold the same records into memory, which is the cost of the fold itself."""
    projector = Projector(home.ledger, MemoryStore(), home.projections)
    (end,) = await home.ledger.ends()
    generation = await projector.first_generation(0, 0)
    await projector.catch_up(generation, BEFORE)
    return await seconds(projector.catch_up(generation, end))
