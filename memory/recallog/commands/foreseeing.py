"""What the views would make of events now: their own fold, over the rows as they are."""

from collections.abc import Sequence
from typing import Any

from recallog.reading.applying import apply_loaded
from recallog.reading.read_session import ReadSession
from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import Log, Table
from recallog_schemas import Record


async def folded(
    reading: ReadSession, fold: Projection, records: Sequence[Record], others: Sequence[Table[Any] | Log[Any]] = ()
) -> Rows:
    """The rows that `fold` would write for `records`. Nothing is written. `others` are tables that it reads only."""
    rows = Rows((*fold.tables, *others), strict=False)

    def apply() -> None:
        for record in records:
            fold.apply(rows, [record])
            rows.finish_run()

    await apply_loaded(reading, rows, apply)
    return rows
