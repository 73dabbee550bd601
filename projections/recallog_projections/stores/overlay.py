"""The store of changes that are kept in memory, on top of a generation of another store that is only read.

Queries use it where the views cannot be written: they read the generation as it is, with the missing records folded in
memory. Queries of the past use it too: they read a snapshot with the records since then.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from recallog_projections.rows import Changes, Fetched, FetchHere
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    Readable,
    ReadResult,
    Result,
    Scan,
    Store,
    StoredRow,
    outcome_of,
)
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import InvariantViolation, Rebuilding, StorageError


class OverlayStore(Store):
    """One generation of `base`, read as of the checkpoint `start`, and the commits since. Nothing is written to `base`.

    Reads raise `Rebuilding` once `base` has moved beyond `start`, and once it cannot be read: `broken` is then set.
    """

    def __init__(self, base: Readable, generation: Generation, start: Checkpoint) -> None:
        self._base = base
        self._generation = generation
        self._start = start
        self._checkpoint = start
        self._rows: dict[RowKey, bytes | None] = {}
        self._entries: dict[LogName, list[bytes]] = {}
        self._keep: dict[str, int] = {}
        self.broken = False

    @property
    def changes(self) -> Changes:
        """All commits since the checkpoint `start`, as one."""
        return Changes({(*key,): data for key, data in self._rows.items()}, dict(self._entries.items()), self._keep)

    @property
    def start(self) -> Checkpoint:
        return self._start

    def rebase(self, base: Readable, start: Checkpoint) -> None:
        """Continue on another base, which has the same rows at its checkpoint `start` as this store has now."""
        self._base, self._start, self._rows, self._entries = base, start, {}, {}

    def copy(self) -> "OverlayStore":
        """An overlay of the same base with the same commits, which changes independently."""
        copy = OverlayStore(self._base, self._generation, self._start)
        copy._checkpoint, copy._rows, copy._keep = self._checkpoint, dict(self._rows), dict(self._keep)
        copy._entries = {name: [*entries] for name, entries in self._entries.items()}
        return copy

    def count_items(self) -> int:
        """The number of rows and log entries that it holds itself."""
        return len(self._rows) + sum(map(len, self._entries.values()))

    @property
    def location(self) -> str:
        return self._base.location

    async def clear(self) -> None:
        raise InvariantViolation("an overlay writes nothing to the store below it")

    async def remember_manifest(self, manifest: bytes) -> bytes:
        return await self._base.remember_manifest(manifest)

    async def pointer(self, partition: int) -> Pointer:
        return Pointer(active=self._generation)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        return await self.pointer(generation.partition)

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        return False

    async def retire(self, generation: Generation) -> bool:
        return False

    async def collect_garbage(self, partition: int) -> None:
        return None

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return self._checkpoint

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        outcome = outcome_of(
            Pointer(active=self._generation), generation, self._checkpoint, expected.offset, new.offset
        )
        if outcome is Outcome.APPLIED:
            self._rows |= {RowKey(*row_key): data for row_key, data in changes.rows.items()}
            for name, entries in changes.logs.items():
                self._entries.setdefault(LogName(*name), []).extend(entries)
            self._keep |= changes.keep
            self._checkpoint = new
        return outcome

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        try:
            below = await self._base.read(partition, rows, logs, self._generation)
        except StorageError as error:
            raise self._make_rebuilding() from error
        self._check_start(below.checkpoint)
        return ReadResult(
            self._generation,
            self._checkpoint,
            [self._rows.get(need, data) for need, data in zip(rows, below.rows, strict=True)],
            [self._tail(name, newest, tail) for (name, newest), tail in zip(logs, below.logs, strict=True)],
        )

    def read_here(
        self, generation: Generation, checkpoint: Checkpoint, work: Callable[[FetchHere], Result]
    ) -> Result | None:
        if checkpoint != self._checkpoint:
            return None

        def over(fetch: FetchHere) -> Result:
            def fetch_both(rows: Sequence[RowKey], logs: Sequence[LogName]) -> Fetched:
                below, totals = fetch([key for key in rows if key not in self._rows], logs)
                missing = iter(below)
                found = [self._rows[key] if key in self._rows else next(missing) for key in rows]
                added = (len(self._entries.get(name, ())) for name in logs)
                return found, [total + more for total, more in zip(totals, added, strict=True)]

            return work(fetch_both)

        return self._base.read_here(self._generation, self._start, over)

    def _tail(self, name: LogName, newest: int, below: Tail) -> Tail:
        added = self._entries.get(name, [])
        entries = [*below.entries, *added]
        newest = min(newest, self._keep.get(name.log, newest))
        return Tail(entries[max(0, len(entries) - newest) :], below.total + len(added))

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        if any(name.log == scan.table for name in self._entries):
            raise InvariantViolation(f"{scan.table!r} is a log, and an overlay scans tables only")
        keys, newest_first = scan.key_range(), scan.newest_first
        below, upto = await self._below(scan, damaged)
        found = {item.row_key: item for item in below.items}
        for need, data in self._rows.items():
            row_key = (need.space, need.owner, need.key)
            if need.table != scan.table or not keys.has(row_key):
                continue
            if upto is not None and (row_key < upto if newest_first else row_key > upto):
                continue
            if data is None:
                found.pop(row_key, None)
            else:
                found[row_key] = StoredRow(*row_key, data)
        items = [found[row_key] for row_key in sorted(found, reverse=newest_first)]
        if not items and upto is not None:  # all of them were deleted since
            return await self.scan_chunk(generation, replace(scan, after=upto), damaged)
        return Chunk(self._checkpoint, items[: scan.limit], last=upto is None and len(items) <= scan.limit)

    async def _below(
        self, scan: Scan, damaged: list[tuple[str, str, str]] | None
    ) -> tuple[Chunk, tuple[str, str, str] | None]:
        """A chunk of `base`, and the last key that it covers; None if it is the last chunk."""
        found: list[tuple[str, str, str]] | None = None if damaged is None else []
        try:
            below = await self._base.scan_chunk(self._generation, scan, found)
        except StorageError as error:
            raise self._make_rebuilding() from error
        self._check_start(below.checkpoint)
        if damaged is not None and found is not None:
            damaged.extend(found)
        if below.last:
            return below, None
        covered = [*(item.row_key for item in below.items), *(found or ())]
        return below, min(covered) if scan.newest_first else max(covered)

    def _check_start(self, checkpoint: Checkpoint) -> None:
        if checkpoint.offset != self._start.offset:
            raise Rebuilding("another process has brought the views up to date; read again")

    def _make_rebuilding(self) -> Rebuilding:
        self.broken = True
        return Rebuilding("the views can no longer be read; read again")

    async def size_bytes(self) -> int:
        """The bytes of all values in memory."""
        rows = sum(len(data) for data in self._rows.values() if data is not None)
        return rows + sum(len(data) for entries in self._entries.values() for data in entries)

    async def close(self) -> None:
        return None
