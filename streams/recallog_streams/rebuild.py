"""A rebuild of all partitions of some views, alone or together with other processes that were asked for the same.

The building generations of all partitions are made first: whoever comes later finds them and joins. From then on each
process takes partitions in an order of its own and leaves alone those which move by another's hand, so that two
processes need about half the time and need not know of each other. One that dies is noticed, since its partitions stand
still.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence

from recallog_projections.stores.store import Pointer
from recallog_schemas import limits
from recallog_schemas.errors import RecallogError
from recallog_schemas.views import RebuildReport
from recallog_streams import generations
from recallog_streams.generations import BuildInProgress
from recallog_streams.progress import CombinedProgress
from recallog_streams.projector import GenerationGone, Progress, Projector

MOVES_SECONDS = 0.25
"""How long a partition is watched for another process's work on it."""


async def rebuild(name: str, projector: Projector, progress: Progress | None, *, accept: bool) -> list[RebuildReport]:
    """Build the views afresh beside the live ones, then cut over, partition by partition.

    Raises `NewDeadLetters` where some partitions keep their live views; the others have been replaced by then.
    """
    ends = await projector.ledger.ends()
    begun = await _begin(projector, range(len(ends)))
    random.shuffle(begun)
    waiting, reports, failures = deque(begun), list[RebuildReport](), list[RecallogError]()
    overall = CombinedProgress(progress, {each.generation.partition: ends[each.generation.partition] for each in begun})

    async def work() -> None:
        while waiting:
            each = waiting.popleft()
            if await _moves(projector, each):
                waiting.append(each)
                continue
            partition, began = each.generation.partition, time.monotonic()
            try:
                rebuilt = await generations.complete(projector, each, overall.of(partition), accept=accept)
            except GenerationGone:
                continue  # given up by an operator, or replaced by newer code
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

    await asyncio.gather(*(work() for _ in range(limits.PARTITIONS_AT_ONCE)))
    if failures:
        raise failures[0]
    return sorted(reports, key=lambda report: report.partition)


async def _begin(projector: Projector, partitions: Sequence[int]) -> list[BuildInProgress]:
    """The building generations of a rebuild under way; where there is none, new ones for all partitions."""
    return [await generations.begin(projector, partition) for partition in await concerned(projector, partitions)]


async def concerned(projector: Projector, partitions: Sequence[int]) -> dict[int, Pointer]:
    """The partitions that a rebuild would complete now: those under way, else all; each with its generations."""
    pointers = {partition: await projector.store.pointer(partition) for partition in partitions}
    under_way = {partition: pointer for partition, pointer in pointers.items() if is_joined(projector, pointer)}
    return under_way or pointers


def is_joined(projector: Projector, pointer: Pointer) -> bool:
    """Whether a rebuild would complete what is being built; what other code has left behind it would not."""
    return pointer.building is not None and pointer.building.code == projector.fold.code


async def _moves(projector: Projector, begun: BuildInProgress) -> bool:
    """Whether another process is at work on a generation that this one has joined."""
    if not begun.joined:
        return False
    before = await projector.store.checkpoint(begun.generation)
    await asyncio.sleep(MOVES_SECONDS)
    return await projector.store.checkpoint(begun.generation) != before
