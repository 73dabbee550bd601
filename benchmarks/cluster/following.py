"""How far views are, sampled from outside: what a process has folded is what it has committed."""

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
    """How far it was at one moment."""

    at: float
    """Seconds on `time.perf_counter`."""
    processed: int
    """Records."""
    used_seconds: float
    """Of a processor, by the processes that fold, since they started."""


@dataclass(slots=True)
class Samples:
    """What was seen as time went on."""

    taken: list[Sample] = field(default_factory=list)

    def rate(self, first: float = 0.0, last: float = float("inf")) -> float:
        """Records per second from `first` to `last` seconds, from the first commit on, without the wait at the end.

        What the process did before its first commit (it starts, it joins its group) does not count.
        """
        since, until = self._span(first, last)
        return (until.processed - since.processed) / (until.at - since.at)

    def per_used_second(self) -> float:
        """Records per second of a processor: what the rate would be where nobody else wanted one."""
        since, until = self._span(0.0, float("inf"))
        return (until.processed - since.processed) / (until.used_seconds - since.used_seconds)

    def _span(self, first: float, last: float) -> tuple[Sample, Sample]:
        within = [sample for sample in self.taken if first <= sample.at <= last]
        moved = [after for before, after in pairwise(within) if after.processed > before.processed]
        if len(moved) < 2:
            raise TooFewSamples("too few samples for a rate: fold more records")
        return moved[0], moved[-1]


class TooFewSamples(ValueError):
    """The records were decided before it could be seen how fast."""


async def processed(store: Store, partitions: int, *, before: Collection[str] = ()) -> int:
    """How many offsets the active generations have decided, or those being built where there are none.

    Generations with ids in `before` do not count: so a rebuild is followed while it builds and when it has cut over.
    """
    total = 0
    for partition in range(partitions):
        pointer = await store.pointer(partition)
        counts = pointer.active if pointer.active and pointer.active.id not in before else pointer.building
        checkpoint = await store.checkpoint(counts) if counts else None
        total += checkpoint.offset + 1 if checkpoint else 0
    return total


async def active_ids(parts: Components) -> set[str]:
    """The ids of the active generations."""
    pointers = [await parts.views.store.pointer(partition) for partition in range(len(await parts.ledger.ends()))]
    return {pointer.active.id for pointer in pointers if pointer.active is not None}


async def follow(
    parts: Components,
    until: int,
    processes: Sequence[Process],
    *,
    before: Collection[str] = (),
    note: Callable[[int], None] | None = None,
) -> Samples:
    """Sample until `until` records are decided; fails where that takes 15 minutes or one of `processes` crashes."""
    partitions = len(await parts.ledger.ends())
    give_up = time.monotonic() + FOLD_SECONDS_MAX
    samples = Samples()
    while True:
        try:
            done = await processed(parts.views.store, partitions, before=before)
        except StorageUnavailable:
            done = samples.taken[-1].processed if samples.taken else 0
        samples.taken.append(Sample(time.perf_counter(), done, sum(process.cpu_seconds() for process in processes)))
        if note is not None:
            note(done)
        if done >= until:
            return samples
        for process in processes:
            if process.crashed:
                raise process.failed(f"ended when {done:,} of {until:,} records were decided")
        if time.monotonic() > give_up:
            raise TimeoutError(f"{done:,} of {until:,} records were decided in {FOLD_SECONDS_MAX:g} s")
        await asyncio.sleep(SAMPLE_SECONDS)
