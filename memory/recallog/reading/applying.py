"""Folds in memory over the rows of a reader."""

from collections.abc import Callable

from recallog.reading.read_session import ReadSession
from recallog_projections.rows import Rows


async def apply_loaded(reading: ReadSession, rows: Rows, apply: Callable[[], None]) -> None:
    """Call `apply`, which writes to `rows`, repeatedly until all rows that it reads are loaded."""
    while True:
        try:
            apply()
        except Exception:
            if not rows.is_wanting:
                raise
        if not rows.is_wanting:
            return
        rows.undo_batch()
        wanted, _ = rows.take_wanted()
        found = await reading.read(wanted)
        rows.load(zip(wanted, found.rows, strict=True))
