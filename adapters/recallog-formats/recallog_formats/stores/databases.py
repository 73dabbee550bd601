"""Rows of SQLite databases, which are read without changing them."""

import sqlite3
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from recallog import InvalidArgument, InvalidEvent
from recallog_formats.stores.store import Destination, EventOfRow, StoreRow, map_row

_MAGIC = b"SQLite format 3\0"
_APPLICATION = slice(68, 72)
"""Where the header of a database has the id of the program that has created it."""
_OURS = b"Rc"
"""How the ids of Recallog's own files begin: a folder may contain the memory to which it is imported."""
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
_WAIT_SECONDS = 30.0

Tables = Mapping[str, EventOfRow]
"""By the name of a table, the event of a row."""
Reader = Callable[[Path, Destination], Iterator[StoreRow]]


def reader(system: str, tables: Tables, left_out: Mapping[str, str], unused: Container[str] = ()) -> Reader:
    """The reader of the databases of a system. `left_out` says of tables why they are not taken over; columns that are
    `unused` are not named in reports."""

    def read(path: Path, into: Destination) -> Iterator[StoreRow]:
        databases, unreadable = databases_in(path)
        present = [each for each, names in databases.items() if names & tables.keys()]
        if not present:
            found = ", ".join(sorted({name for names in databases.values() for name in names})) or "no table"
            message = f"{path} is not a store of {system}: expected a SQLite database with {' or '.join(tables)}"
            others = "".join(f"; {each.error}" for each in unreadable)
            raise InvalidArgument(f"{message}; found {found}{others}", path="PATH")
        yield from unreadable
        for database in present:
            with snapshot_of(database) as connection:
                yield from table_rows(connection, tables, into, unused)
                yield from left_out_tables(connection, tables, left_out)

    return read


def databases_in(path: Path) -> tuple[dict[Path, set[str]], list[StoreRow]]:
    """The tables of the file, or of the databases in a folder and its subfolders, and an error for each other database.

    Raises `InvalidArgument` if `path`, or the only file, cannot be read.
    """
    found: dict[Path, set[str]] = {}
    unreadable: list[StoreRow] = []
    for each in sorted(path.rglob("*")) if path.is_dir() else [path]:
        try:
            if _is_foreign_database(each):
                with _naming_errors(each), closing(_connect(each)) as connection:
                    found[each] = {name for (name,) in connection.execute(_TABLES)}
        except InvalidArgument as error:
            if each == path:
                raise
            place = f"database {each.relative_to(path)}"
            unreadable.append(StoreRow(place, error=InvalidEvent(str(error), rule="unreadable")))
    return found, unreadable


@contextmanager
def snapshot_of(database: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database as of now. Its owner may have it open: the copy takes no lock while rows are read."""
    with (
        _naming_errors(database),
        TemporaryDirectory(prefix="recallog-") as folder,
        closing(sqlite3.connect(Path(folder, "copy.sqlite"))) as copy,
    ):
        with closing(_connect(database)) as original:
            original.backup(copy)
        copy.row_factory = sqlite3.Row
        copy.text_factory = _decode
        yield copy


def _connect(database: Path) -> sqlite3.Connection:
    """A connection that does not write, also not the files beside a database in WAL mode."""
    source = f"file:{quote(str(database.resolve()))}?mode=ro{'&immutable=1' if _is_at_rest(database) else ''}"
    connection = sqlite3.connect(source, uri=True, timeout=_WAIT_SECONDS)
    connection.text_factory = _decode
    return connection


def _decode(text: bytes) -> str:
    """Text that is not UTF-8 becomes an event that is refused with its place, and the other rows are read."""
    return text.decode("utf-8", "surrogateescape")


@contextmanager
def _naming_errors(database: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InvalidArgument(f"cannot read {database}: {error}; {_advise(error)}", path="PATH") from None


def _advise(error: sqlite3.Error) -> str:
    is_in_use = isinstance(error, sqlite3.OperationalError)
    return "close the program that uses it, or copy the file" if is_in_use else "it is damaged: repair it, or remove it"


def _is_foreign_database(path: Path) -> bool:
    """Whether a file is a database of another program.

    Raises `InvalidArgument` if it cannot be read, also if its folder may not be searched.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            header = file.read(_APPLICATION.stop)
            return header.startswith(_MAGIC) and not header[_APPLICATION].startswith(_OURS)
    except OSError as error:
        raise InvalidArgument(f"cannot read {path}: {error.strerror}", path="PATH") from None


def _is_at_rest(database: Path) -> bool:
    """Whether a database in WAL mode has no log, so that no program has it open. Reading it would create a log."""
    with database.open("rb") as file:
        header = file.read(20)
    return header[18:20] == b"\2\2" and not Path(f"{database}-wal").exists()


def left_out_tables(
    connection: sqlite3.Connection, known: Container[str], left_out: Mapping[str, str]
) -> Iterator[StoreRow]:
    """The tables that are not `known` and have rows, with the reason. Tables of search indexes are not named."""
    for (name,) in connection.execute(_TABLES).fetchall():
        if name not in known and "_fts" not in name and not name.startswith("_"):
            why = left_out.get(name, "a table that is not in the published schema")
            yield from until_damage(name, _count(connection, name, why))


def table_rows(
    connection: sqlite3.Connection, tables: Tables, into: Destination, unused: Container[str] = ()
) -> Iterator[StoreRow]:
    """The rows of the tables that are there, and their columns that are neither read nor `unused`."""
    present = {name for (name,) in connection.execute(_TABLES)}
    for name, event_of in tables.items():
        if name in present:
            yield from until_damage(name, _map_rows(connection, name, event_of, into, unused))


def until_damage(name: str, rows: Iterator[StoreRow]) -> Iterator[StoreRow]:
    """The rows of a table, and an error if the rest of them cannot be read."""
    done = 0
    try:
        for row in rows:
            done += 1
            yield row
    except sqlite3.DatabaseError as error:
        why = f"what comes after {done:,} rows cannot be read: {error}; {_advise(error)}"
        yield StoreRow(name, error=InvalidEvent(why, rule="unreadable"))


def _count(connection: sqlite3.Connection, name: str, why: str) -> Iterator[StoreRow]:
    (count,) = connection.execute(f"SELECT count(*) FROM {_quote(name)}").fetchone()
    if count:
        yield StoreRow(name, left_out=why, count=count)


class _ReadFields(dict[str, Any]):
    """A row that notes which of its columns are read."""

    def __init__(self, row: sqlite3.Row, read: set[str]) -> None:
        super().__init__(row)
        self._read = read

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        return super().get(name, default)


def _map_rows(
    connection: sqlite3.Connection, name: str, event_of: EventOfRow, into: Destination, unused: Container[str]
) -> Iterator[StoreRow]:
    columns = connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
    keys = [each["name"] for each in columns if each["pk"]]
    read: set[str] = set()
    has_events = False
    for number, row in enumerate(_rows_in_order(connection, name), 1):
        fields = _ReadFields(row, read)
        place = fields.get("id") or " ".join(str(fields[key]) for key in keys) or number
        made = map_row(f"{name} {place}", fields, event_of, into)
        has_events = has_events or made.event is not None
        yield made
    if not has_events:  # a row that is refused may not have been read to its end
        return
    for column in (each["name"] for each in columns):
        if column not in read and column not in unused:
            counted = f"SELECT count({_quote(column)}) FROM {_quote(name)}"
            (count,) = connection.execute(counted).fetchone()
            if count:
                yield StoreRow(f"{name} column {column}", left_out="a column that is not taken over", count=count)


def _rows_in_order(connection: sqlite3.Connection, name: str) -> sqlite3.Cursor:
    try:
        return connection.execute(f"SELECT * FROM {_quote(name)} ORDER BY rowid")
    except sqlite3.OperationalError:  # a table WITHOUT ROWID, which is in the order of its key
        return connection.execute(f"SELECT * FROM {_quote(name)}")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
