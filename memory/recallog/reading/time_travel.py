"""Time travel: the views of a space as of a position or a time, folded at query time."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from recallog_schemas import Position, limits
from recallog_schemas.errors import OutOfRange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from recallog.reading.read_session import ReadSession
    from recallog_projections.projection import Projection
    from recallog_streams.ledgers.ledger import Ledger
    from recallog_streams.progress import Progress

    Erase = Callable[[ReadSession, ReadSession, str, Sequence[Projection]], Awaitable[None]]
    """Erases in a past what is erased at present: called with the past, which was folded in memory by the projections,
    with the present, and with the space."""

AsOf = Position | datetime
"""A position: the fold up to and including it. A time: the fold of all records, in which events that happened later
still count for identity, dead letters, settings and visibility, but are not remembered."""


def check_size(space: str, events: int) -> None:
    """Raise `OutOfRange` if a fold of the space at query time would take too long."""
    if events > limits.AS_OF_RECORDS_MAX:
        raise OutOfRange(
            f"the space {space!r} has {events:,} events; time travel folds at most {limits.AS_OF_RECORDS_MAX:,}",
            path="as_of",
        )


async def travel(
    ledger: "Ledger",
    projections: "Sequence[Projection]",
    space: str,
    as_of: AsOf | None,
    progress: "Progress | None" = None,
) -> "ReadSession":
    """The views of `space` as of `as_of`; None: as they are now.

    Raises `OutOfRange` for a position past the end, and for a space that is too large.
    """
    # Few queries travel, and every command imports this module.
    from recallog.reading.read_session import ReadSession
    from recallog_projections.stores.memory import MemoryStore
    from recallog_streams import positions
    from recallog_streams.projector import ProcessedBatch, Projector

    partition = ledger.partition_of(space)
    ends = await ledger.ends()
    until, remember_until = ends[partition], None
    if isinstance(as_of, Position):
        positions.check_position(ends, as_of.partition, as_of.offset, "as_of")
        positions.check_same_partition(space, partition, as_of.partition, "as_of")
        until = as_of.offset + 1
    else:
        remember_until = as_of
    records = 0

    def count(batch: ProcessedBatch) -> None:
        nonlocal records
        records += batch.records
        check_size(space, records)

    projector = Projector(
        ledger, MemoryStore(), projections, space=space, remember_until=remember_until, processed=count
    )
    generation = await projector.first_generation(partition, until)
    await projector.catch_up(generation, until, progress)
    return ReadSession(projector.store, partition, generation)
