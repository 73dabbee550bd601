"""The rebuild of all partitions of a group of views, by one process or by several that run it at the same time.

The building generations of all partitions are created first; a process that starts later joins them. Each process takes
partitions in random order and skips those whose checkpoint another process is moving, so that two processes need about
half the time without any coordination. The partitions of a process that died stop moving, and another one takes them.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from functools import partial

from recallog_projections.concurrency import gather_limited
from recallog_projections.stores.store import Pointer
from recallog_schemas import limits
from recallog_schemas.errors import RecallogError
from recallog_schemas.views import RebuildReport
from recallog_streams import generations
from recallog_streams.generations import BuildInProgress
from recallog_streams.progress import CombinedProgress, Progress
from recallog_streams.projector import CatchUp, GenerationGone, Projector

MOVES_SECONDS = 0.25
"""How long a partition's checkpoint is watched to see whether another process moves it."""


async def rebuild(
    name: str,
    projector: Projector,
    progress: Progress | None,
    *,
    accept: bool,
    catch_up: CatchUp = Projector.catch_up,
    at_once: int = limits.PARTITIONS_AT_ONCE,
) -> list[RebuildReport]:
    """Build new views beside the live ones, then cut over, partition by partition, `at_once` at the same time.

    Raises `NewDeadLetters` if some partitions keep their live views; the other partitions are replaced by then.
    """
    ends = await projector.ledger.ends()
    begun = await _begin(projector, range(len(ends)))
    random.shuffle(begun)
    waiting, reports, failures = deque(begun), list[RebuildReport](), list[RecallogError]()
    begun_again = set[int]()
    overall = CombinedProgress(progress, {each.generation.partition: ends[each.generation.partition] for each in begun})

    async def work() -> None:
        while waiting:
            each = waiting.popleft()
            if await _is_moving(projector, each):
                waiting.append(each)
                continue
            partition, began = each.generation.partition, time.monotonic()
            try:
                rebuilt = await generations.complete(
                    projector, each, overall.of(partition), accept=accept, catch_up=catch_up
                )
            except GenerationGone:
                # An operator aborted it, or newer code replaced it. If nothing is left, the store was damaged.
                lost = await projector.store.pointer(partition) == Pointer() and partition not in begun_again
                if lost:
                    begun_again.add(partition)
                    waiting.append(await generations.begin(projector, partition))
                continue
            except RecallogError as error:
                failures.append(error)
                continue
            reports.append(
                RebuildReport(
                    views=name,
                    partition=partition,
                    replaced=rebuilt.replaced.id if rebuilt.replaced else None,
                    generation=rebuilt.active.id,
                    joined=rebuilt.joined,
                    records=ends[partition],
                    seconds=time.monotonic() - began,
                )
            )

    await gather_limited(lambda _: work(), range(at_once), at_once)
    if failures:
        raise failures[0]
    return sorted(reports, key=lambda report: report.partition)


async def _begin(projector: Projector, partitions: Sequence[int]) -> list[BuildInProgress]:
    """The building generations of a rebuild in progress; without one, new generations of all partitions."""
    return await gather_limited(partial(generations.begin, projector), await find_concerned(projector, partitions))


async def find_concerned(projector: Projector, partitions: Sequence[int]) -> dict[int, Pointer]:
    """The partitions, with their generations, that a rebuild would complete: the ones in progress, or else all."""
    pointers = dict(zip(partitions, await gather_limited(projector.store.pointer, partitions), strict=True))
    in_progress = {partition: pointer for partition, pointer in pointers.items() if is_joined(projector, pointer)}
    return in_progress or pointers


def is_joined(projector: Projector, pointer: Pointer) -> bool:
    """Whether a rebuild would complete the building generation: it has this code, not that of another version."""
    return pointer.building is not None and pointer.building.code == projector.fold.code


async def _is_moving(projector: Projector, begun: BuildInProgress) -> bool:
    """Whether another process is working on a generation that this one has joined."""
    if not begun.joined:
        return False
    before = await projector.store.checkpoint(begun.generation)
    await asyncio.sleep(MOVES_SECONDS)
    return await projector.store.checkpoint(begun.generation) != before
