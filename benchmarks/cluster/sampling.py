"""Samples of the progress of views, read from their checkpoints in the store."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from benchmarks.cluster.processes import Process
from recallog.components import Components
from recallog_projections.stores.store import Store
from recallog_schemas.errors import StorageUnavailable

SAMPLE_SECONDS = 0.1
FOLD_SECONDS_MAX = 900.0


class Sample(NamedTuple):
    """The progress at one moment."""

    at: float
    """Seconds on `time.perf_counter`."""
    processed: int
    """Records processed so far."""
    used_seconds: float
    """CPU seconds of the folding processes since they started."""


@dataclass(slots=True)
class Samples:
    """Samples in the order of time."""

    taken: list[Sample] = field(default_factory=list)

    def rate(self, first: float = 0.0, last: float = float("inf")) -> float:
        """Records per second between the times `first` and `last`, from the first to the last progress.

        Time before the first commit (starting, joining the group) and after the last one does not count.
        """
        since, until = self._span(first, last)
        return (until.processed - since.processed) / (until.at - since.at)

    def per_used_second(self) -> float:
        """Records per CPU second: the rate if the process had a processor to itself."""
        since, until = self._span(0.0, float("inf"))
        return (until.processed - since.processed) / (until.used_seconds - since.used_seconds)

    def _span(self, first: float, last: float) -> tuple[Sample, Sample]:
        within = [sample for sample in self.taken if first <= sample.at <= last]
        progressed = [after for before, after in pairwise(within) if after.processed > before.processed]
        if len(progressed) < 2:
            raise TooFewSamples("too few samples for a rate: fold more records")
        return progressed[0], progressed[-1]


class TooFewSamples(ValueError):
    """The records were processed before two samples showed progress."""


async def processed(store: Store, partitions: int, *, before: Collection[str] = ()) -> int:
    """How many offsets the active generations have processed, or those being built if none is active.

    Generations with ids in `before` do not count, so that a rebuild is counted both before and after its cutover.
    """
    total = 0
    for partition in range(partitions):
        pointer = await store.pointer(partition)
        counts = pointer.active if pointer.active and pointer.active.id not in before else pointer.building
        checkpoint = await store.checkpoint(counts) if counts else None
        total += checkpoint.offset + 1 if checkpoint else 0
    return total


async def active_ids(components: Components) -> set[str]:
    """The ids of the active generations."""
    pointers = [
        await components.views.store.pointer(partition) for partition in range(len(await components.ledger.ends()))
    ]
    return {pointer.active.id for pointer in pointers if pointer.active is not None}


async def sample_until(
    components: Components,
    until: int,
    processes: Sequence[Process],
    *,
    before: Collection[str] = (),
    note: Callable[[int], None] | None = None,
) -> Samples:
    """Sample until `until` records are processed. Raises if that takes 15 minutes or one of `processes` crashes."""
    partitions = len(await components.ledger.ends())
    deadline = time.monotonic() + FOLD_SECONDS_MAX
    samples = Samples()
    while True:
        try:
            done = await processed(components.views.store, partitions, before=before)
        except StorageUnavailable:
            done = samples.taken[-1].processed if samples.taken else 0
        samples.taken.append(Sample(time.perf_counter(), done, sum(process.cpu_seconds() for process in processes)))
        if note is not None:
            note(done)
        if done >= until:
            return samples
        for process in processes:
            if process.crashed:
                raise process.failed(f"ended when {done:,} of {until:,} records were processed")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{done:,} of {until:,} records were processed in {FOLD_SECONDS_MAX:g} s")
        await asyncio.sleep(SAMPLE_SECONDS)
