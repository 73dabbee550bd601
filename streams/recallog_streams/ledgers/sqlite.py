"""The embedded ledger: one SQLite file, one partition, one total order of all its events."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from recallog_projections.sqlite_file import FileFormat, SqliteFile
from recallog_schemas import Event, Position, limits
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest, check_repeat, encode_events

LEDGER = FileFormat(
    what="ledger",
    application_id=0x52634C67,  # "RcLg"
    version=1,
    remedy="Keep a copy of it, then restore your backup of the folder",
    synchronous="FULL",  # an acknowledged event survives a power failure
    identity="SELECT id FROM manifest",
    schema="""
    CREATE TABLE manifest (id TEXT NOT NULL);
    INSERT INTO manifest VALUES (lower(hex(randomblob(16))));
    CREATE TABLE spaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE events (
        offset INTEGER PRIMARY KEY, space INTEGER NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL, UNIQUE (space, id)
    );
    CREATE INDEX events_of_space ON events (space);
    """,
)


class SqliteLedger(Ledger):
    """A ledger in SQLite: WAL, synchronous=FULL, unique ids. Any number of processes may append and read at once."""

    unique_ids: ClassVar[bool] = True

    def __init__(self, path: Path, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:
        self._file = SqliteFile(path, LEDGER, lock_wait_seconds)

    async def open(self) -> None:
        return None

    async def manifest(self) -> Manifest:
        (id_,) = await self._file.run(lambda connection: connection.execute("SELECT id FROM manifest").fetchone())
        return Manifest(ledger=f"sqlite:{id_}", partitions=1, partitioner="one")

    async def append(self, events: Sequence[Event]) -> list[Position]:
        values = [(event.space, event.id, data) for event, data in zip(events, encode_events(events), strict=True)]

        def work(connection: sqlite3.Connection) -> list[int]:
            spaces = {name: _space(connection, name) for name in {space for space, _, _ in values}}
            rows = [(spaces[space], id_, data) for space, id_, data in values]
            start = _end(connection)
            # Usually all ids are new. One statement then writes them, and the unique index checks that.
            connection.execute("SAVEPOINT all_new")
            try:
                connection.executemany(
                    "INSERT INTO events VALUES (?, ?, ?, ?)", [(start + n, *row) for n, row in enumerate(rows)]
                )
            except sqlite3.IntegrityError:
                connection.execute("ROLLBACK TO all_new")
                return [_append_one(connection, event, *row, start) for event, row in zip(events, rows, strict=True)]
            return list(range(start, start + len(rows)))

        return [Position(0, offset) for offset in await self._file.run(work, write=True)]

    async def ends(self) -> list[int]:
        return [await self._file.run(_end)]

    def end_here(self, partition: int) -> int | None:
        return self._file.run_here(_end)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        while start < until:
            batch = await self._file.run(partial(_read, start=start, until=until, space=space))
            yield batch
            start = batch.next

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        def work(connection: sqlite3.Connection) -> tuple[int] | None:
            sql = "SELECT offset FROM events WHERE space = (SELECT number FROM spaces WHERE name = ?) AND id = ?"
            row: tuple[int] | None = connection.execute(sql, (space, id)).fetchone()
            return row

        row = await self._file.run(work)
        return Position(0, row[0]) if row else None

    def partition_of(self, space: str) -> int:
        return 0

    async def size_bytes(self) -> int:
        return await self._file.size_bytes()

    async def close(self) -> None:
        await self._file.close()


def _end(connection: sqlite3.Connection) -> int:
    (end,) = connection.execute("SELECT coalesce(max(offset) + 1, 0) FROM events").fetchone()
    return int(end)


def _space(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT number FROM spaces WHERE name = ?", (name,)).fetchone()
    if row is None:
        row = connection.execute("INSERT INTO spaces (name) VALUES (?) RETURNING number", (name,)).fetchone()
    return int(row[0])


def _append_one(connection: sqlite3.Connection, event: Event, space: int, id_: str, data: bytes, start: int) -> int:
    """The offset of the event, or that of the first event with its id. The events of this call begin at `start`."""
    row = connection.execute("SELECT offset, value FROM events WHERE space = ? AND id = ?", (space, id_)).fetchone()
    if row is None:
        offset = _end(connection)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", (offset, space, id_, data))
        return offset
    offset, first = int(row[0]), row[1]
    check_repeat(event, data, first, Position(0, offset) if offset < start else None)
    return offset


def _read(connection: sqlite3.Connection, start: int, until: int, space: str | None) -> Batch:
    """The next records, within the limits of a batch."""
    values: list[object] = [start, until]
    if space is None:
        sql = "SELECT offset, value FROM events WHERE offset >= ? AND offset < ?"
    else:
        sql = (
            "SELECT offset, value FROM events WHERE space = (SELECT number FROM spaces WHERE name = ?) "
            "AND offset >= ? AND offset < ?"
        )
        values = [space, *values]
    records: list[tuple[int, bytes]] = []
    room_bytes = limits.READ_BATCH_BYTES
    for record in connection.execute(f"{sql} ORDER BY offset LIMIT ?", [*values, limits.READ_BATCH_RECORDS]):
        room_bytes -= len(record[1])
        if room_bytes < 0 and records:
            break
        records.append(record)
    full = room_bytes < 0 or len(records) == limits.READ_BATCH_RECORDS
    return Batch(0, start, records[-1][0] + 1 if full else until, records)
