"""Copying a ledger to another place: a folder to a cluster when an agent outgrows its machine, or back to look at it.

The views are not copied. They are computed from the copy.
"""

from collections.abc import Callable, Sequence

from recallog_schemas import Event, Position, codec
from recallog_schemas.errors import IdConflict, InvalidEvent
from recallog_schemas.views import CopyReport
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.projector import Progress

_EVENTS_AT_ONCE = 1_000

LeftOut = Callable[[Position, str], None]
"""Called with the position of a record that was not copied, and why."""


async def copy(
    source: Ledger, target: Ledger, progress: Progress | None = None, left_out: LeftOut | None = None
) -> CopyReport:
    """Append every event of `source` to `target`, in the order of each space; safe to run again with the same target.

    A record that is no event stays behind, and so does one whose id names something else in a target that knows its
    ids: in the views of the source they are dead letters. What a run before has written already is written again where
    the target cannot know (Kafka), and counts once.
    """
    ends = await source.ends()
    copied = refused = 0

    def refuse(position: Position, why: str) -> None:
        nonlocal refused
        refused += 1
        if left_out is not None:
            left_out(position, why)

    done = 0
    for partition, end in enumerate(ends):
        async for batch in source.read(partition, 0, end):
            said = []
            for offset, data in batch.records:
                try:
                    said.append((Position(partition, offset), codec.decode(data)))
                except InvalidEvent as error:
                    refuse(Position(partition, offset), str(error))
            for first in range(0, len(said), _EVENTS_AT_ONCE):
                copied += await _append(target, said[first : first + _EVENTS_AT_ONCE], refuse)
            if progress is not None:
                progress(done + batch.next, sum(ends))
        done += end
    return CopyReport(records=sum(ends), copied=copied, left_out=refused)


async def _append(target: Ledger, said: Sequence[tuple[Position, Event]], refuse: LeftOut) -> int:
    """How many of the events are in `target` now."""
    try:
        await target.append([event for _, event in said])
    except IdConflict as error:
        if len(said) == 1:
            refuse(said[0][0], str(error))
            return 0
        half = len(said) // 2
        return await _append(target, said[:half], refuse) + await _append(target, said[half:], refuse)
    return len(said)
