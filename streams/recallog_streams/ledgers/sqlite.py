"""The embedded ledger: one SQLite file, one partition, one total order of all its events.

Each record carries a checksum of its offset, space, id, value and time, which every read compares. A record that fails
it, or an offset without a record, raises `StorageCorrupt`, after the records before it were read.
"""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar

from recallog_projections.notices import warn_once
from recallog_projections.sqlite.errors import Damaged
from recallog_projections.sqlite.file import SqliteFile
from recallog_projections.sqlite.format import FileFormat
from recallog_schemas import Event, Position, limits
from recallog_streams.ledgers import sqlite_records as records
from recallog_streams.ledgers import sqlite_structure
from recallog_streams.ledgers.ledger import (
    Batch,
    Ledger,
    LedgerGuard,
    LedgerPart,
    Manifest,
    PartProblem,
    Times,
    check_repeat,
)
from recallog_streams.sealing import Opener, may_be_sealed

_LARGE_EVENTS = 100_000
"""The upgrade of a ledger with at least this many events takes more than a few seconds."""


_ROWS_AT_ONCE = 50
"""How many events one statement writes, if an append has as many: this takes a tenth less time than one by one."""
# Without "OR FAIL" SQLite copies each page first, to undo the statement alone. A conflict undoes the whole transaction.
_INSERT = "INSERT OR FAIL INTO events VALUES (?, ?, ?, ?, ?, ?)"
_INSERT_MANY = _INSERT + ", (?, ?, ?, ?, ?, ?)" * (_ROWS_AT_ONCE - 1)


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Add the checksums of format 2 to a ledger of format 1, and to both the times of format 3."""
    if version == 1:
        _add_checksums(connection)
    elif version != 2:
        raise Damaged(f"its format is {version}")
    connection.execute("ALTER TABLE events ADD COLUMN appended INTEGER NOT NULL DEFAULT 0")  # it writes no row


def _add_checksums(connection: sqlite3.Connection) -> None:
    events = records.end_of(connection)
    if events >= _LARGE_EVENTS:
        (_, _, path), *_ = connection.execute("PRAGMA database_list").fetchall()
        warn_once(
            "storage",
            ("upgrade", path),
            f"the ledger {path} is upgraded once, in one transaction: its {events:,} events get checksums. This takes "
            "about 10 s per million of them, and as much free space as the file",
        )
    connection.create_function("event_checksum", 4, records.checksum_of_old, deterministic=True)
    connection.create_function("space_checksum", 2, records.space_checksum, deterministic=True)
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
    version=3,
    remedy="Keep a copy of it, then restore your backup of the folder",
    repair="before that, `recallog verify` says what is damaged, and whether `recallog verify --repair` can repair it",
    salvage="without one, `recallog export --keep-going` writes the records that can still be read",
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
        crc INTEGER NOT NULL DEFAULT 0, appended INTEGER NOT NULL DEFAULT 0, UNIQUE (space, id)
    );
    CREATE INDEX events_of_space ON events (space);
    """,
)


class _OtherOpening(Exception):
    """The file was opened again since the guard has accepted it."""


class _Repeats(Exception):
    """An event has the id of an earlier one. Nothing of its call was written."""


class SqliteLedger(Ledger):
    """A ledger in SQLite: WAL, synchronous=FULL, unique ids. Any number of processes may append and read at once."""

    unique_ids: ClassVar[bool] = True
    numbers_spaces: ClassVar[bool] = True

    def __init__(
        self,
        path: Path,
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        deadline_seconds: float | None = None,
    ) -> None:
        """`append` waits `lock_wait_seconds` for a lock, and reading waits `deadline_seconds` (default: as long)."""
        self._file = SqliteFile(path, LEDGER, lock_wait_seconds, deadline_seconds)
        self._end = self._losses = 0
        """The largest end that was seen, and how often it was smaller afterwards."""

    @property
    def location(self) -> str:
        return str(self._file.path)

    async def open(self) -> None:
        return None

    async def manifest(self) -> Manifest:
        return Manifest(ledger=f"sqlite:{await self._file.run(_id)}", partitions=1, partitioner="one")

    @property
    def opening(self) -> tuple[int, int]:
        """How often the file was opened, and how often it has lost its end while it was open: an older copy may have
        been written into the same file."""
        return self._file.openings, self._losses

    async def exists(self) -> bool:
        return self._file.path.exists()

    async def append(self, events: Sequence[Event], appended: Times = None) -> list[Position]:
        return await self._append(events, appended, None)

    async def append_guarded(
        self, events: Sequence[Event], guard: LedgerGuard, appended: Times = None
    ) -> list[Position]:
        """As in `Ledger`. The transaction makes sure that the file is the one that `guard` has accepted."""
        if not self._file.openings and await self.exists():
            await self._file.run(_nothing, write=True)  # a write waits longer for a lock than what `guard` reads
        while True:
            opening = self.opening
            await guard.check((0,), opening)
            with suppress(_OtherOpening):
                return await self._append(events, appended, opening)

    async def _append(self, events: Sequence[Event], appended: Times, opening: object) -> list[Position]:
        """`append`, but only to the file of that opening, unless it is None. Raises `_OtherOpening`."""
        values = await self.encode(events, appended)
        opened: Opener = bytes

        def work(connection: sqlite3.Connection, one_by_one: bool) -> Sequence[int]:
            start = self._seen_end(connection)
            if opening not in (None, self.opening):
                raise _OtherOpening
            spaces = {name: _space(connection, name) for name in {event.space for event in events}}
            written = [(event, spaces[event.space], *each) for event, each in zip(events, values, strict=True)]
            if one_by_one:
                return [_append_one(connection, *row, start, opened) for row in written]
            checksum = records.event_checksum
            _insert(
                connection,
                [
                    (offset, space, event.id, data, checksum(offset, space, event.id, data, time), time)
                    for offset, (event, space, data, time) in enumerate(written, start)
                ],
            )
            return range(start, start + len(written))

        try:  # usually all ids are new
            offsets = await self._file.run(partial(work, one_by_one=False), write=True)
        except _Repeats:
            firsts = await self._file.run(partial(_firsts, events=events))
            opened = await self.sealing.opener([*firsts, *(data for data, _ in values)])
            offsets = await self._file.run(partial(work, one_by_one=True), write=True)
        self._end = max([self._end, *(offset + 1 for offset in offsets[-1:])])
        return [Position(0, offset) for offset in offsets]

    def _seen_end(self, connection: sqlite3.Connection) -> int:
        end = records.end_of(connection)
        if end < self._end:
            self._losses += 1
        self._end = end
        return end

    async def ends(self) -> list[int]:
        return [await self._file.run(self._seen_end)]

    def end_here(self, partition: int) -> int | None:
        return self._file.run_here(self._seen_end)

    def read_here(self, partition: int, start: int, until: int) -> Batch | None:
        batch = self._file.run_here(partial(records.read, start=start, until=until, select=records.ALL_RECORDS))
        return None if batch is None or may_be_sealed(batch.records) else batch

    async def read(self, partition: int, start: int, until: int, *, space: str | None = None) -> AsyncIterator[Batch]:
        select = records.ALL_RECORDS
        if space is not None and start < until:
            select = await self._file.run(partial(records.selection, space=space, start=start, until=until))
            if not select.by_index:
                self._warn_of_index()
        while start < until:
            batch = await self._file.run(partial(records.read, start=start, until=until, select=select))
            yield await self.unseal(batch)
            start = batch.next

    async def find(self, space: str, id: str) -> Position | None:  # noqa: A002
        def work(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
            number = records.number_of(connection, space)
            return None if number is None else records.find(connection, number, id)

        found = await self._file.run(work)
        return Position(0, found[0]) if found else None

    def _warn_of_index(self) -> None:
        warn_once(
            "storage",
            ("index of spaces", self._file.path),
            f"the index of spaces in the ledger {self._file.path} is damaged; a read of one space reads all records "
            "instead. To repair it: recallog verify --repair",
        )

    async def find_problems(self) -> list[PartProblem]:
        beside = self._beside()  # appends and queries continue meanwhile
        try:
            return await beside.run(partial(sqlite_structure.find_problems, schema=LEDGER.schema))
        finally:
            await beside.close()

    async def repair(self) -> None:
        """As in `Ledger`. Other processes may use the file meanwhile; their appends wait."""
        found = {problem.part for problem in await self.find_problems()}
        beside = self._beside()
        try:
            if found - {LedgerPart.FREE_PAGES, LedgerPart.RECORDS}:
                await beside.run(partial(sqlite_structure.recompute, schema=LEDGER.schema), write=True, last=True)
            if found - {LedgerPart.RECORDS}:
                await beside.rewrite()
        finally:
            await beside.close()

    def _beside(self) -> SqliteFile:
        """The same file, in a thread of its own."""
        return SqliteFile(self._file.path, LEDGER)

    def partition_of(self, space: str) -> int:
        return 0

    async def size_bytes(self) -> int:
        return await self._file.size_bytes()

    async def close(self) -> None:
        await self._file.close()
        await self.sealing.close()


def _nothing(connection: sqlite3.Connection) -> None:
    """The transaction that only opens the file."""


def _id(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT id, copy FROM manifest").fetchone()
    if row is None or row[0] != row[1]:
        raise Damaged("its manifest")
    return str(row[0])


def _space(connection: sqlite3.Connection, name: str) -> int:
    """The number of a space, which gets one if it has none."""
    known = records.number_of(connection, name)
    if known is not None:
        return known
    (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM spaces").fetchone()
    connection.execute("INSERT INTO spaces VALUES (?, ?, ?)", (number, name, records.space_checksum(number, name)))
    return int(number)


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[int, int, str, bytes, int, int]]) -> None:
    """Write events whose ids are new. The unique index checks the ids: raises `_Repeats`."""
    alone = len(rows) - len(rows) % _ROWS_AT_ONCE
    try:
        for first in range(0, alone, _ROWS_AT_ONCE):
            connection.execute(_INSERT_MANY, [*chain.from_iterable(rows[first : first + _ROWS_AT_ONCE])])
        connection.executemany(_INSERT, rows[alone:])
    except sqlite3.IntegrityError:
        raise _Repeats from None


def _firsts(connection: sqlite3.Connection, events: Sequence[Event]) -> list[bytes]:
    """The records that have ids of `events`."""
    numbers = {space: records.number_of(connection, space) for space in {event.space for event in events}}
    found = [
        records.find(connection, number, event.id) for event in events if (number := numbers[event.space]) is not None
    ]
    return [each[1] for each in found if each is not None]


def _append_one(
    connection: sqlite3.Connection, event: Event, space: int, data: bytes, time: int, start: int, opened: Opener
) -> int:
    """The offset of the event, or that of the first event with its id. The events of this call begin at `start`."""
    found = records.find(connection, space, event.id)
    if found is None:
        offset = records.end_of(connection)
        crc = records.event_checksum(offset, space, event.id, data, time)
        connection.execute(_INSERT, (offset, space, event.id, data, crc, time))
        return offset
    offset, first = found
    check_repeat(event, data, first, Position(0, offset) if offset < start else None, opened)
    return offset
