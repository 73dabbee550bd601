"""Time of each step of a live fold: the steps of the projector's loop, each run separately over whole batches."""

import gc
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
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
from recallog_schemas import Event, Record, codec, kinds
from recallog_schemas.errors import InvariantViolation
from recallog_streams import chain, generations
from recallog_streams.ledgers.ledger import Batch
from recallog_streams.projector import Projector


class Laps:
    """Seconds per step, in the order of the steps."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] += now - self._last
        self._last = now

    def skip(self) -> None:
        """Do not count the time since the last step."""
        self._last = time.perf_counter()


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
    rows, laps = home.projector.fold.new_rows(), Laps()
    gc.disable()  # as the projector does around a batch
    try:
        async for batch in home.ledger.read(0, checkpoint.offset + 1, end):
            laps.lap("ledger read")
            checkpoint = await _batch(home, generation, checkpoint, batch, rows, laps)
    finally:
        gc.enable()
    return laps.seconds


async def _batch(
    home: Home, generation: Generation, checkpoint: Checkpoint, batch: Batch, rows: Rows, laps: Laps
) -> Checkpoint:
    events = [codec.decode(data) for _, data in batch.records]
    laps.lap("decode")
    records = [_record(offset, data, event) for (offset, data), event in zip(batch.records, events, strict=True)]
    laps.lap("records")
    # The fold computes needs only if rows are missing. Here they are always computed, and that time is not counted.
    needs = rows.missing(_needs(home.projections, records))
    laps.skip()
    if needs:
        of_rows = [need for need in needs if not rows.is_log(need)]
        of_logs = [need for need in needs if rows.is_log(need)]
        totals = [(LogName(*need[:3]), 0) for need in of_logs]
        snapshot = await home.store.read(0, of_rows, totals, generation)
        for need, data in zip(of_rows, snapshot.rows, strict=True):
            rows.load(need, data)
        for need, tail in zip(of_logs, snapshot.logs, strict=True):
            rows.load_total(need, tail.total)
    laps.lap("fetch")
    # Projection by projection instead of record by record: the same work, without a clock inside the inner loop.
    for projection in home.projections:
        folded_kinds = getattr(projection, "kinds", None)
        folded = [record for record in records if folded_kinds is None or record.event.kind in folded_kinds]
        laps.skip()
        for record in folded:
            projection.apply(rows, record)
        laps.lap(f"apply {projection.name}")
    rows.commit_record()
    changes = rows.changes()
    laps.lap("encode changes")
    linked, block_ends = chain.extended(checkpoint.chain, batch)
    changes = Changes({**changes.rows, **block_ends}, changes.logs, changes.keep)
    laps.lap("chain")
    new = Checkpoint(batch.next - 1, batch.records[-1][0], b"-" * 16, linked)
    if await home.store.commit(generation, checkpoint, new, changes) is not Outcome.APPLIED:
        raise InvariantViolation("another process writes the views of the benchmark")
    laps.lap("store commit")
    return new


def _record(offset: int, data: bytes, event: Event) -> Record:
    return Record(0, offset, event, data, kinds.kind_of(event.kind).is_episode)


def _needs(projections: Sequence[Projection], records: Sequence[Record]) -> Iterator[RowKey]:
    for projection in projections:
        folded_kinds = getattr(projection, "kinds", None)
        for record in records:
            if folded_kinds is None or record.event.kind in folded_kinds:
                yield from projection.needs(record)


async def _flat(home: Home) -> float:
    """Seconds to fold the same records into memory, which is the cost of the fold itself."""
    projector = Projector(home.ledger, MemoryStore(), home.projections)
    (end,) = await home.ledger.ends()
    generation = await projector.first_generation(0, 0)
    await projector.catch_up(generation, BEFORE)
    return await seconds(projector.catch_up(generation, end))
