"""The store of views in one SQLite file, for the embedded form.

Every row, segment of a log and control row carries a checksum, which covers its address and is compared on each read.
Damage is handled like a deleted file: the call that finds it continues in a new, empty file (see `SqliteFile`), and the
views are built again from the ledger.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from recallog_projections.rows import Changes, Fetched, FetchHere
from recallog_projections.sqlite import integrity
from recallog_projections.sqlite.errors import Damaged
from recallog_projections.sqlite.file import Result, SqliteFile
from recallog_projections.sqlite.format import FileFormat
from recallog_projections.stores import sqlite_logs
from recallog_projections.stores.checksums import checksum, is_intact
from recallog_projections.stores.sqlite_logs import DAMAGED, LogEnds
from recallog_projections.stores.store import (
    Checkpoint,
    Chunk,
    Generation,
    Outcome,
    Pointer,
    ReadResult,
    Scan,
    Snapshots,
    Store,
    StoredRow,
    is_beyond,
    outcome_of,
)
from recallog_projections.tables import LogName, RowKey
from recallog_schemas import limits
from recallog_schemas.errors import Rebuilding, StorageCorrupt, StorageError, StorageReplaced

VIEWS = FileFormat(
    what="views file",
    application_id=0x52635677,  # "RcVw"
    version=4,
    remedy="All views can be computed again: delete the file, and the next query builds it from the ledger",
    synchronous="NORMAL",  # a commit that a power cut loses is folded again
    disposable=True,
    schema=f"""
    CREATE TABLE manifest (ledger BLOB NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE pointers (partition INTEGER PRIMARY KEY, generations BLOB NOT NULL, crc INTEGER NOT NULL);
    CREATE TABLE generations (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL, checkpoint BLOB, crc INTEGER
    );
    CREATE TABLE rows (
        generation INTEGER, name TEXT, space TEXT, owner TEXT, key TEXT, value BLOB NOT NULL, crc INTEGER NOT NULL,
        PRIMARY KEY (generation, name, space, owner, key)
    ) WITHOUT ROWID;
    {sqlite_logs.SCHEMA}
    """,
)

_MANIFEST, _POINTER = ("manifest",), ("pointer",)
"""Parts of the addresses that checksums cover."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The ends of the logs of a generation at a checkpoint: valid while the checkpoint is the same."""

    generation: str = ""
    checkpoint: Checkpoint | None = None
    logs: LogEnds = field(default_factory=LogEnds)
    has_all: bool = False
    """Whether a log that is not among them does not exist."""

    def as_of(self, generation: Generation, checkpoint: Checkpoint) -> "_Ends":
        """This, or an empty cache if it is of another checkpoint or too large."""
        current = self.generation == generation.id and self.checkpoint == checkpoint
        return self if current and len(self.logs) <= limits.CACHED_ROWS_MAX else _Ends(has_all=checkpoint.offset < 0)


class SqliteStore(Store):
    """One file; a commit is one transaction."""

    def __init__(self, path: Path, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:
        self._file = SqliteFile(path, VIEWS, lock_wait_seconds)
        self._ends = _Ends()

    @property
    def location(self) -> str:
        return str(self._file.path)

    async def _run(
        self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False, keep_damaged: bool = False
    ) -> Result:
        try:
            return await self._file.run(work, write=write, keep_damaged=keep_damaged)
        except StorageReplaced:
            # The views were deleted: they are built again in a new file.
            return await self._file.run(work, write=write, keep_damaged=keep_damaged)

    @property
    def snapshots(self) -> Snapshots:
        from recallog_projections.stores.sqlite_snapshots import SqliteSnapshots  # few queries are about the past

        return SqliteSnapshots(self, self._file)

    async def exists(self) -> bool:
        return self._file.path.exists()

    async def clear(self) -> None:
        """As in `Store`: a new, empty file replaces this one, also a damaged one."""
        await self._file.replace()

    async def remember_manifest(self, manifest: bytes) -> bytes:
        def work(connection: sqlite3.Connection) -> bytes:
            stored = _manifest(connection)
            if stored is None:
                connection.execute("INSERT INTO manifest VALUES (?, ?)", (manifest, checksum(0, _MANIFEST, manifest)))
            return stored or manifest

        stored: bytes | None = await self._run(_manifest)
        return await self._run(work, write=True) if stored is None else stored

    async def pointer(self, partition: int) -> Pointer:
        return await self._run(lambda connection: _pointer(connection, partition))

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        def work(connection: sqlite3.Connection) -> Pointer:
            pointer = _pointer(connection, generation.partition)
            if pointer == Pointer(active=replaces):
                (number,) = connection.execute("SELECT coalesce(max(number), 0) + 1 FROM generations").fetchone()
                row = (number, generation.id, generation.partition)
                connection.execute("INSERT INTO generations VALUES (?, ?, ?, NULL, NULL)", row)
                _set_checkpoint(connection, number, generation, Checkpoint())
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
        """As in `Store`. SQLite leaves deleted data in its pages, so the file is then rewritten.

        The numbers of the generations are deleted last. If readers of other processes still use the former pages, a
        later call continues.
        """
        retired = await self._run(lambda connection: _find_retired(connection, partition))
        if not retired:
            return
        run = partial(self._file.run, write=True)
        with suppress(StorageReplaced):  # a new file has none of these generations, though perhaps their numbers
            while await run(lambda connection: _collect_some_garbage(connection, retired)):
                pass
            await self._file.rewrite()
            if await self._file.empty_log():
                await run(lambda connection: _forget(connection, retired))

    async def has_garbage(self, partition: int) -> bool:
        return bool(await self._run(lambda connection: _find_retired(connection, partition)))

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        return await self._run(lambda connection: _checkpoint(connection, generation))

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        ends = self._ends.as_of(generation, expected)

        def work(connection: sqlite3.Connection) -> Outcome:
            pointer = _pointer(connection, generation.partition)
            state = _state(connection, generation)
            stored = None if state is None else state[1]
            outcome = outcome_of(pointer, generation, stored, expected.offset, new.offset)
            if outcome is Outcome.APPLIED and state is not None:
                number, _ = state
                _write_rows(connection, number, changes)
                sqlite_logs.append(connection, number, changes, ends.logs, has_all=ends.has_all)
                _set_checkpoint(connection, number, generation, new)
            return outcome

        self._ends = _Ends()  # invalid unless the commit succeeds
        outcome = await self._run(work, write=True)
        if outcome is Outcome.APPLIED:
            self._ends = _Ends(generation.id, new, ends.logs, ends.has_all)
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
            state = _state(connection, wanted) if wanted else None
            if wanted is None or state is None:
                raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
            return _read_found(connection, wanted, state, rows, logs)

        return await self._run(work)

    def read_here(
        self, generation: Generation, checkpoint: Checkpoint, work: Callable[[FetchHere], Result]
    ) -> Result | None:
        def reading(connection: sqlite3.Connection) -> Result | None:
            number, stored = _state(connection, generation) or (0, None)
            return work(partial(_fetch_rows, connection, number)) if stored == checkpoint else None

        try:
            return self._file.run_here(reading)
        except StorageError:
            return None

    async def read_current(
        self,
        partition: int,
        rows: Sequence[RowKey],
        logs: Sequence[tuple[LogName, int]],
        is_current: Callable[[Generation, Checkpoint], bool],
    ) -> ReadResult | None:
        def work(connection: sqlite3.Connection) -> ReadResult | None:
            active = _pointer(connection, partition).active
            state = _state(connection, active) if active else None
            if active is None or state is None or not is_current(active, state[1]):
                return None
            return _read_found(connection, active, state, rows, logs)

        return await self._run(work)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        def work(connection: sqlite3.Connection) -> Chunk:
            state = _state(connection, generation)
            if state is None:
                raise Rebuilding(f"the generation {generation.id} is gone; read again")
            number, checkpoint = state
            report = damaged is not None
            items = _scan_rows(connection, number, scan, report)
            if not items and scan.includes_logs:
                items = sqlite_logs.scan(connection, number, scan, report)
            page, last = items[: scan.limit], len(items) <= scan.limit
            if damaged is not None:
                damaged.extend(item.row_key for item in page if item.data is DAMAGED)
                page = [item for item in page if item.data is not DAMAGED]
            return Chunk(checkpoint, page, last)

        return await self._run(work, keep_damaged=damaged is not None)

    async def find_problems(self) -> list[str]:
        beside = SqliteFile(self._file.path, VIEWS)  # in a thread of its own, so that queries continue
        try:
            return await beside.run(_find_problems, keep_damaged=True)
        except StorageCorrupt as error:
            return [error.finding]
        finally:
            await beside.close()

    async def size_bytes(self) -> int:
        return await self._file.size_bytes()

    async def close(self) -> None:
        await self._file.close()


def _find_problems(connection: sqlite3.Connection) -> list[str]:
    from recallog_projections.stores import sqlite_snapshots

    schema = VIEWS.schema + (sqlite_snapshots.SCHEMA if sqlite_snapshots.exist(connection) else "")
    return integrity.find_problems(connection, schema)


def _manifest(connection: sqlite3.Connection) -> bytes | None:
    row = connection.execute("SELECT ledger, crc FROM manifest").fetchone()
    if row is None:
        return None
    manifest, crc = row
    if not is_intact(0, _MANIFEST, manifest, crc):
        raise Damaged("the name of its ledger fails its checksum")
    return bytes(manifest)


def _pointer(connection: sqlite3.Connection, partition: int) -> Pointer:
    row = connection.execute("SELECT generations, crc FROM pointers WHERE partition = ?", (partition,)).fetchone()
    if row is None:
        return Pointer()
    data, crc = row
    if not is_intact(partition, _POINTER, data, crc):
        raise Damaged(f"the pointer of partition {partition} fails its checksum")
    return msgspec.msgpack.decode(data, type=Pointer)


def _set_pointer(connection: sqlite3.Connection, partition: int, pointer: Pointer) -> None:
    data = msgspec.msgpack.encode(pointer)
    row = (partition, data, checksum(partition, _POINTER, data))
    connection.execute("INSERT OR REPLACE INTO pointers VALUES (?, ?, ?)", row)


def _state(connection: sqlite3.Connection, generation: Generation) -> tuple[int, Checkpoint] | None:
    """The number of a generation in the file, and its checkpoint; None if it has none."""
    sql = "SELECT number, checkpoint, crc FROM generations WHERE id = ?"
    number, data, crc = connection.execute(sql, (generation.id,)).fetchone() or (0, None, None)
    if data is None:
        return None
    if not is_intact(number, _checkpoint_address(generation), data, crc):
        raise Damaged(f"the checkpoint of the generation {generation.id} fails its checksum")
    return number, msgspec.msgpack.decode(data, type=Checkpoint)


def _checkpoint(connection: sqlite3.Connection, generation: Generation) -> Checkpoint | None:
    state = _state(connection, generation)
    return None if state is None else state[1]


def _set_checkpoint(
    connection: sqlite3.Connection, number: int, generation: Generation, checkpoint: Checkpoint
) -> None:
    data = msgspec.msgpack.encode(checkpoint)
    crc = checksum(number, _checkpoint_address(generation), data)
    connection.execute("UPDATE generations SET checkpoint = ?, crc = ? WHERE number = ?", (data, crc, number))


def _checkpoint_address(generation: Generation) -> tuple[str, str]:
    return f"{generation.partition}", generation.id


def _read_found(
    connection: sqlite3.Connection,
    generation: Generation,
    state: tuple[int, Checkpoint],
    rows: Sequence[RowKey],
    logs: Sequence[tuple[LogName, int]],
) -> ReadResult:
    number, checkpoint = state
    return ReadResult(
        generation,
        checkpoint,
        [_row(connection, number, need) for need in rows],
        [sqlite_logs.tail(connection, number, name, newest) for name, newest in logs],
    )


def _fetch_rows(
    connection: sqlite3.Connection, number: int, row_keys: Sequence[RowKey], log_names: Sequence[LogName]
) -> Fetched:
    rows = [_row(connection, number, key) for key in row_keys]
    return rows, [sqlite_logs.tail(connection, number, name, 0).total for name in log_names]


def _row(connection: sqlite3.Connection, number: int, need: RowKey) -> bytes | None:
    row = connection.execute(
        "SELECT value, crc FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        (number, *need),
    ).fetchone()
    if row is None:
        return None
    data: bytes
    data, crc = row
    if not is_intact(number, need, data, crc):
        raise _damaged_row(need)
    return data


def _damaged_row(row_key: Sequence[str]) -> Damaged:
    table, *address = row_key
    return Damaged(f"the row {address} of {table!r} fails its checksum")


def _write_rows(connection: sqlite3.Connection, number: int, changes: Changes) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (number, *need, data, checksum(number, need, data))
            for need, data in changes.rows.items()
            if data is not None
        ],
    )
    connection.executemany(
        "DELETE FROM rows WHERE generation = ? AND name = ? AND space = ? AND owner = ? AND key = ?",
        [(number, *need) for need, data in changes.rows.items() if data is None],
    )


def _scan_rows(connection: sqlite3.Connection, number: int, scan: Scan, report: bool) -> list[StoredRow]:
    """Rows of a table, one more than `scan` asks for; with `report`, the data of damaged ones is `DAMAGED`.

    A damaged key can make a search begin too late or end too early. The row before the first one and the row after the
    last one are therefore checked too: if rows were missed, one of the two has another key than it was stored with.
    With `report`, a damaged one of another table counts only if it was stored in this one.
    """
    keys, table, newest_first, limit = scan.key_range(), scan.table, scan.newest_first, scan.limit + 1
    low = (number, table, *keys.first)
    high = (number, f"{table}\0", "", "", "") if keys.end is None else (number, table, *keys.end)
    # One comparison of row values, not one of each column: SQLite then seeks to the first row and needs no sorting.
    sql = "SELECT space, owner, key, CAST(value AS BLOB), crc FROM rows WHERE generation = ? AND name = ?"
    sql += " AND (space, owner, key) >= (?, ?, ?)"
    values: list[object] = [number, table, *keys.first]
    if keys.end is not None:
        sql, values = f"{sql} AND (space, owner, key) < (?, ?, ?)", [*values, *keys.end]
    order = " DESC" if newest_first else ""
    sql += f" ORDER BY space{order}, owner{order}, key{order} LIMIT ?"
    items = []
    for found_space, owner, key, data, crc in connection.execute(sql, [*values, limit]):
        if is_intact(number, (table, found_space, owner, key), data, crc):
            items.append(StoredRow(found_space, owner, key, data))
        elif report:
            items.append(StoredRow(str(found_space), str(owner), str(key), DAMAGED))
        else:
            raise _damaged_row((table, found_space, owner, key))
    beside = []
    if not report:
        beside.append(_neighbour(connection, ">=", high) if newest_first else _neighbour(connection, "<", low))
    if len(items) < limit:
        last = (number, table, *items[-1].row_key) if items else None
        if newest_first:
            beside.append(_neighbour(connection, "<", last or high))
        else:
            beside.append(_neighbour(connection, ">", last) if last else _neighbour(connection, ">=", low))
    for row in filter(None, beside):
        if not is_intact(row[0], row[1:5], *row[5:]):
            if not report:
                raise _damaged_row(row[1:5])
            if row[1] == table or is_intact(number, (table, *row[2:5]), *row[5:]):
                items.append(StoredRow(str(row[2]), str(row[3]), str(row[4]), DAMAGED))
    return items


def _neighbour(
    connection: sqlite3.Connection, comparison: Literal["<", ">", ">="], address: Sequence[object]
) -> tuple[Any, ...] | None:
    """The last row of any table before an address, or the first one after or at it."""
    order = "DESC" if comparison == "<" else "ASC"
    columns = ("generation", "name", "space", "owner", "key")
    row: tuple[Any, ...] | None = connection.execute(
        f"SELECT {', '.join(columns)}, CAST(value AS BLOB), crc FROM rows WHERE ({', '.join(columns)}) {comparison} "
        f"(?, ?, ?, ?, ?) ORDER BY {', '.join(f'{column} {order}' for column in columns)} LIMIT 1",
        address,
    ).fetchone()
    return row


def _find_retired(connection: sqlite3.Connection, partition: int) -> list[int]:
    """The numbers of the generations that no pointer names."""
    pointer = _pointer(connection, partition)
    known = {generation.id for generation in (pointer.active, pointer.building) if generation is not None}
    found = connection.execute("SELECT number, id FROM generations WHERE partition = ?", (partition,)).fetchall()
    return [number for number, id_ in found if id_ not in known]


def _collect_some_garbage(connection: sqlite3.Connection, retired: Sequence[int]) -> bool:
    """Delete a bounded part of these generations. Returns whether there may be more."""
    from recallog_projections.stores import sqlite_snapshots

    for number in retired:
        has_checkpoint = "UPDATE generations SET checkpoint = NULL WHERE number = ? AND checkpoint IS NOT NULL"
        if connection.execute(has_checkpoint, (number,)).rowcount or sqlite_logs.collect_garbage(connection, number):
            return True
        if sqlite_snapshots.collect_garbage(connection, number):
            return True
        deleted = connection.execute(
            "DELETE FROM rows WHERE generation = ? AND (name, space, owner, key) IN "
            "(SELECT name, space, owner, key FROM rows WHERE generation = ? LIMIT 5000)",
            (number, number),
        ).rowcount
        if deleted:
            return True
    return False


def _forget(connection: sqlite3.Connection, retired: Sequence[int]) -> None:
    connection.executemany("DELETE FROM generations WHERE number = ?", [(number,) for number in retired])
