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
    from recallog_projections.rows import Fetched
    from recallog_projections.tables import LogName
    from recallog_schemas import Event
    from recallog_streams.ledgers.ledger import Ledger
    from recallog_streams.progress import Progress

    Erase = Callable[[ReadSession, ReadSession, str], Awaitable[Sequence[Event]]]
    """Finds what is erased at present and not in a past: called with the past, with the present, and with the space.

    Returns events that erase it, which are then folded onto the past by the projections that name their kinds."""

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


async def fold_onto(past: "ReadSession", events: "Sequence[Event]", projections: "Sequence[Projection]") -> None:
    """Fold events onto a past, as if they had happened at its end, by its projections that name their kinds.

    Raises `ProjectionError` if one cannot be applied.
    """
    from recallog_projections.stores.store import Generation
    from recallog_projections.tables import RowKey
    from recallog_schemas import Record, codec
    from recallog_schemas.errors import InvariantViolation, ProjectionError
    from recallog_streams import dead_letters
    from recallog_streams.fold import Fold

    generation = past.source
    checkpoint = await past.store.checkpoint(generation) if isinstance(generation, Generation) else None
    if not isinstance(generation, Generation) or checkpoint is None:
        raise InvariantViolation("the fold of a past has no checkpoint")

    async def fetch(rows: Sequence[RowKey], logs: "Sequence[LogName]") -> "Fetched":
        found = await past.read(rows, [(log, 0) for log in logs])
        return found.rows, [tail.total for tail in found.logs]

    fold = Fold([each for each in projections if getattr(each, "kinds", None) is not None], unique_ids=True)
    records = [
        Record(past.partition, checkpoint.offset, event, codec.encode(event), memorable=False) for event in events
    ]
    changes, _ = await fold.process(records, fold.new_rows(), fetch)
    failed = changes.rows.get(RowKey(dead_letters.TABLE.name, "", "", dead_letters.key_of(checkpoint.offset)))
    if failed is not None:  # what is erased would show
        raise ProjectionError(f"a past cannot be erased in: {dead_letters.TABLE.decode(failed).detail}")
    await past.store.commit(generation, checkpoint, checkpoint, changes)
