"""Time travel: moments of the past, and how content that is erased now is removed from a past."""

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

    Erase = Callable[[ReadSession, ReadSession, str], Awaitable[Sequence[Event]]]
    """Finds content that is erased now but not in a past. It is called with the past, the present, and the space.

    Returns events that erase the content. They are then folded onto the past by the projections that name their kinds.
    """

AsOf = Position | datetime
"""A position: the fold up to and including it. A time: the fold of all records, without remembering events that
happened later. These still count for identity, dead letters, settings and visibility."""


def check_size(space: str, events: int) -> None:
    """Raise `OutOfRange` if folding the space at query time would take too long."""
    if events > limits.AS_OF_RECORDS_MAX:
        raise OutOfRange(
            f"the space {space!r} has {events:,} events; time travel folds at most {limits.AS_OF_RECORDS_MAX:,}. "
            "Leave out as_of to ask about the present",
            path="as_of",
        )


async def fold_onto(past: "ReadSession", events: "Sequence[Event]", projections: "Sequence[Projection]") -> None:
    """Fold events onto a past, as if they had happened at its end, by its projections that name their kinds.

    The past is changed, so it must belong to the caller.

    Raises `ProjectionError` if an event cannot be applied.
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
    if failed is not None:  # otherwise the answer would show erased content
        raise ProjectionError(f"a past cannot be erased in: {dead_letters.TABLE.decode(failed).detail}")
    await past.store.commit(generation, checkpoint, checkpoint, changes)
