"""The store of views in one SQLite file, for the embedded form."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec

from recallog_projections.rows import Changes
from recallog_projections.sqlite_file import FileFormat, Result, SqliteFile
from recallog_projections.stores import sqlite_logs
from recallog_projections.stores.sqlite_logs import LogEnds
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Store,
    StoredRow,
    is_beyond,
    outcome_of,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import limits
from recallog_schemas.errors import Rebuilding, StorageReplaced

VIEWS = FileFormat(
    what="views file",
    application_id=0x52635677,  # "RcVw"
    version=3,
    remedy="All views can be computed again: delete the file, and the next query builds it from the ledger",
    synchronous="NORMAL",  # a commit that a power cut loses is folded again
    disposable=True,
    schema=f"""
    CREATE TABLE manifest (ledger BLOB NOT NULL);
    CREATE TABLE pointers (partition INTEGER PRIMARY KEY, active BLOB, building BLOB);
    CREATE TABLE generations (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL, checkpoint BLOB
    );
    CREATE TABLE rows (
        generation INTEGER, name TEXT, space TEXT, owner TEXT, key TEXT, value BLOB NOT NULL,
        PRIMARY KEY (generation, name, space, owner, key)
    ) WITHOUT ROWID;
    {sqlite_logs.SCHEMA}
    """,
)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends of the logs of a generation at a checkpoint: valid while the checkpoint is the same."""

    generation: str = ""
    checkpoint: Checkpoint | None = None
    logs: LogEnds = field(default_factory=LogEnds)

    def as_of(self, generation: Generation, checkpoint: Checkpoint) -> "_Ends":
        """This, or an empty cache if it is of another checkpoint or too large."""
        current = self.generation == generation.id and self.checkpoint == checkpoint
        return self if current and len(self.logs) <= limits.CACHED_ROWS_MAX else _Ends()


class SqliteStore(Store):
    """One file; a commit is one transaction."""

    def __init__(self, path: Path, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:
        self._file = SqliteFile(path, VIEWS, lock_wait_seconds)
        self._ends = _Ends()

    @property
    def location(self) -> str:
        return str(self._file.path)

    async def _run(self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False) -> Result:
        try:
            return await self._file.run(work, write=write)
        except StorageReplaced:
            # The views were deleted: they are built again in a new file.
            return await self._file.run(work, write=write)

    async def remember_manifest(self, manifest: bytes) -> bytes:
        def work(connection: sqlite3.Connection) -> bytes:
            row = connection.execute("SELECT ledger FROM manifest").fetchone()
            if row is None:
                connection.execute("INSERT INTO manifest VALUES (?)", (manifest,))
            return bytes(row[0]) if row else manifest

        return await self._run(work, write=True)

    async def pointer(self, partition: int) -> Pointer:
        return await self._run(lambda connection: _pointer(connection, partition))

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        def work(connection: sqlite3.Connection) -> Pointer:
            pointer = _pointer(connection, generation.partition)
            if pointer == Pointer(active=replaces):
                connection.execute(
                    "INSERT INTO generations (id, partition, checkpoint) VALUES (?, ?, ?)",
                    (generation.id, generation.partition, msgspec.msgpack.encode(Checkpoint())),
                )
                pointer = msgspec.structs.replace(pointer, building=generation)
                _set_pointer(connection, generation.partition, pointer)
            return pointer

        return await self._run(work, write=True)

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            pointer = _pointer(connection, building.partition)
            mine = _checkpoint(connection, building)
            active = _checkpoint(connection, pointer.active) if pointer.active else None
            if pointer.building != building or mine is None:
                return False
            if active is not None and is_beyond(active, mine.offset, unless_beyond):
                return False
            _set_pointer(connection, building.partition, Pointer(active=building))
            return True

        return await self._run(work, write=True)

    async def retire(self, generation: Generation) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            pointer = _pointer(connection, generation.partition)
            if pointer.building != generation:
                return False
            _set_pointer(connection, generation.partition, Pointer(active=pointer.active))
            return True

        return await self._run(work, write=True)

    async def collect_garbage(self, partition: int) -> None:
        while await self._run(lambda connection: _collect_some_garbage(connection, partition), write=True):
            pass

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return await self._run(lambda connection: _checkpoint(connection, generation))

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        ends = self._ends.as_of(generation, expected)

        def work(connection: sqlite3.Connection) -> Outcome:
            pointer = _pointer(connection, generation.partition)
            stored = _checkpoint(connection, generation)
            outcome = outcome_of(pointer, generation, stored, expected.offset, new.offset)
            if outcome is Outcome.APPLIED:
                number = _number(connection, generation)
                _write_rows(connection, number, changes)
                sqlite_logs.append(connection, number, changes, ends.logs)
                connection.execute(
                    "UPDATE generations SET checkpoint = ? WHERE number = ?", (msgspec.msgpack.encode(new), number)
                )
            return outcome

        self._ends = _Ends()  # invalid unless the commit succeeds
        outcome = await self._run(work, write=True)
        if outcome is Outcome.APPLIED:
            self._ends = _Ends(generation.id, new, ends.logs)
        return outcome

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        def work(connection: sqlite3.Connection) -> ReadResult:
            wanted = generation or _pointer(connection, partition).active
            checkpoint = _checkpoint(connection, wanted) if wanted else None
            if wanted is None or checkpoint is None:
                raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
            return _found(connection, wanted, checkpoint, rows, logs)

        return await self._run(work)

    async def read_current(
        self,
        partition: int,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        ledger_end: Callable[[], int | None],
    ) -> ReadResult | None:
        def work(connection: sqlite3.Connection) -> ReadResult | None:
            end = ledger_end()
            active = _pointer(connection, partition).active
            checkpoint = _checkpoint(connection, active) if active else None
            if end is None or active is None or checkpoint is None or checkpoint.offset + 1 < end:
                return None
            return _found(connection, active, checkpoint, rows, logs)

        return await self._run(work)

    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
        damaged: list[tuple[str, str, str]] | None = None,
    ) -> Chunk:
        def work(connection: sqlite3.Connection) -> Chunk:
            checkpoint = _checkpoint(connection, generation)
            if checkpoint is None:
                raise Rebuilding(f"the generation {generation.id} is gone; read again")
            number = _number(connection, generation)
            items = _scan_rows(connection, number, table, space, after, limit + 1)
            items = items or sqlite_logs.scan(connection, number, table, space, after, limit + 1)
            return Chunk(checkpoint, items[:limit], last=len(items) <= limit)

        return await self._run(work)

    async def size_bytes(self) -> int:
        return await self._file.size_bytes()

    async def close(self) -> None:
        await self._file.close()


def _pointer(connection: sqlite3.Connection, partition: int) -> Pointer:
    row = connection.execute("SELECT active, building FROM pointers WHERE partition = ?", (partition,)).fetchone()
    active, building = row or (None, None)
    return Pointer(
        active=msgspec.msgpack.decode(active, type=Generation) if active else None,
        building=msgspec.msgpack.decode(building, type=Generation) if building else None,
    )


def _set_pointer(connection: sqlite3.Connection, partition: int, pointer: Pointer) -> None:
    active, building = (msgspec.msgpack.encode(g) if g else None for g in (pointer.active, pointer.building))
    connection.execute("INSERT OR REPLACE INTO pointers VALUES (?, ?, ?)", (partition, active, building))


def _checkpoint(connection: sqlite3.Connection, generation: Generation) -> Checkpoint | None:
    row = connection.execute("SELECT checkpoint FROM generations WHERE id = ?", (generation.id,)).fetchone()
    return msgspec.msgpack.decode(row[0], type=Checkpoint) if row and row[0] else None


def _number(connection: sqlite3.Connection, generation: Generation) -> int:
    row = connection.execute("SELECT number FROM generations WHERE id = ?", (generation.id,)).fetchone()
    return cast(int, row[0])


def _found(
    connection: sqlite3.Connection,
    generation: Generation,
    checkpoint: Checkpoint,
    rows: Sequence[RowKey],
    logs: Sequence[tuple[LogName, int]],
) -> ReadResult:
    number = _number(connection, generation)
    return ReadResult(
        generation,
        checkpoint,
        [_row(connection, number, need) for need in rows],
        [sqlite_logs.tail(connection, number, name, newest) for name, newest in logs],
    )


def _row(connection: sqlite3.Connection, number: int, need: RowKey) -> bytes | None:
    row = connection.execute(
        "SELECT value FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        (number, *need),
    ).fetchone()
    return row[0] if row else None


def _write_rows(connection: sqlite3.Connection, number: int, changes: Changes) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?)",
        [(number, *need, data) for need, data in changes.rows.items() if data is not None],
    )
    connection.executemany(
        "DELETE FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        [(number, *need) for need, data in changes.rows.items() if data is None],
    )


def _scan_rows(
    connection: sqlite3.Connection,
    number: int,
    table: str,
    space: str | None,
    after: tuple[str, str, str] | None,
    limit: int,
) -> list[StoredRow]:
    sql = "SELECT space, owner, key, value FROM rows WHERE generation = ? AND name = ?"
    values: list[object] = [number, table]
    if space is not None:
        sql, values = f"{sql} AND space = ?", [*values, space]
    if after is not None:
        sql, values = f"{sql} AND (space, owner, key) > (?, ?, ?)", [*values, *after]
    sql += " ORDER BY space, owner, key LIMIT ?"
    return [StoredRow(*row) for row in connection.execute(sql, [*values, limit])]


def _collect_some_garbage(connection: sqlite3.Connection, partition: int) -> bool:
    """Delete a bounded part of the generations that no pointer names; whether there may be more."""
    pointer = _pointer(connection, partition)
    known = {generation.id for generation in (pointer.active, pointer.building) if generation is not None}
    for number, id_, checkpoint in connection.execute(
        "SELECT number, id, checkpoint FROM generations WHERE partition = ?", (partition,)
    ).fetchall():
        if id_ in known:
            continue
        if checkpoint is not None:
            connection.execute("UPDATE generations SET checkpoint = NULL WHERE number = ?", (number,))
            return True
        if sqlite_logs.collect_garbage(connection, number):
            return True
        deleted = connection.execute(
            "DELETE FROM rows WHERE generation = ? AND (name, space, owner, key) IN "
            "(SELECT name, space, owner, key FROM rows WHERE generation = ? LIMIT 5000)",
            (number, number),
        ).rowcount
        if not deleted:
            connection.execute("DELETE FROM generations WHERE number = ?", (number,))
        return True
    return False
