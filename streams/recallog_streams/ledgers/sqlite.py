"""The embedded ledger: one SQLite file, one partition, one total order of all its events.

Each record carries a checksum of its offset, space, id and value, which every read compares. A record that fails it, or
an offset without a record, raises `StorageCorrupt`, after the records before it were read.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

from recallog_projections.notices import warn_once
from recallog_projections.sqlite_file import Damaged, FileFormat, SqliteFile
from recallog_projections.stores.checksums import checksum, is_intact
from recallog_schemas import Event, Position, limits
from recallog_streams.ledgers.ledger import Batch, Ledger, Manifest, check_repeat, encode_events

_LARGE_EVENTS = 100_000
"""The upgrade of a ledger with at least as many takes more than a few seconds."""

_OFFSETS_MAX = 1 << 40

_CHECKED_RECORDS = 128
"""How many records are checked at once, which takes half the time of checking each alone. They may take 32 MiB."""


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Add the checksums of format 2 to a ledger of format 1."""
    if version != 1:
        raise Damaged(f"its format is {version}")
    events = _end(connection)
    if events >= _LARGE_EVENTS:
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        warn_once(
            "storage",
            ("upgrade", path),
            f"the ledger {path} is upgraded once, in one transaction: its {events:,} events get checksums. This takes "
            "about 10 s per million of them, and as much free space as the file",
        )
    connection.create_function("event_checksum", 4, _checksum_of_old, deterministic=True)
    connection.create_function("space_checksum", 2, _space_checksum, deterministic=True)
    for statement in (
        "ALTER TABLE manifest ADD COLUMN copy TEXT NOT NULL DEFAULT ''",
        "UPDATE manifest SET copy = id",
        "ALTER TABLE spaces ADD COLUMN crc INTEGER NOT NULL DEFAULT 0",
        "UPDATE spaces SET crc = space_checksum(number, name)",
        "ALTER TABLE events ADD COLUMN crc INTEGER NOT NULL DEFAULT 0",
        "UPDATE events SET crc = event_checksum(offset, space, id, value)",
    ):
        connection.execute(statement)


LEDGER = FileFormat(
    what="ledger",
    application_id=0x52634C67,  # "RcLg"
    version=2,
    remedy="Keep a copy of it, then restore your backup of the folder; without one, `recallog export --keep-going` "
    "writes the records that can still be read",
    synchronous="FULL",  # an acknowledged event survives a power failure
    identity="SELECT id FROM manifest",
    upgrade=_upgrade,
    schema="""
    CREATE TABLE manifest (id TEXT NOT NULL, copy TEXT NOT NULL DEFAULT '');
    INSERT INTO manifest (id) VALUES (lower(hex(randomblob(16))));
    UPDATE manifest SET copy = id;
    CREATE TABLE spaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, crc INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE events (
        offset INTEGER PRIMARY KEY, space INTEGER NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL,
        crc INTEGER NOT NULL DEFAULT 0, UNIQUE (space, id)
    );
    CREATE INDEX events_of_space ON events (space);
    """,
)


@dataclass(frozen=True, slots=True)
class _Selection:
    """The records of the space of that number, found by their index, or among all records; None: of all spaces."""

    space: int | None
    by_index: bool = False


_NO_RECORDS = _Selection(-1, by_index=True)


class SqliteLedger(Ledger):
    """A ledger in SQLite: WAL, synchronous=FULL, unique ids. Any number of processes may append and read at once."""

    unique_ids: ClassVar[bool] = True

    def __init__(
        self,
        path: Path,
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        deadline_seconds: float | None = None,
    ) -> None:
        """`append` waits `lock_wait_seconds` for a lock, and reading waits `deadline_seconds` (default: as long)."""
        self._file = SqliteFile(path, LEDGER, lock_wait_seconds, deadline_seconds)

    @property
    def location(self) -> str:
        return str(self._file.path)

    async def open(self) -> None:
        return None

    async def manifest(self) -> Manifest:
        return Manifest(ledger=f"sqlite:{await self._file.run(_id)}", partitions=1, partitioner="one")

    async def append(self, events: Sequence[Event]) -> list[Position]:
        values = [(event.space, event.id, data) for event, data in zip(events, encode_events(events), strict=True)]

        def work(connection: sqlite3.Connection) -> list[int]:
            spaces = {name: _space(connection, name) for name in {space for space, _, _ in values}}
            start = _end(connection)
            rows = [
                (offset, number := spaces[space], id_, data, event_checksum(offset, number, id_, data))
                for offset, (space, id_, data) in enumerate(values, start)
            ]
            # Usually all ids are new. One statement then writes them, and the unique index checks that.
            connection.execute("SAVEPOINT all_new")
            try:
                connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                connection.execute("ROLLBACK TO all_new")
                return [
                    _append_one(connection, event, number, data, start)
                    for event, (_, number, _, data, _) in zip(events, rows, strict=True)
                ]
            return list(range(start, start + len(rows)))

        return [Position(0, offset) for offset in await self._file.run(work, write=True)]

    async def ends(self) -> list[int]:
        return [await self._file.run(_end)]

    def end_here(self, partition: int) -> int | None:
        return self._file.run_here(_end)

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        select = _Selection(None)
        if space is not None and start < until:
            select = await self._file.run(partial(_selection, space=space))
            if not select.by_index:
                self._warn_of_index()
        while start < until:
            batch = await self._file.run(partial(_read, start=start, until=until, select=select))
            yield batch
            start = batch.next

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        def work(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
            number = _known_space(connection, space)
            return None if number is None else _find(connection, number, id)

        found = await self._file.run(work)
        return Position(0, found[0]) if found else None

    def _warn_of_index(self) -> None:
        warn_once(
            "storage",
            ("index of spaces", self._file.path),
            f"the index of spaces in the ledger {self._file.path} is damaged; a read of one space reads all records "
            "instead. To repair it, move to a new folder: recallog export --output FILE, then recallog ingest FILE",
        )

    def partition_of(self, space: str) -> int:
        return 0

    async def size_bytes(self) -> int:
        return await self._file.size_bytes()

    async def close(self) -> None:
        await self._file.close()


def event_checksum(offset: int, space: int, id_: str, value: bytes) -> int:
    """The checksum of a record; `space` is the number of its space."""
    return crc32(value, crc32(id_.encode(), offset)) ^ space


def _is_intact(offset: int, space: Any, id_: Any, value: Any, crc: object) -> bool:
    """Whether a record has its checksum. In a damaged file the columns can be of any type."""
    try:
        return event_checksum(offset, space, id_, value) == crc
    except (TypeError, AttributeError):
        return False


def _checksum_of_old(offset: int, space: Any, id_: Any, value: Any) -> int:
    """The checksum of a record of version 1; -1, which none has, for one that was damaged before."""
    try:
        return event_checksum(offset, space, id_, value)
    except (TypeError, AttributeError):
        return -1


def _space_checksum(number: int, name: str) -> int:
    return checksum(number, (name,), b"")


def _id(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT id, copy FROM manifest").fetchone()
    if row is None or row[0] != row[1]:
        raise Damaged("its manifest")
    return str(row[0])


def _end(connection: sqlite3.Connection) -> int:
    (end,) = connection.execute("SELECT coalesce(max(offset) + 1, 0) FROM events").fetchone()
    return int(end)


def _known_space(connection: sqlite3.Connection, name: str) -> int | None:
    """The number of a space; None for a space without events."""
    row = connection.execute("SELECT number, crc FROM spaces WHERE name = ?", (name,)).fetchone()
    if row is None:
        return None
    number, crc = row
    if not is_intact(number, (name,), b"", crc):
        raise Damaged(f"the number of the space {name!r} fails its checksum")
    return int(number)


def _space(connection: sqlite3.Connection, name: str) -> int:
    """The number of a space, which gets one if it has none."""
    known = _known_space(connection, name)
    if known is not None:
        return known
    (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM spaces").fetchone()
    connection.execute("INSERT INTO spaces VALUES (?, ?, ?)", (number, name, _space_checksum(number, name)))
    return int(number)


def _find(connection: sqlite3.Connection, space: int, id_: str) -> tuple[int, bytes] | None:
    """The offset and the value of an event; None if there is none."""
    sql = "SELECT offset, value, crc FROM events WHERE space = ? AND id = ?"
    row = connection.execute(sql, (space, id_)).fetchone()
    if row is None:
        return None
    offset, value, crc = row
    if not _is_intact(offset, space, id_, value, crc):
        raise _damaged_record(offset)
    return int(offset), value


def _append_one(connection: sqlite3.Connection, event: Event, space: int, data: bytes, start: int) -> int:
    """The offset of the event, or that of the first event with its id. The events of this call begin at `start`."""
    found = _find(connection, space, event.id)
    if found is None:
        offset = _end(connection)
        crc = event_checksum(offset, space, event.id, data)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", (offset, space, event.id, data, crc))
        return offset
    offset, first = found
    check_repeat(event, data, first, Position(0, offset) if offset < start else None)
    return offset


def _selection(connection: sqlite3.Connection, space: str) -> _Selection:
    """How to read one space: by its index, unless that has other offsets than the index of ids, or is damaged."""
    number = _known_space(connection, space)
    if number is None:
        return _NO_RECORDS
    sql = "SELECT count(*), total(offset) FROM events INDEXED BY {} WHERE space = ?"
    try:
        by_space, by_id = (
            connection.execute(sql.format(index), (number,)).fetchone()
            for index in ("events_of_space", "sqlite_autoindex_events_1")
        )
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return _Selection(number)
    return _Selection(number, by_index=by_space == by_id)


def _read(connection: sqlite3.Connection, start: int, until: int, select: _Selection) -> Batch:
    """The next records, within the limits of a batch, or those before the first damaged one."""
    batch = None if select.by_index or select.space is not None else _read_intact(connection, start, until)
    return batch or _read_up_to_damage(connection, start, until, select)


def _read_intact(connection: sqlite3.Connection, start: int, until: int) -> Batch | None:
    """The next records of all spaces, if all up to the batch's end are intact."""
    sql = "SELECT value, space, id, crc FROM events WHERE offset >= ? AND offset < ? ORDER BY offset LIMIT ?"
    records: list[tuple[int, bytes]] = []
    room_bytes = limits.READ_BATCH_BYTES
    try:
        cursor = connection.execute(sql, (start, until, limits.READ_BATCH_RECORDS))
        while rows := cursor.fetchmany(_CHECKED_RECORDS):
            following = start + len(records)
            # The checksum covers the offset that the record must have, so that a hole or a repeated row fails it.
            if [
                crc32(value, crc32(id_.encode(), offset)) ^ space
                for offset, (value, space, id_, _) in enumerate(rows, following)
            ] != [row[3] for row in rows]:
                return None
            values = [row[0] for row in rows]
            room_bytes -= sum(map(len, values))
            records += enumerate(values, following)
            if room_bytes < 0:
                while room_bytes < 0 and len(records) > 1:
                    room_bytes += len(records.pop()[1])
                return Batch(0, start, start + len(records), records)
    except (sqlite3.DatabaseError, TypeError, AttributeError):
        return None
    following = start + len(records)
    return (
        Batch(0, start, following, records) if following == until or len(records) == limits.READ_BATCH_RECORDS else None
    )


def _read_up_to_damage(connection: sqlite3.Connection, start: int, until: int, select: _Selection) -> Batch:
    """`_read` record by record, which is slower and finds the damaged one."""
    where = "offset >= ? AND offset < ?"
    values: list[int | None] = [start, until]
    if select.by_index:
        where, values = f"space = ? AND {where}", [select.space, *values]
    sql = f"SELECT offset, space, id, value, crc FROM events WHERE {where} ORDER BY offset LIMIT ?"
    records: list[tuple[int, bytes]] = []
    seen, room_bytes, following, damage = 0, limits.READ_BATCH_BYTES, start, None
    dense, only = not select.by_index, None if select.by_index else select.space
    try:
        for offset, space, id_, value, crc in connection.execute(sql, [*values, limits.READ_BATCH_RECORDS]):
            if offset < following:
                damage = Damaged(f"the record at 0:{offset} is there twice", position=f"0:{following}", until=following)
                break
            if dense and offset > following:
                break
            if not _is_intact(offset, space, id_, value, crc):
                damage = _damaged_record(offset)
                break
            if only is None or space == only:
                room_bytes -= len(value)
                if room_bytes < 0 and records:
                    break
                records.append((offset, value))
            seen += 1
            following = offset + 1
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        damage = Damaged(
            f"the record at 0:{following} cannot be read: {error}",
            position=f"0:{following}",
            until=_next_readable(connection, following),
        )
    full = room_bytes < 0 or seen == limits.READ_BATCH_RECORDS
    if dense and damage is None and not full and following < until:
        damage = _hole(connection, following)
    if damage is None:
        return Batch(0, start, following if full else until, records)
    if following == start:
        raise damage
    return Batch(0, start, following, records)


def _damaged_record(offset: int) -> Damaged:
    return Damaged(f"the record at 0:{offset} fails its checksum", position=f"0:{offset}", until=offset + 1)


def _hole(connection: sqlite3.Connection, offset: int) -> Damaged | None:
    """The damage that there is no record at `offset`; None if the ledger ends there."""
    (found,) = connection.execute("SELECT min(offset) FROM events WHERE offset >= ?", (offset,)).fetchone()
    if found is None:
        return None
    return Damaged(f"the record at 0:{offset} is missing", position=f"0:{offset}", until=found)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether a row could not be read because its page, or its text, is damaged."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF == sqlite3.SQLITE_CORRUPT


def _next_readable(connection: sqlite3.Connection, damaged: int) -> int | None:
    """The first offset after `damaged` whose page can be read; None if there is none."""

    def next_at(offset: int) -> int | None:
        (found,) = connection.execute("SELECT min(offset) FROM events WHERE offset >= ?", (offset,)).fetchone()
        return None if found is None else int(found)

    unreadable, step = damaged, 1
    while step < _OFFSETS_MAX:
        try:
            found = next_at(damaged + step)
        except sqlite3.DatabaseError:
            unreadable, step = damaged + step, 2 * step
        else:
            break
    else:
        return None
    readable = damaged + step
    while readable - unreadable > 1:
        middle = (unreadable + readable) // 2
        try:
            found, readable = next_at(middle), middle
        except sqlite3.DatabaseError:
            unreadable = middle
    return found
