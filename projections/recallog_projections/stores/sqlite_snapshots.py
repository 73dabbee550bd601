"""The snapshots of the SQLite store, as versions of rows and parts of logs.

A snapshot adds a version of each row that has changed since the last one, and for each log one part with the entries
that were appended since. So a row or an entry that does not change is stored once, and a read of any snapshot finds
each row by one search in the primary key.

The tables are created by the first snapshot. Each row carries a checksum, which covers its address.
"""

import sqlite3
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from recallog_projections.rows import Changes, Fetched, FetchHere
from recallog_projections.sqlite.errors import Damaged
from recallog_projections.sqlite.file import Result, SqliteFile
from recallog_projections.stores.checksums import checksum, is_intact
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Readable,
    ReadResult,
    Scan,
    Snapshots,
    Store,
    StoredRow,
)
from recallog_projections.tables import LogName, RowKey, Tail
from recallog_schemas.errors import Rebuilding, StorageError

SCHEMA = """
    CREATE TABLE snapshot_spaces (
        number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, space TEXT NOT NULL, UNIQUE (generation, space)
    );
    CREATE TABLE snapshots (
        line INTEGER, until INTEGER, checkpoint BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (line, until)
    ) WITHOUT ROWID;
    CREATE TABLE snapshot_rows (
        line INTEGER, name TEXT, space TEXT, owner TEXT, key TEXT, until INTEGER, value BLOB, crc INTEGER NOT NULL,
        PRIMARY KEY (line, name, space, owner, key, until)
    ) WITHOUT ROWID;
    CREATE TABLE snapshot_logs (
        line INTEGER, name TEXT, space TEXT, owner TEXT, until INTEGER, total INTEGER NOT NULL, keep INTEGER NOT NULL,
        entries BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (line, name, space, owner, until)
    ) WITHOUT ROWID;
"""
_LINES = "snapshot_spaces line JOIN generations ON generations.number = line.generation"
_LINE = f"SELECT line.number FROM {_LINES}"
_ROW = "line, name, space, owner, key, until"
_COMPRESSION = 1
"""The level of zlib: entries are JSON and shrink to a fifth; the next levels take twice the time for a tenth less."""
_GARBAGE_ROWS = 5_000

_encode = msgspec.msgpack.Encoder().encode
_decode_entries = msgspec.msgpack.Decoder(list[bytes]).decode
_decode_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode


class SqliteSnapshots(Snapshots):
    """The snapshots in the file of a store."""

    def __init__(self, store: Store, file: SqliteFile) -> None:
        self._store, self._file = store, file

    async def spaces(self, generation: Generation) -> Sequence[str]:
        def work(connection: sqlite3.Connection) -> Sequence[str]:
            found = connection.execute(f"SELECT space FROM {_LINES} WHERE id = ? ORDER BY space", (generation.id,))
            return [space for (space,) in found]

        return await self._file.run(lambda connection: work(connection) if exist(connection) else [])

    async def checkpoints(self, generation: Generation, space: str) -> Sequence[Checkpoint]:
        return await self._file.run(
            lambda connection: [*map(_checkpoint, _snapshots(connection, generation, space, "ORDER BY until"))]
        )

    async def last_before(self, generation: Generation, space: str, until: int) -> Checkpoint | None:
        return await self._file.run(partial(_last_before, generation=generation, space=space, until=until))

    async def find_changes(
        self, generation: Generation, space: str, checkpoint: Checkpoint
    ) -> tuple[Sequence[RowKey], Sequence[LogName]]:
        def work(connection: sqlite3.Connection) -> tuple[Sequence[RowKey], Sequence[LogName]]:
            at = (_line(connection, generation, space), checkpoint.offset + 1)
            sql = "SELECT name, space, owner, key FROM snapshot_rows WHERE line = ? AND until = ?"
            of_logs = "SELECT name, space, owner FROM snapshot_logs WHERE line = ? AND until = ?"
            rows = [RowKey(*row) for row in connection.execute(sql, at)]
            return rows, [LogName(*row) for row in connection.execute(of_logs, at)]

        return await self._file.run(work)

    async def write(
        self, generation: Generation, space: str, after: Checkpoint, new: Checkpoint, changes: Changes
    ) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            sql = "SELECT number FROM generations WHERE id = ? AND checkpoint IS NOT NULL"
            of_generation = connection.execute(sql, (generation.id,)).fetchone()
            if of_generation is None:
                return False
            for statement in () if exist(connection) else SCHEMA.split(";"):
                connection.execute(statement)
            last = _last_before(connection, generation, space, 1 << 62) or Checkpoint()
            if last.offset != after.offset:
                return False
            line, until, data = _line(connection, generation, space), new.offset + 1, _encode(new)
            if line is None:
                (line,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM snapshot_spaces").fetchone()
                connection.execute("INSERT INTO snapshot_spaces VALUES (?, ?, ?)", (line, *of_generation, space))
            crc = checksum(line, (f"{until}",), data)
            connection.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", (line, until, data, crc))
            connection.executemany(
                "INSERT INTO snapshot_rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (line, *key, until, data, checksum(line, (*key, f"{until}"), data or b""))
                    for key, data in changes.rows.items()
                ],
            )
            connection.executemany(
                "INSERT INTO snapshot_logs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_part(connection, line, until, name, changes) for name, added in changes.logs.items() if added],
            )
            return True

        return await self._file.run(work, write=True)

    def open(self, generation: Generation, space: str, checkpoint: Checkpoint) -> Readable:
        return _Snapshot(self._store, self._file, generation, space, checkpoint)

    async def delete(self, generation: Generation, space: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            if (line := _line(connection, generation, space)) is not None:
                while _delete_some(connection, line):
                    pass

        if await self._file.run(lambda connection: _line(connection, generation, space)) is not None:
            await self._file.run(work, write=True)


class _Snapshot(Readable):
    """One snapshot."""

    def __init__(
        self, store: Store, file: SqliteFile, generation: Generation, space: str, checkpoint: Checkpoint
    ) -> None:
        self._store, self._file = store, file
        self._generation, self._space, self._checkpoint = generation, space, checkpoint

    @property
    def location(self) -> str:
        return self._store.location

    async def remember_manifest(self, manifest: bytes) -> bytes:
        return await self._store.remember_manifest(manifest)

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        def work(connection: sqlite3.Connection) -> ReadResult:
            line, until = self._find(connection), self._checkpoint.offset + 1
            return ReadResult(
                self._generation,
                self._checkpoint,
                [_row(connection, line, until, key) for key in rows],
                [_tail(connection, line, until, name, newest) for name, newest in logs],
            )

        return await self._file.run(work)

    def read_here(
        self, generation: Generation, checkpoint: Checkpoint, work: Callable[[FetchHere], Result]
    ) -> Result | None:
        def reading(connection: sqlite3.Connection) -> Result:
            return work(partial(_fetch, connection, self._find(connection), self._checkpoint.offset + 1))

        try:
            return self._file.run_here(reading)
        except StorageError:
            return None

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        def work(connection: sqlite3.Connection) -> Chunk:
            items = _scan(connection, self._find(connection), self._checkpoint.offset + 1, scan)
            return Chunk(self._checkpoint, items[: scan.limit], last=len(items) <= scan.limit)

        return await self._file.run(work)

    def _find(self, connection: sqlite3.Connection) -> int:
        """The number of its line. Raises `Rebuilding` if it is deleted, or written again with other records."""
        found = _last_before(connection, self._generation, self._space, self._checkpoint.offset + 1)
        line = _line(connection, self._generation, self._space)
        if line is None or found != self._checkpoint:
            raise Rebuilding(f"the snapshots of the space {self._space!r} are deleted; read again")
        return line


def exist(connection: sqlite3.Connection) -> bool:
    """Whether a file has the tables of snapshots."""
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'snapshot_spaces'").fetchone())


def collect_garbage(connection: sqlite3.Connection, generation: int) -> bool:
    """Delete a bounded part of the snapshots of the generation of that number. Returns whether there may be more."""
    sql = "SELECT number FROM snapshot_spaces WHERE generation = ? LIMIT 1"
    line = connection.execute(sql, (generation,)).fetchone() if exist(connection) else None
    return line is not None and (_delete_some(connection, *line) or True)


def _delete_some(connection: sqlite3.Connection, line: int) -> bool:
    """Delete a bounded part of the snapshots of a space, the list of them first. False once all are deleted."""
    keys = {"snapshots": "until", "snapshot_rows": "name, space, owner, key, until"}
    for table, key in {**keys, "snapshot_logs": "name, space, owner, until"}.items():
        some = f"SELECT {key} FROM {table} WHERE line = ? LIMIT {_GARBAGE_ROWS}"
        if connection.execute(f"DELETE FROM {table} WHERE line = ? AND ({key}) IN ({some})", (line, line)).rowcount:
            return True
    return connection.execute("DELETE FROM snapshot_spaces WHERE number = ?", (line,)).rowcount < 0


def _line(connection: sqlite3.Connection, generation: Generation, space: str) -> int | None:
    """The number of the snapshots of a space; None if it has none."""
    found = (
        exist(connection)
        and connection.execute(f"{_LINE} WHERE id = ? AND space = ?", (generation.id, space)).fetchone()
    )
    return int(found[0]) if found else None


def _snapshots(
    connection: sqlite3.Connection, generation: Generation, space: str, rest: str, *values: int
) -> sqlite3.Cursor | Sequence[Any]:
    if not exist(connection):
        return ()
    sql = f"SELECT line, until, checkpoint, crc FROM snapshots WHERE line = ({_LINE} WHERE id = ? AND space = ?) {rest}"
    return connection.execute(sql, (generation.id, space, *values))


def _last_before(connection: sqlite3.Connection, generation: Generation, space: str, until: int) -> Checkpoint | None:
    rest = "AND until <= ? ORDER BY until DESC LIMIT 1"
    return next(map(_checkpoint, _snapshots(connection, generation, space, rest, until)), None)


def _checkpoint(row: Sequence[Any]) -> Checkpoint:
    line, until, data, crc = row
    if not is_intact(line, (f"{until}",), data, crc):
        raise Damaged(f"the snapshot at the offset {until} fails its checksum")
    return _decode_checkpoint(data)


def _row(connection: sqlite3.Connection, line: int, until: int, address: RowKey) -> bytes | None:
    """The last version of a row up to `until`. Its neighbours are checked too: a damaged key may hide a version."""
    found = None
    for comparison, order in ((">", "ASC"), ("<=", "DESC")):
        row = connection.execute(
            f"SELECT {_ROW}, value, crc FROM snapshot_rows WHERE ({_ROW}) {comparison} (?, ?, ?, ?, ?, ?) "
            f"ORDER BY {_ROW.replace(',', f' {order},')} {order} LIMIT 1",
            (line, *address, until),
        ).fetchone()
        found = None if row is None else (row[:5], _check(row[0], [*map(str, row[1:5])], *row[5:]))
    return None if found is None or found[0] != (line, *address) else found[1]


def _check(line: int, address: Sequence[str], until: int, value: bytes | None, crc: object) -> bytes | None:
    if not is_intact(line, (*address, f"{until}"), value or b"", crc):
        raise Damaged(f"the snapshot of the row {[*address[1:]]} of {address[0]!r} fails its checksum")
    return value


def _fetch(
    connection: sqlite3.Connection, line: int, until: int, rows: Sequence[RowKey], logs: Sequence[LogName]
) -> Fetched:
    found = [_row(connection, line, until, key) for key in rows]
    return found, [_tail(connection, line, until, name, 0).total for name in logs]


def _tail(connection: sqlite3.Connection, line: int, until: int, name: LogName, newest: int) -> Tail:
    parts: list[list[bytes]] = []
    total, wanted = 0, 0
    sql = "SELECT until, total, keep, entries, crc FROM snapshot_logs WHERE line = ? AND name = ? AND space = ?"
    for at, end, keep, data, crc in connection.execute(
        f"{sql} AND owner = ? AND until <= ? ORDER BY until DESC", (line, *name, until)
    ):
        if not is_intact(line, (*name, f"{at} {end} {keep}"), data, crc):
            raise Damaged(f"the snapshot of the log {' / '.join(name)} fails its checksum")
        if not total:
            total, wanted = end, min(newest, keep)
        if wanted <= 0:
            break
        parts.append(_decode_entries(zlib.decompress(data)))
        if end != total - sum(map(len, parts[:-1])):
            raise Damaged(f"entries of the snapshot of the log {' / '.join(name)} are missing")
        wanted -= len(parts[-1])
    entries = [entry for part in reversed(parts) for entry in part]
    return Tail(entries[-wanted:] if wanted < 0 else entries, total)


def _part(connection: sqlite3.Connection, line: int, until: int, name: tuple[str, str, str], changes: Changes) -> Any:
    """The row of the entries that were appended to a log since the last snapshot, without those that it dropped."""
    added, keep = changes.logs[name], changes.keep[name[0]]
    total = _tail(connection, line, until, LogName(*name), 0).total + len(added)
    data = zlib.compress(_encode([*added[-keep:]]), _COMPRESSION)
    return line, *name, until, total, keep, data, checksum(line, (*name, f"{until} {total} {keep}"), data)


def _scan(connection: sqlite3.Connection, line: int, until: int, scan: Scan) -> list[StoredRow]:
    """Rows of a table, one more than `scan` asks for."""
    keys, order = scan.key_range(), " DESC" if scan.newest_first else ""
    sql = "SELECT space, owner, key, max(until), CAST(value AS BLOB), crc FROM snapshot_rows"
    sql += " WHERE line = ? AND name = ? AND (space, owner, key) >= (?, ?, ?) AND until <= ?"
    values: list[object] = [line, scan.table, *keys.first, until]
    if keys.end is not None:
        sql, values = f"{sql} AND (space, owner, key) < (?, ?, ?)", [*values, *keys.end]
    sql += f" GROUP BY space, owner, key ORDER BY space{order}, owner{order}, key{order}"
    items: list[StoredRow] = []
    for space, owner, key, at, value, crc in connection.execute(sql, values):
        data = _check(line, (scan.table, space, owner, key), at, value, crc)
        if data is not None:
            items.append(StoredRow(space, owner, key, data))
        if len(items) > scan.limit:
            break
    return items
