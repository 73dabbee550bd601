"""The store of views in this process's memory, for time travel, verification and tests."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Store,
    StoredRow,
    is_beyond,
    ordinal_key,
    outcome_of,
)
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import Rebuilding


@dataclass(slots=True)
class _Entries:
    total: int = 0
    newest: deque[bytes] = field(default_factory=deque)


@dataclass(slots=True)
class _Tables:
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    rows: dict[str, dict[tuple[str, str, str], bytes]] = field(default_factory=dict)
    logs: dict[LogName, _Entries] = field(default_factory=dict)

    def copy(self) -> "_Tables":
        return _Tables(
            self.checkpoint,
            {name: dict(rows) for name, rows in self.rows.items()},
            {name: _Entries(log.total, log.newest.copy()) for name, log in self.logs.items()},
        )


class MemoryStore(Store):
    """A store without I/O. Its methods never await, so that each is atomic."""

    def __init__(self) -> None:
        self._manifest: bytes | None = None
        self._pointers: dict[int, Pointer] = {}
        self._tables: dict[str, _Tables] = {}
        self._sorted_at: tuple[str, int] | None = None
        self._sorted: dict[str, list[StoredRow]] = {}
        """By table: its items in the order of scans, at the generation and offset `_sorted_at`. A commit empties it."""

    def copy(self) -> "MemoryStore":
        """A store with the same generations, rows and log entries, which changes independently."""
        copy = MemoryStore()
        copy._manifest, copy._pointers = self._manifest, dict(self._pointers)
        copy._tables = {id_: tables.copy() for id_, tables in self._tables.items()}
        return copy

    def count_items(self) -> int:
        """The number of all rows and log entries."""
        rows = sum(len(rows) for tables in self._tables.values() for rows in tables.rows.values())
        return rows + sum(len(log.newest) for tables in self._tables.values() for log in tables.logs.values())

    async def clear(self) -> None:
        self._manifest, self._pointers, self._tables, self._sorted_at = None, {}, {}, None

    async def remember_manifest(self, manifest: bytes) -> bytes:
        self._manifest = self._manifest or manifest
        return self._manifest

    async def pointer(self, partition: int) -> Pointer:
        return self._pointers.get(partition, Pointer())

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        pointer = self._pointers.get(generation.partition, Pointer())
        if pointer == Pointer(active=replaces):
            self._tables[generation.id] = _Tables()
            pointer = msgspec.structs.replace(pointer, building=generation)
            self._pointers[generation.partition] = pointer
        return pointer

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        pointer = await self.pointer(building.partition)
        mine = self._tables.get(building.id)
        if pointer.building != building or mine is None:
            return False
        active = self._tables.get(pointer.active.id) if pointer.active else None
        if active is not None and is_beyond(active.checkpoint, mine.checkpoint.offset, unless_beyond):
            return False
        self._pointers[building.partition] = Pointer(active=building)
        return True

    async def retire(self, generation: Generation) -> bool:
        pointer = await self.pointer(generation.partition)
        if pointer.building != generation:
            return False
        self._pointers[generation.partition] = Pointer(active=pointer.active)
        return True

    async def collect_garbage(self, partition: int) -> None:
        known = {g.id for p in self._pointers.values() for g in (p.active, p.building) if g is not None}
        self._tables = {id_: tables for id_, tables in self._tables.items() if id_ in known}

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        tables = self._tables.get(generation.id)
        return tables.checkpoint if tables else None

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        tables = self._tables.get(generation.id)
        pointer = await self.pointer(generation.partition)
        stored = tables.checkpoint if tables else None
        outcome = outcome_of(pointer, generation, stored, expected.offset, new.offset)
        if outcome is not Outcome.APPLIED or tables is None:
            return outcome
        for (name, space, owner, key), data in changes.rows.items():
            table = tables.rows.setdefault(name, {})
            if data is None:
                table.pop((space, owner, key), None)
            else:
                table[space, owner, key] = data
        for log_name, entries in changes.logs.items():
            log = tables.logs.setdefault(LogName(*log_name), _Entries())
            log.total += len(entries)
            log.newest.extend(entries)
            while len(log.newest) > changes.keep[log_name[0]]:
                log.newest.popleft()
        tables.checkpoint = new
        self._sorted_at = None
        return outcome

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        wanted = generation or (await self.pointer(partition)).active
        tables = self._tables.get(wanted.id) if wanted else None
        if wanted is None or tables is None:
            raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
        return ReadResult(
            wanted,
            tables.checkpoint,
            [tables.rows.get(need.table, {}).get((need.space, need.owner, need.key)) for need in rows],
            [self._tail(tables.logs.get(name, _Entries()), newest) for name, newest in logs],
        )

    def _tail(self, log: _Entries, newest: int) -> Tail:
        entries = list(log.newest)
        return Tail(entries[max(0, len(entries) - newest) :], log.total)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        tables = self._tables.get(generation.id)
        if tables is None:
            raise Rebuilding(f"the generation {generation.id} is gone; read again")
        keys, limit = scan.key_range(), scan.limit
        is_found = scan.table in tables.rows or scan.includes_logs
        items = self._in_order(generation, tables, scan.table) if is_found else []
        start = bisect_left(items, keys.first, key=lambda item: item.row_key)
        end = len(items) if keys.end is None else bisect_left(items, keys.end, key=lambda item: item.row_key)
        last = end - start <= limit
        if scan.newest_first:
            return Chunk(tables.checkpoint, items[max(start, end - limit) : end][::-1], last)
        return Chunk(tables.checkpoint, items[start : min(start + limit, end)], last)

    def _in_order(self, generation: Generation, tables: _Tables, table: str) -> list[StoredRow]:
        at = (generation.id, tables.checkpoint.offset)
        if self._sorted_at != at:
            self._sorted_at, self._sorted = at, {}
        if table not in self._sorted:
            items = [StoredRow(*row_key, data) for row_key, data in tables.rows.get(table, {}).items()]
            for name, log in tables.logs.items():
                if name.log == table:
                    first = log.total - len(log.newest)
                    items += [
                        StoredRow(name.space, name.owner, ordinal_key(first + n), data)
                        for n, data in enumerate(log.newest)
                    ]
            self._sorted[table] = sorted(items, key=lambda item: item.row_key)
        return self._sorted[table]

    async def size_bytes(self) -> int:
        """The bytes of all values; keys and Python's own overhead are not counted."""
        rows = sum(len(data) for t in self._tables.values() for rows in t.rows.values() for data in rows.values())
        return rows + sum(len(data) for t in self._tables.values() for log in t.logs.values() for data in log.newest)

    async def close(self) -> None:
        return None
