"""Verification: compares the views row by row with a fresh fold of the ledger.

The views may advance meanwhile: each chunk of rows comes with the checkpoint it was read at and is compared with a
fresh fold at the same checkpoint.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Chunk, Generation, StoredRow
from recallog_schemas import limits
from recallog_streams.progress import Progress
from recallog_streams.projector import Projector


@dataclass(frozen=True, slots=True)
class RowDifference:
    """The first row in which a view and a fresh fold differ: its address and both values (None: no such row)."""

    table: str
    space: str
    owner: str
    key: str
    found: bytes | None
    expected: bytes | None


@dataclass(frozen=True, slots=True)
class TableComparison:
    """One table: its number of rows, and the digests (sha256, hex) of the view's rows and of the fresh fold's.

    `checkpoint` is the offset that the views had processed when the last rows of the table were read.
    """

    table: str
    checkpoint: int
    items: int
    digest: str
    expected_digest: str
    difference: RowDifference | None


async def verify(
    projector: Projector, projections: Sequence[Projection], generation: Generation, progress: Progress | None = None
) -> list[TableComparison]:
    """Compare every table of `generation` with a fresh fold. Raises `GenerationGone` if it is replaced meanwhile."""
    fresh_projector = Projector(projector.ledger, MemoryStore(), projections)
    fresh = await fresh_projector.first_generation(generation.partition, 0)
    return [
        await _compare(projector, fresh_projector, generation, fresh, table.name, progress)
        for table in projector.fold.tables
    ]


async def _compare(
    projector: Projector,
    fresh_projector: Projector,
    generation: Generation,
    fresh: Generation,
    table: str,
    progress: Progress | None,
) -> TableComparison:
    found_hash, expected_hash = hashlib.sha256(), hashlib.sha256()
    items, difference, after, last = 0, None, None, False
    while not last:
        chunk = await projector.store.scan(generation, table, after=after, limit=limits.SCAN_ITEMS)
        await fresh_projector.catch_up(fresh, chunk.checkpoint.offset + 1, progress)
        expected = await _rows_in_range(fresh_projector, fresh, table, after, chunk)
        difference = difference or _first_difference(table, chunk.items, expected)
        items += len(chunk.items)
        _add(found_hash, chunk.items)
        _add(expected_hash, expected)
        last = chunk.last
        after = chunk.items[-1].row_key if chunk.items else after
    return TableComparison(
        table, chunk.checkpoint.offset, items, found_hash.hexdigest(), expected_hash.hexdigest(), difference
    )


async def _rows_in_range(
    fresh_projector: Projector, fresh: Generation, table: str, after: tuple[str, str, str] | None, chunk: Chunk
) -> list[StoredRow]:
    """The rows of the fresh fold in the range of `chunk`: up to its last row, or all that remain for the last chunk."""
    upto = chunk.items[-1].row_key if chunk.items and not chunk.last else None
    found: list[StoredRow] = []
    while True:
        more = await fresh_projector.store.scan(fresh, table, after=after, limit=limits.SCAN_ITEMS)
        within = [item for item in more.items if upto is None or item.row_key <= upto]
        found += within
        if more.last or len(within) < len(more.items):
            return found
        after = more.items[-1].row_key


def _first_difference(table: str, found: Sequence[StoredRow], expected: Sequence[StoredRow]) -> RowDifference | None:
    found_rows, expected_rows = ({item.row_key: item.data for item in items} for items in (found, expected))
    for row_key in sorted(found_rows.keys() | expected_rows.keys()):
        if found_rows.get(row_key) != expected_rows.get(row_key):
            return RowDifference(table, *row_key, found_rows.get(row_key), expected_rows.get(row_key))
    return None


def _add(digest: "hashlib._Hash", items: Sequence[StoredRow]) -> None:
    for item in items:
        for part in (item.space.encode(), item.owner.encode(), item.key.encode(), item.data):
            digest.update(len(part).to_bytes(4, "big"))
            digest.update(part)
