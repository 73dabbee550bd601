"""Views in one SQLite file, for the embedded form."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import msgspec

from recallog_projections.projection import LogName, Need, Tail
from recallog_projections.rows import Changes
from recallog_projections.sqlite_file import Answer, Format, SqliteFile
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Item,
    Outcome,
    Pointer,
    Snapshot,
    Store,
    judge,
    ordinal_key,
)
from recallog_schemas import limits
from recallog_schemas.errors import Rebuilding, StorageReplaced

# A log entry's place is its log's number and its ordinal in one integer (31 bits of logs, 32 of ordinals): a tail is
# one range of places. Entries themselves lie in the order they came, so that a batch of ten thousand agents writes a
# few pages of them one after the other, and only the index of places all over; pages are small for the same reason.
_ORDINAL_BITS = 32
_ORDINAL_MASK = (1 << _ORDINAL_BITS) - 1

VIEWS = Format(
    what="views file",
    application_id=0x52635677,  # "RcVw"
    version=1,
    remedy="Views hold nothing of their own: delete the file, and the next query builds it from the ledger",
    page_bytes=2048,
    synchronous="NORMAL",  # a commit lost with the power is folded again
    disposable=True,
    schema="""
    CREATE TABLE manifest (ledger BLOB NOT NULL);
    CREATE TABLE pointers (partition INTEGER PRIMARY KEY, active BLOB, building BLOB);
    CREATE TABLE generations (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL, checkpoint BLOB
    );
    CREATE TABLE rows (
        generation INTEGER, name TEXT, space TEXT, owner TEXT, key TEXT, value BLOB NOT NULL,
        PRIMARY KEY (generation, name, space, owner, key)
    ) WITHOUT ROWID;
    CREATE TABLE logs (
        number INTEGER PRIMARY KEY, generation INTEGER, name TEXT, space TEXT, owner TEXT,
        UNIQUE (generation, name, space, owner)
    );
    CREATE TABLE entries (id INTEGER PRIMARY KEY, place INTEGER NOT NULL UNIQUE, value BLOB NOT NULL);
    """,
)


_Places = dict[tuple[str, str, str], int]
"""By (log, space, owner): the place of its next entry."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """Where the logs of one generation end, as of a checkpoint: while that stands nobody else has appended."""

    generation: str = ""
    checkpoint: Checkpoint | None = None
    logs: _Places = field(default_factory=_Places)

    def as_of(self, generation: Generation, checkpoint: Checkpoint) -> "_Ends":
        """This, or an empty one where it is of another moment or has grown too long."""
        current = self.generation == generation.id and self.checkpoint == checkpoint
        return self if current and len(self.logs) <= limits.CACHED_ROWS_MAX else _Ends()


class SqliteStore(Store):
    """One file; a commit is one transaction."""

    def __init__(self, path: Path, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:
        self._file = SqliteFile(path, VIEWS, lock_wait_seconds)
        self._ends = _Ends()

    async def _run(self, work: Callable[[sqlite3.Connection], Answer], *, write: bool = False) -> Answer:
        try:
            return await self._file.run(work, write=write)
        except StorageReplaced:
            # Somebody deleted the views: they are built again in a new file.
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

    async def create(self, generation: Generation) -> Pointer:
        def work(connection: sqlite3.Connection) -> Pointer:
            pointer = _pointer(connection, generation.partition)
            if pointer.building is None:
                connection.execute(
                    "INSERT INTO generations (id, partition, checkpoint) VALUES (?, ?, ?)",
                    (generation.id, generation.partition, msgspec.msgpack.encode(Checkpoint())),
                )
                pointer = msgspec.structs.replace(pointer, building=generation)
                _set_pointer(connection, generation.partition, pointer)
            return pointer

        return await self._run(work, write=True)

    async def activate(self, building: Generation) -> bool:
        def work(connection: sqlite3.Connection) -> bool:
            pointer = _pointer(connection, building.partition)
            mine = _checkpoint(connection, building)
            active = _checkpoint(connection, pointer.active) if pointer.active else None
            if pointer.building != building or mine is None or (active and active.offset > mine.offset):
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

    async def sweep(self, partition: int) -> None:
        while await self._run(lambda connection: _sweep_some(connection, partition), write=True):
            pass

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return await self._run(lambda connection: _checkpoint(connection, generation))

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        ends = self._ends.as_of(generation, expected)

        def work(connection: sqlite3.Connection) -> Outcome:
            pointer = _pointer(connection, generation.partition)
            stored = _checkpoint(connection, generation)
            outcome = judge(pointer, generation, stored, expected.offset, new.offset)
            if outcome is Outcome.APPLIED:
                number = _number(connection, generation)
                _write_rows(connection, number, changes)
                _write_logs(connection, number, changes, ends.logs)
                connection.execute(
                    "UPDATE generations SET checkpoint = ? WHERE number = ?", (msgspec.msgpack.encode(new), number)
                )
            return outcome

        self._ends = _Ends()  # good again only when the commit is
        outcome = await self._run(work, write=True)
        if outcome is Outcome.APPLIED:
            self._ends = _Ends(generation.id, new, ends.logs)
        return outcome

    async def read(
        self,
        partition: int,
        rows: Sequence[Need] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> Snapshot:
        def work(connection: sqlite3.Connection) -> Snapshot:
            wanted = generation or _pointer(connection, partition).active
            checkpoint = _checkpoint(connection, wanted) if wanted else None
            if wanted is None or checkpoint is None:
                raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
            number = _number(connection, wanted)
            return Snapshot(
                wanted,
                checkpoint,
                [_row(connection, number, need) for need in rows],
                [_tail(connection, number, name, newest) for name, newest in logs],
            )

        return await self._run(work)

    async def scan(
        self,
        generation: Generation,
        table: str,
        *,
        space: str | None = None,
        after: tuple[str, str, str] | None = None,
        limit: int,
    ) -> Chunk:
        def work(connection: sqlite3.Connection) -> Chunk:
            checkpoint = _checkpoint(connection, generation)
            if checkpoint is None:
                raise Rebuilding(f"the generation {generation.id} is gone; read again")
            number = _number(connection, generation)
            items = _scan_rows(connection, number, table, space, after, limit + 1)
            items = items or _scan_logs(connection, number, table, space, after, limit + 1)
            return Chunk(checkpoint, items[:limit], last=len(items) <= limit)

        return await self._run(work)

    async def size_bytes(self) -> int:
        return self._file.size_bytes()

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


def _row(connection: sqlite3.Connection, number: int, need: Need) -> bytes | None:
    row = connection.execute(
        "SELECT value FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        (number, *need),
    ).fetchone()
    return row[0] if row else None


def _log(connection: sqlite3.Connection, number: int, name: tuple[str, str, str]) -> int | None:
    row = connection.execute(
        "SELECT number FROM logs WHERE generation = ? AND name = ? AND space = ? AND owner = ?", (number, *name)
    ).fetchone()
    return cast(int, row[0]) if row else None


def _range(log: int) -> tuple[int, int]:
    """The first and the last place that the entries of a log can have."""
    return log << _ORDINAL_BITS, log << _ORDINAL_BITS | _ORDINAL_MASK


def _tail(connection: sqlite3.Connection, number: int, name: LogName, newest: int) -> Tail:
    log = _log(connection, number, name)
    entries = connection.execute(
        "SELECT place, value FROM entries WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?",
        (*_range(log or 0), max(newest, 1)),
    ).fetchall()
    total = (entries[0][0] & _ORDINAL_MASK) + 1 if entries else 0
    return Tail([value for _, value in reversed(entries[:newest])], total)


def _end(connection: sqlite3.Connection, number: int, name: tuple[str, str, str]) -> int:
    """The place of the log's next entry; the log is made where there is none."""
    log = _log(connection, number, name)
    if log is None:
        made = connection.execute(
            "INSERT INTO logs (generation, name, space, owner) VALUES (?, ?, ?, ?)", (number, *name)
        )
        return cast(int, made.lastrowid) << _ORDINAL_BITS
    newest = connection.execute("SELECT max(place) FROM entries WHERE place BETWEEN ? AND ?", _range(log)).fetchone()[0]
    return log << _ORDINAL_BITS if newest is None else newest + 1


def _write_rows(connection: sqlite3.Connection, number: int, changes: Changes) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?)",
        [(number, *need, data) for need, data in changes.rows.items() if data is not None],
    )
    connection.executemany(
        "DELETE FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        [(number, *need) for need, data in changes.rows.items() if data is None],
    )


def _write_logs(connection: sqlite3.Connection, number: int, changes: Changes, ends: _Places) -> None:
    """Append and trim. `ends` knows the places of some logs' next entries, and learns those of the others."""
    added: list[tuple[int, bytes]] = []
    dropped: list[tuple[int, int]] = []
    for name, entries in changes.logs.items():
        place = ends.get(name) or _end(connection, number, name)
        end = ends[name] = place + len(entries)
        keep = changes.keep[name[0]]
        added += [(place + n, data) for n, data in enumerate(entries)][-keep:]
        if end & _ORDINAL_MASK > keep:
            dropped.append((place & ~_ORDINAL_MASK, end - keep - 1))
    connection.executemany("DELETE FROM entries WHERE place BETWEEN ? AND ?", dropped)
    connection.executemany("INSERT INTO entries (place, value) VALUES (?, ?)", added)


def _scan_rows(
    connection: sqlite3.Connection,
    number: int,
    table: str,
    space: str | None,
    after: tuple[str, str, str] | None,
    limit: int,
) -> list[Item]:
    sql = "SELECT space, owner, key, value FROM rows WHERE generation = ? AND name = ?"
    values: list[object] = [number, table]
    if space is not None:
        sql, values = f"{sql} AND space = ?", [*values, space]
    if after is not None:
        sql, values = f"{sql} AND (space, owner, key) > (?, ?, ?)", [*values, *after]
    sql += " ORDER BY space, owner, key LIMIT ?"
    return [Item(*row) for row in connection.execute(sql, [*values, limit])]


def _scan_logs(
    connection: sqlite3.Connection,
    number: int,
    table: str,
    space: str | None,
    after: tuple[str, str, str] | None,
    limit: int,
) -> list[Item]:
    sql = (
        "SELECT l.space, l.owner, e.place, e.value FROM logs l CROSS JOIN entries e "
        "ON e.place BETWEEN l.number << 32 AND (l.number << 32) + 4294967295 WHERE l.generation = ? AND l.name = ?"
    )
    values: list[object] = [number, table]
    if space is not None:
        sql, values = f"{sql} AND l.space = ?", [*values, space]
    if after is not None:
        # The end of a table of rows is looked for here too: its keys are no ordinals.
        place = [*after[:2], *after[:2], int(after[2]) if after[2].isdecimal() else _ORDINAL_MASK]
        sql += " AND (l.space, l.owner) >= (?, ?) AND ((l.space, l.owner) > (?, ?) OR (e.place & 4294967295) > ?)"
        values = [*values, *place]
    sql += " ORDER BY l.space, l.owner, e.place LIMIT ?"
    return [
        Item(found_space, owner, ordinal_key(place & _ORDINAL_MASK), value)
        for found_space, owner, place, value in connection.execute(sql, [*values, limit])
    ]


def _sweep_some(connection: sqlite3.Connection, partition: int) -> bool:
    """Delete a bounded part of what no pointer names; whether there may be more."""
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
        logs = connection.execute("SELECT number FROM logs WHERE generation = ? LIMIT 200", (number,)).fetchall()
        if logs:
            connection.executemany(
                "DELETE FROM entries WHERE place BETWEEN ? AND ?",
                [_range(log) for (log,) in logs],
            )
            connection.executemany("DELETE FROM logs WHERE number = ?", logs)
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
