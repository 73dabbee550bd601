"""Keys in a SQLite file, beside the ledger of a folder. A copy of the ledger alone cannot be read."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from recallog_projections.sqlite.file import SqliteFile
from recallog_projections.sqlite.format import FileFormat
from recallog_schemas import limits
from recallog_schemas.errors import StorageUnavailable
from recallog_schemas.sealing import DESTROYED, Unit
from recallog_streams.keys.sealing_keys import MARKS, KeysState, SealingKey, SealingKeys, mark_of, name_of

_RETIRED = -1
"""The number under which the count of retired keys is stored, where counts of destroyed keys have their partition."""
_AT_ONCE = 500

KEYS = FileFormat(
    what="store of keys",
    application_id=0x52634B73,  # "RcKs"
    version=1,
    remedy="Restore your copy of it: without it, the sealed events of the ledger cannot be read",
    synchronous="FULL",  # used and destroyed keys survive a power failure
    schema="""
    CREATE TABLE keys (id TEXT PRIMARY KEY, secret BLOB NOT NULL) WITHOUT ROWID;
    CREATE TABLE units (name TEXT PRIMARY KEY, key TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE counts (number INTEGER PRIMARY KEY, count INTEGER NOT NULL);
    CREATE INDEX unit_of_key ON units (key);
    """,
)


class SqliteKeys(SealingKeys):
    """Keys in one SQLite file, which is created with the first key."""

    def __init__(self, path: Path, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:
        super().__init__()
        self._path = path
        self._durable = SqliteFile(path, KEYS, lock_wait_seconds)
        self._file = SqliteFile(path, replace(KEYS, synchronous="NORMAL"), lock_wait_seconds)
        """Its commits do not wait for the disk."""

    @property
    def location(self) -> str:
        return str(self._path)

    async def state(self) -> KeysState:
        if not self._path.exists():
            return KeysState()
        here = self._file.run_here(_counts)
        counts = dict(await self._file.run(_counts) if here is None else here)
        return KeysState(counts.pop(_RETIRED, 0), counts)

    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        if not self._path.exists():
            return {}
        sql = "SELECT id, secret FROM keys WHERE id IN ({})"
        return dict(await self._select(sql, [*ids]))

    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        if not self._path.exists():
            return {}
        sql = "SELECT name, id, secret FROM units JOIN keys ON id = key WHERE name IN ({})"
        return {name: SealingKey(*key) for name, *key in await self._select(sql, units)}

    async def _select(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        def work(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
            rows = []
            for first in range(0, len(values), _AT_ONCE):
                some = values[first : first + _AT_ONCE]
                rows += connection.execute(sql.format(", ".join("?" * len(some))), some).fetchall()
            return rows

        return await self._file.run(work)

    async def add(self, keys: Sequence[SealingKey]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT INTO keys VALUES (?, ?)", keys)

        await self._durable.run(work, write=True)

    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        def work(connection: sqlite3.Connection) -> None:
            rows = [(unit, key.id) for unit, key in keys.items()]
            connection.executemany("INSERT OR IGNORE INTO units VALUES (?, ?)", rows)

        await self._file.run(work, write=True)
        return await self.present([*keys])

    async def retire(self, units: Sequence[Unit]) -> list[str]:
        names = [name_of(unit) for unit in units]
        if not self._path.exists():
            return []
        return await self._durable.run(lambda connection: _retire(connection, "name", names), write=True)

    async def destroy(self, ids: Iterable[str], partition: int) -> int:
        def work(connection: sqlite3.Connection) -> int:
            connection.execute("PRAGMA secure_delete = ON")
            sql = "SELECT 1 FROM keys WHERE id = ? AND secret = ?"
            gone = [id_ for id_ in {*ids} if connection.execute(sql, (id_, DESTROYED)).fetchone() is None]
            _retire(connection, "key", gone)
            connection.executemany("REPLACE INTO keys VALUES (?, ?)", [(id_, DESTROYED) for id_ in gone])
            _count(connection, partition, sum(map(mark_of, gone)))
            return len(gone)

        destroyed = await self._durable.run(work, write=True)
        if not await self._durable.empty_log():  # also for a process that ended before it
            raise StorageUnavailable(
                f"the keys are destroyed, and the log of {self._path} still has bytes of them, since another process "
                "reads it. Erase the same again"
            )
        return destroyed

    async def close(self) -> None:
        await self._durable.close()
        await self._file.close()


def _counts(connection: sqlite3.Connection) -> list[tuple[int, int]]:
    return connection.execute("SELECT number, count FROM counts").fetchall()


def _count(connection: sqlite3.Connection, number: int, added: int) -> None:
    sql = f"INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET count = (count + excluded.count) % {MARKS}"
    connection.execute(sql, (number, added % MARKS))


def _retire(connection: sqlite3.Connection, column: str, values: Sequence[str]) -> list[str]:
    sql = f"SELECT key FROM units WHERE {column} = ?"
    ids = [id_ for value in values for (id_,) in connection.execute(sql, (value,)).fetchall()]
    connection.executemany("DELETE FROM units WHERE key = ?", [(id_,) for id_ in ids])
    _count(connection, _RETIRED, len(ids))
    return ids
