"""Time travel: what a moment of the past is, and how a past loses what is erased now."""

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
    """Finds what is erased now but not in a past: called with the past, with the present, and with the space.

    Returns events that erase it, which are then folded onto the past by the projections that name their kinds."""

AsOf = Position | datetime
"""A position: the fold up to and including it. A time: the fold of all records, in which events that happened later
still count for identity, dead letters, settings and visibility, but are not remembered."""


def check_size(space: str, events: int) -> None:
    """Raise `OutOfRange` if a fold of the space at query time would take too long."""
    if events > limits.AS_OF_RECORDS_MAX:
        raise OutOfRange(
            f"the space {space!r} has {events:,} events; time travel folds at most {limits.AS_OF_RECORDS_MAX:,}. "
            "Leave out as_of to ask about the present",
            path="as_of",
        )


async def fold_onto(past: "ReadSession", events: "Sequence[Event]", projections: "Sequence[Projection]") -> None:
    """Fold events onto a past, as if they had happened at its end, by its projections that name their kinds.

    The past is changed: it must be the caller's own.

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
