"""Verification: compares the ledger with what the views were computed from, and the views with a fresh fold.

The ledger is compared by its hash chain, see `ledger_check`; every row of every table is compared with a fresh fold of
the ledger. The views may advance meanwhile: each chunk of rows comes with the checkpoint it was read at and is compared
with a fresh fold at the same checkpoint. Where damaged or missing records make a fresh fold impossible, only the
checksums of rows are verified.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from recallog_projections.projection import Projection
from recallog_projections.stores.memory import MemoryStore
from recallog_projections.stores.store import Chunk, Generation, StoredRow
from recallog_projections.tables import Log, Table
from recallog_schemas import limits
from recallog_schemas.errors import StorageCorrupt
from recallog_streams import chain, ledger_check
from recallog_streams.ledger_check import KeptValue, ProblemKind, RecordsProblem
from recallog_streams.progress import Progress
from recallog_streams.projector import CatchUp, Projector

Address = tuple[str, str, str]
"""Space, owner and key of a row."""


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
    expected_digest: str | None
    """None if there is no fresh fold to compare with."""
    difference: RowDifference | None
    differences: int
    """How many rows differ."""
    damaged: Sequence[Address]
    """The rows whose checksum fails."""


@dataclass(slots=True)
class Verification:
    """The result for one partition of a group of views."""

    records: Sequence[RecordsProblem]
    tables: list[TableComparison] = field(default_factory=list)
    not_compared: str = ""
    """Why some or all rows could not be compared; "" if all were."""


async def verify(
    projector: Projector,
    projections: Sequence[Projection],
    generation: Generation,
    progress: Progress | None = None,
    catch_up: CatchUp = Projector.catch_up,
) -> Verification:
    """Compare the ledger with the chain of `generation`, and every table with a fresh fold.

    Raises `GenerationGone` if it is replaced meanwhile.
    """
    kept = await _kept_values(projector, generation)
    found = Verification(await ledger_check.check(projector.ledger, generation.partition, kept))
    processed = kept[-1][0] if kept else -1
    gaps = [each for each in found.records if each.problem is not ProblemKind.CHANGED and each.first <= processed]
    fresh: _FreshFold | None = None
    if gaps:
        first = f"{generation.partition}:{gaps[0].first}"
        found.not_compared = f"the ledger cannot be folded again past {first}; only the checksums of rows were verified"
    else:
        fresh = await _FreshFold.of(projector, projections, generation.partition, progress, catch_up)
    is_changed = any(each.problem is ProblemKind.CHANGED for each in found.records)
    for table in projector.fold.tables:
        # After changed records the fresh fold has other values of the chain, which `records` already says.
        is_explained = table is chain.BLOCKS and is_changed
        try:
            found.tables.append(await _compare(projector, None if is_explained else fresh, generation, table))
        except StorageCorrupt as error:
            found.not_compared = str(error)
    return found


async def _kept_values(projector: Projector, generation: Generation) -> list[KeptValue]:
    """The values of the ledger's chain that the generation keeps, and the one of its checkpoint.

    A damaged or missing row only makes a range longer.
    """
    kept: list[KeptValue] = []
    after: Address | None = None
    while True:
        damaged: list[Address] = []
        try:
            chunk = await projector.store.scan(
                generation, chain.BLOCKS.name, after=after, limit=limits.SCAN_ITEMS, damaged=damaged
            )
        except StorageCorrupt:
            return kept  # `_compare` reports it
        kept += filter(None, (chain.kept_value(item.key, item.data) for item in chunk.items))
        if chunk.last:
            break
        after = _upto(chunk, damaged)
    checkpoint = chunk.checkpoint
    kept = [value for value in kept if value[0] < checkpoint.offset]
    return [*kept, (checkpoint.offset, checkpoint.chain)] if checkpoint.offset >= 0 else []


@dataclass(slots=True)
class _FreshFold:
    """A second fold of the same partition, in memory, up to the checkpoint of the views."""

    projector: Projector
    generation: Generation
    progress: Progress | None
    catch_up: CatchUp

    @classmethod
    async def of(
        cls,
        projector: Projector,
        projections: Sequence[Projection],
        partition: int,
        progress: Progress | None,
        catch_up: CatchUp,
    ) -> "_FreshFold":
        fresh = Projector(projector.ledger, MemoryStore(), projections)
        return cls(fresh, await fresh.first_generation(partition, 0), progress, catch_up)

    async def rows(self, table: str, after: Address | None, upto: Address | None, processed: int) -> list[StoredRow]:
        """Its rows after `after`, up to `upto` or all that remain, when it has processed the offset `processed`."""
        await self.catch_up(self.projector, self.generation, processed + 1, self.progress)
        found: list[StoredRow] = []
        while True:
            more = await self.projector.store.scan(self.generation, table, after=after, limit=limits.SCAN_ITEMS)
            within = [item for item in more.items if upto is None or item.row_key <= upto]
            found += within
            if more.last or len(within) < len(more.items):
                return found
            after = more.items[-1].row_key


async def _compare(
    projector: Projector, fresh: _FreshFold | None, generation: Generation, table: Table[Any] | Log[Any]
) -> TableComparison:
    found_hash, expected_hash = hashlib.sha256(), hashlib.sha256()
    items, differences, damaged, after, last = 0, list[RowDifference](), list[Address](), None, False
    differing = 0
    while not last:
        damaged_here: list[Address] = []
        chunk = await projector.store.scan(
            generation, table.name, after=after, limit=limits.SCAN_ITEMS, damaged=damaged_here
        )
        upto = _upto(chunk, damaged_here)
        damaged += damaged_here
        if fresh is not None:
            expected = await fresh.rows(table.name, after, None if chunk.last else upto, chunk.checkpoint.offset)
            found = _differences(table, chunk.items, expected, damaged)
            differences, differing = [*differences, *found][:1], differing + len(found)
            _add(expected_hash, expected)
        items += len(chunk.items)
        _add(found_hash, chunk.items)
        last, after = chunk.last, upto or after
    return TableComparison(
        table.name,
        chunk.checkpoint.offset,
        items,
        found_hash.hexdigest(),
        expected_hash.hexdigest() if fresh is not None else None,
        differences[0] if differences else None,
        differing,
        damaged,
    )


def _upto(chunk: Chunk, damaged: Sequence[Address]) -> Address | None:
    """The address of the last row that was read."""
    return max([*damaged, *(item.row_key for item in chunk.items[-1:])], default=None)


def _differences(
    table: Table[Any] | Log[Any],
    found: Sequence[StoredRow],
    expected: Sequence[StoredRow],
    damaged: Collection[Address],
) -> list[RowDifference]:
    """The rows that differ, in order, without rows known to be damaged.

    A damaged part of a log has several entries, so that no entry of this log is compared.
    """
    parts = 2 if isinstance(table, Log) else 3
    known = {address[:parts] for address in damaged}
    found_rows, expected_rows = ({item.row_key: item.data for item in items} for items in (found, expected))
    return [
        RowDifference(table.name, *address, found_rows.get(address), expected_rows.get(address))
        for address in sorted(found_rows.keys() | expected_rows.keys())
        if found_rows.get(address) != expected_rows.get(address) and address[:parts] not in known
    ]


def _add(digest: "hashlib._Hash", items: Sequence[StoredRow]) -> None:
    for item in items:
        for part in (item.space.encode(), item.owner.encode(), item.key.encode(), item.data):
            digest.update(len(part).to_bytes(4, "big"))
            digest.update(part)
