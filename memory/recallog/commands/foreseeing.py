"""What the views would make of events now: their own fold, over the rows as they are."""

from collections.abc import Sequence
from typing import Any

from recallog.reading.read_session import ReadSession
from recallog_projections.projection import Projection
from recallog_projections.rows import RowNotLoaded, Rows
from recallog_projections.tables import Log, RowKey, Table
from recallog_schemas import Record


async def folded(
    reading: ReadSession, fold: Projection, records: Sequence[Record], others: Sequence[Table[Any] | Log[Any]] = ()
) -> Rows:
    """The rows that `fold` would write for `records`. Nothing is written. `others` are tables that it reads only."""
    rows = Rows((*fold.tables, *others), strict=False)
    await _load(reading, rows, rows.missing([need for record in records for need in fold.needs(record)]))
    for record in records:
        await _apply(reading, fold, record, rows)
        rows.commit_record()
    return rows


async def _apply(reading: ReadSession, fold: Projection, record: Record, rows: Rows) -> None:
    further_needs = getattr(fold, "further_needs", None)
    while True:
        try:
            missing: Sequence[RowKey] = rows.missing(further_needs(rows, record)) if further_needs is not None else ()
            if not missing:
                fold.apply(rows, record)
                return
        except RowNotLoaded as needed:
            rows.undo()
            missing = needed.row_keys
        await _load(reading, rows, missing)


async def _load(reading: ReadSession, rows: Rows, missing: Sequence[RowKey]) -> None:
    found = await reading.read(missing)
    for need, data in zip(missing, found.rows, strict=True):
        rows.load(need, data)
