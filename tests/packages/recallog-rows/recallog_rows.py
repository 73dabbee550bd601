"""Views, locks and keys in one SQLite file, `rows:///var/lib/village/views.db`, as a server of SQL could have them."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from recallog import LockTimeout, Rebuilding, SettingsError, StorageUnavailable
from recallog.extending import (
    DESTROYED,
    MARKS,
    AdapterSettings,
    Changes,
    Checkpoint,
    Chunk,
    Database,
    Documents,
    Generation,
    KeysState,
    Lock,
    LogName,
    Outcome,
    Pointer,
    ReadResult,
    RowKey,
    Scan,
    SealingKey,
    SealingKeys,
    Store,
    StoredRow,
    Tail,
    Unit,
    is_beyond,
    mark_of,
    name_of,
    ordinal_key,
    outcome_of,
)

SCHEMA = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS facts (space TEXT, name TEXT, value BLOB, PRIMARY KEY (space, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (
    store TEXT, generation TEXT, name TEXT, is_log INT, space TEXT, owner TEXT, key TEXT, value BLOB,
    PRIMARY KEY (store, generation, name, is_log, space, owner, key)) WITHOUT ROWID;
"""
PUT_ROW = "REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
OF_OWNER = "store = ? AND generation = ? AND name = ? AND is_log = ? AND space = ? AND owner = ?"


class File:
    """A connection of its own for each store. Facts are values by a space of names and a name."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self.path, self._wait_seconds = path, wait_seconds
        self._connection: sqlite3.Connection | None = None

    @contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[sqlite3.Connection]:
        """One atomic read; with `BEGIN IMMEDIATE`, one atomic write."""
        try:
            if self._connection is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = sqlite3.connect(self.path, self._wait_seconds, isolation_level=None)
                self._connection.executescript(SCHEMA)
            with self._connection as connection:
                connection.execute(begin)
                yield connection
        except sqlite3.OperationalError as error:
            raise StorageUnavailable(f"{self.path}: {error}. Try again") from error

    def writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.transaction("BEGIN IMMEDIATE")

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def fact(connection: sqlite3.Connection, space: str, name: str) -> bytes | None:
    found = connection.execute("SELECT value FROM facts WHERE space = ? AND name = ?", (space, name)).fetchone()
    return None if found is None else found[0]


def put(connection: sqlite3.Connection, space: str, name: str, value: bytes) -> None:
    connection.execute("REPLACE INTO facts VALUES (?, ?, ?)", (space, name, value))


class RowsStore(Store):
    """The rows of one namespace. An entry of a log is a row whose key is its ordinal."""

    def __init__(self, file: File, namespace: str) -> None:
        self._file, self._name = file, namespace

    async def clear(self) -> None:
        with self._file.writing() as connection:
            connection.execute("DELETE FROM facts WHERE space = ?", (self._name,))
            connection.execute("DELETE FROM rows WHERE store = ?", (self._name,))

    async def remember_manifest(self, manifest: bytes) -> bytes:
        with self._file.writing() as connection:
            if (stored := fact(connection, self._name, "manifest")) is None:
                put(connection, self._name, "manifest", manifest)
            return stored or manifest

    def _pointer(self, connection: sqlite3.Connection, partition: int) -> Pointer:
        stored = fact(connection, self._name, f"pointer/{partition}")
        return Pointer() if stored is None else msgspec.msgpack.decode(stored, type=Pointer)

    def _checkpoint(self, connection: sqlite3.Connection, generation: Generation) -> Checkpoint | None:
        stored = fact(connection, self._name, f"checkpoint/{generation.id}")
        return None if stored is None else msgspec.msgpack.decode(stored, type=Checkpoint)

    def _put(self, connection: sqlite3.Connection, name: str, value: msgspec.Struct) -> None:
        put(connection, self._name, name, msgspec.msgpack.encode(value))

    async def pointer(self, partition: int) -> Pointer:
        with self._file.transaction() as connection:
            return self._pointer(connection, partition)

    async def create(self, generation: Generation, replaces: Generation | None = None) -> Pointer:
        with self._file.writing() as connection:
            pointer = self._pointer(connection, generation.partition)
            if pointer == Pointer(active=replaces):
                pointer = Pointer(replaces, generation)
                self._put(connection, f"pointer/{generation.partition}", pointer)
                self._put(connection, f"checkpoint/{generation.id}", Checkpoint())
            return pointer

    async def activate(self, building: Generation, *, unless_beyond: int | None = None) -> bool:
        with self._file.writing() as connection:
            pointer, mine = self._pointer(connection, building.partition), self._checkpoint(connection, building)
            active = self._checkpoint(connection, pointer.active) if pointer.active else None
            if pointer.building != building or mine is None:
                return False
            if active is not None and is_beyond(active, mine.offset, unless_beyond):
                return False
            self._put(connection, f"pointer/{building.partition}", Pointer(active=building))
            return True

    async def retire(self, generation: Generation) -> bool:
        with self._file.writing() as connection:
            pointer = self._pointer(connection, generation.partition)
            if pointer.building == generation:
                self._put(connection, f"pointer/{generation.partition}", Pointer(active=pointer.active))
            return pointer.building == generation

    async def collect_garbage(self, partition: int) -> None:
        with self._file.writing() as connection:
            sql = "SELECT value FROM facts WHERE space = ? AND name GLOB 'pointer/*'"
            pointers = [
                msgspec.msgpack.decode(each, type=Pointer) for (each,) in connection.execute(sql, (self._name,))
            ]
            kept = [each.id for pointer in pointers for each in (pointer.active, pointer.building) if each is not None]
            unknown = f"NOT IN ({', '.join('?' * len(kept))})"
            sql = f"DELETE FROM facts WHERE space = ? AND name GLOB 'checkpoint/*' AND substr(name, 12) {unknown}"
            connection.execute(sql, (self._name, *kept))
            connection.execute(f"DELETE FROM rows WHERE store = ? AND generation {unknown}", (self._name, *kept))

    async def checkpoint(self, generation: Generation) -> Checkpoint | None:
        with self._file.transaction() as connection:
            return self._checkpoint(connection, generation)

    async def commit(self, generation: Generation, expected: Checkpoint, new: Checkpoint, changes: Changes) -> Outcome:
        with self._file.writing() as connection:
            pointer, stored = self._pointer(connection, generation.partition), self._checkpoint(connection, generation)
            outcome = outcome_of(pointer, generation, stored, expected.offset, new.offset)
            if outcome is not Outcome.APPLIED:
                return outcome
            for (name, *key), value in changes.rows.items():
                row = (self._name, generation.id, name, 0, *key)
                if value is None:
                    connection.execute(f"DELETE FROM rows WHERE {OF_OWNER} AND key = ?", row)
                else:
                    connection.execute(PUT_ROW, (*row, value))
            for log, entries in changes.logs.items():
                of_log = (self._name, generation.id, log[0], 1, *log[1:])
                total = self._total(connection, of_log)
                rows = [(*of_log, ordinal_key(number), each) for number, each in enumerate(entries, total)]
                connection.executemany(PUT_ROW, rows)
                first = ordinal_key(max(0, total + len(entries) - changes.keep[log[0]]))
                connection.execute(f"DELETE FROM rows WHERE {OF_OWNER} AND key < ?", (*of_log, first))
            self._put(connection, f"checkpoint/{generation.id}", new)
            return outcome

    def _total(self, connection: sqlite3.Connection, of_log: tuple[object, ...]) -> int:
        (last,) = connection.execute(f"SELECT max(key) FROM rows WHERE {OF_OWNER}", of_log).fetchone()
        return 0 if last is None else int(last) + 1

    async def read(
        self,
        partition: int,
        rows: Sequence[RowKey] = (),
        logs: Sequence[tuple[LogName, int]] = (),
        generation: Generation | None = None,
    ) -> ReadResult:
        with self._file.transaction() as connection:
            wanted = generation or self._pointer(connection, partition).active
            checkpoint = None if wanted is None else self._checkpoint(connection, wanted)
            if wanted is None or checkpoint is None:
                raise Rebuilding(f"partition {partition} has no views yet; try again when they are built")
            found, tails = [], []
            for name, *key in rows:
                sql = f"SELECT value FROM rows WHERE {OF_OWNER} AND key = ?"
                row = connection.execute(sql, (self._name, wanted.id, name, 0, *key)).fetchone()
                found.append(None if row is None else row[0])
            for log, newest in logs:
                of_log = (self._name, wanted.id, log.log, 1, log.space, log.owner)
                sql = f"SELECT value FROM rows WHERE {OF_OWNER} ORDER BY key DESC LIMIT ?"
                entries = [value for (value,) in connection.execute(sql, (*of_log, newest))]
                tails.append(Tail(entries[::-1], self._total(connection, of_log)))
            return ReadResult(wanted, checkpoint, found, tails)

    async def scan_chunk(self, generation: Generation, scan: Scan, damaged: list[tuple[str, str, str]] | None) -> Chunk:
        keys, order = scan.key_range(), " DESC" if scan.newest_first else ""
        sql = (
            "SELECT space, owner, key, value FROM rows WHERE store = ? AND generation = ? AND name = ? AND is_log <= ?"
        )
        values = [self._name, generation.id, scan.table, int(scan.includes_logs), *keys.first]
        sql += " AND (space, owner, key) >= (?, ?, ?)"
        if keys.end is not None:
            sql, values = f"{sql} AND (space, owner, key) < (?, ?, ?)", [*values, *keys.end]
        sql += f" ORDER BY space{order}, owner{order}, key{order} LIMIT ?"
        with self._file.transaction() as connection:
            if (checkpoint := self._checkpoint(connection, generation)) is None:
                raise Rebuilding(f"the generation {generation.id} is gone; read again")
            found = [StoredRow(*row) for row in connection.execute(sql, (*values, scan.limit + 1))]
        return Chunk(checkpoint, found[: scan.limit], len(found) <= scan.limit)

    async def size_bytes(self) -> int:
        return self._file.path.stat().st_size if self._file.path.exists() else 0

    async def close(self) -> None:
        await self._file.close()


class RowsKeys(SealingKeys):
    """Keys of sealed events: facts of `secrets` by id, of `present` by unit, and counts."""

    def __init__(self, file: File) -> None:
        super().__init__()
        self._file = file

    async def state(self) -> KeysState:
        with self._file.transaction() as connection:
            counts = dict(connection.execute("SELECT name, value FROM facts WHERE space = 'counts'"))
        return KeysState(counts.pop("retired", 0), {int(partition): marks for partition, marks in counts.items()})

    async def read(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        with self._file.transaction() as connection:
            found = {id_: fact(connection, "secrets", id_) for id_ in ids}
        return {id_: secret for id_, secret in found.items() if secret is not None}

    async def present(self, units: Sequence[str]) -> Mapping[str, SealingKey]:
        with self._file.transaction() as connection:
            ids = {unit: id_.decode() for unit in units if (id_ := fact(connection, "present", unit)) is not None}
        secrets = await self.read(ids.values())
        return {unit: SealingKey(id_, secrets[id_]) for unit, id_ in ids.items()}

    async def add(self, keys: Sequence[SealingKey]) -> None:
        with self._file.writing() as connection:
            for key in keys:
                put(connection, "secrets", key.id, key.secret)

    async def assign(self, keys: Mapping[str, SealingKey]) -> Mapping[str, SealingKey]:
        with self._file.writing() as connection:
            rows = [(unit, key.id.encode()) for unit, key in keys.items()]
            connection.executemany("INSERT OR IGNORE INTO facts VALUES ('present', ?, ?)", rows)
        return await self.present([*keys])

    async def retire(self, units: Sequence[Unit]) -> list[str]:
        with self._file.writing() as connection:
            found = [fact(connection, "present", name_of(unit)) for unit in units]
            ids = [id_.decode() for id_ in found if id_ is not None]
            self._retire(connection, ids)
        return ids

    def _retire(self, connection: sqlite3.Connection, ids: Sequence[str]) -> None:
        sql = "DELETE FROM facts WHERE space = 'present' AND value = ?"
        retired = sum(connection.execute(sql, (id_.encode(),)).rowcount for id_ in ids)
        self._count(connection, "retired", retired)

    def _count(self, connection: sqlite3.Connection, name: str, added: int) -> None:
        connection.execute("INSERT OR IGNORE INTO facts VALUES ('counts', ?, 0)", (name,))
        sql = "UPDATE facts SET value = (value + ?) % ? WHERE space = 'counts' AND name = ?"
        connection.execute(sql, (added, MARKS, name))

    async def destroy(self, ids: Iterable[str], partition: int) -> int:
        with self._file.writing() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            gone = [id_ for id_ in {*ids} if fact(connection, "secrets", id_) != DESTROYED]
            self._retire(connection, gone)
            for id_ in gone:
                put(connection, "secrets", id_, DESTROYED)
            self._count(connection, str(partition), sum(map(mark_of, gone)))
        return len(gone)

    async def close(self) -> None:
        await self._file.close()


class RowsDocuments(Documents):
    """Facts of one collection."""

    def __init__(self, file: File, name: str) -> None:
        self._file, self._name = file, f"documents/{name}"

    async def get(self, name: str) -> bytes | None:
        with self._file.transaction() as connection:
            return fact(connection, self._name, name)

    async def all(self) -> Mapping[str, bytes]:
        with self._file.transaction() as connection:
            return dict(connection.execute("SELECT name, value FROM facts WHERE space = ?", (self._name,)))

    async def put(self, name: str, document: bytes) -> None:
        with self._file.writing() as connection:
            put(connection, self._name, name, document)

    async def close(self) -> None:
        await self._file.close()


class RowsDatabase(Database):
    """The database at a URL."""

    def __init__(self, url: str, settings: AdapterSettings) -> None:
        if not (path := urlsplit(url).path):
            raise SettingsError(f"RECALLOG_VIEWS: {url}: name a file, for example rows:///var/lib/village/views.db")
        self._path, self._wait_seconds = Path(path), settings.question_wait_seconds

    def _file(self) -> File:
        return File(self._path, self._wait_seconds)

    def store(self, namespace: str) -> RowsStore:
        return RowsStore(self._file(), namespace)

    def lock(self, name: str, wait_seconds: float) -> Lock:
        """An exclusive transaction on a file of its own, which ends with its process; on a server, an advisory lock."""

        @asynccontextmanager
        async def locked() -> AsyncIterator[None]:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(f"{self._path}.{name.replace(':', '-')}.lock", 0, isolation_level=None)
            give_up = asyncio.get_running_loop().time() + wait_seconds
            try:
                while not _begun(connection):
                    if asyncio.get_running_loop().time() >= give_up:
                        raise LockTimeout(f"another process has held {name} for {wait_seconds:g} s; try again")
                    await asyncio.sleep(0.01)
                yield
            finally:
                connection.close()

        return locked

    def sealing_keys(self) -> RowsKeys:
        return RowsKeys(self._file())

    def documents(self, name: str) -> RowsDocuments:
        return RowsDocuments(self._file(), name)


def _begun(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        return False
    return True
