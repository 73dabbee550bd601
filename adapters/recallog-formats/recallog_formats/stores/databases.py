"""Rows of SQLite databases, which are read without changing them."""

import sqlite3
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from recallog import InvalidArgument
from recallog_formats.stores.store import Destination, EventOfRow, Fields, StoreRow, map_row

_MAGIC = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
_WAIT_SECONDS = 30.0

Tables = Mapping[str, EventOfRow]
"""By the name of a table, the event of a row."""
Reader = Callable[[Path, Destination], Iterator[StoreRow]]


def reader(system: str, tables: Tables, left_out: Mapping[str, str]) -> Reader:
    """The reader of the databases of a system. `left_out` says of tables why they are not taken over."""

    def read(path: Path, into: Destination) -> Iterator[StoreRow]:
        databases = databases_in(path)
        present = {each: names for each in databases if (names := tables_of(each)) & tables.keys()}
        if not present:
            found = ", ".join(sorted({name for each in databases for name in tables_of(each)})) or "no table"
            message = f"{path} is not a store of {system}: expected a SQLite database with {' or '.join(tables)}"
            raise InvalidArgument(f"{message}; found {found}", path="PATH")
        for database in present:
            yield from _rows(database, tables, left_out, into)

    return read


def databases_in(path: Path) -> list[Path]:
    """The file, or the databases in a folder and its subfolders. Raises `InvalidArgument` if it cannot be read."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        return [each for each in files if each.is_file() and _is_database(each)]
    except OSError as error:
        raise InvalidArgument(f"cannot read {path}: {error.strerror}", path="PATH") from None


def tables_of(database: Path) -> set[str]:
    with snapshot_of(database) as connection:
        return {name for (name,) in connection.execute(_TABLES)}


@contextmanager
def snapshot_of(database: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database as of now. Its owner may have it open: the copy takes no lock while rows are read."""
    try:
        with (
            TemporaryDirectory(prefix="recallog-") as folder,
            closing(sqlite3.connect(Path(folder, "copy.sqlite"))) as copy,
        ):
            source = f"file:{quote(str(database.resolve()))}?mode=ro{'&immutable=1' if _is_at_rest(database) else ''}"
            with closing(sqlite3.connect(source, uri=True, timeout=_WAIT_SECONDS)) as original:
                original.backup(copy)
            copy.row_factory = sqlite3.Row
            # Text that is not UTF-8 becomes an event that is refused with its place, and the other rows are read.
            copy.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
            yield copy
    except sqlite3.Error as error:
        is_in_use = isinstance(error, sqlite3.OperationalError)
        advice = (
            "close the program that uses it, or copy the file"
            if is_in_use
            else "it is damaged: repair it, or remove it"
        )
        raise InvalidArgument(f"cannot read {database}: {error}; {advice}", path="PATH") from None


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _is_at_rest(database: Path) -> bool:
    """Whether a database in WAL mode has no log, so that no program has it open. Reading it would create a log."""
    with database.open("rb") as file:
        header = file.read(20)
    return header[18:20] == b"\2\2" and not Path(f"{database}-wal").exists()


def _rows(database: Path, tables: Tables, left_out: Mapping[str, str], into: Destination) -> Iterator[StoreRow]:
    with snapshot_of(database) as connection:
        yield from table_rows(connection, tables, into)
        yield from left_out_tables(connection, tables, left_out)


def left_out_tables(
    connection: sqlite3.Connection, known: Container[str], left_out: Mapping[str, str]
) -> Iterator[StoreRow]:
    """The tables that are not `known` and have rows, with the reason. Tables of search indexes are not named."""
    for (name,) in connection.execute(_TABLES).fetchall():
        if name in known or "_fts" in name or name.startswith("_"):
            continue
        (count,) = connection.execute(f"SELECT count(*) FROM {_quote(name)}").fetchone()
        if count:
            why = left_out.get(name, "a table that is not in the published schema")
            yield StoreRow(name, left_out=why, count=count)


def table_rows(connection: sqlite3.Connection, tables: Tables, into: Destination) -> Iterator[StoreRow]:
    """The rows of the tables that are there."""
    present = {name for (name,) in connection.execute(_TABLES)}
    for name in tables:
        if name not in present:
            continue
        keys = [each["name"] for each in connection.execute(f'PRAGMA table_info("{name}")') if each["pk"]]
        for number, row in enumerate(_rows_in_order(connection, name), 1):
            fields: Fields = dict(row)
            place = fields.get("id") or " ".join(str(fields[key]) for key in keys) or number
            yield map_row(f"{name} {place}", fields, tables[name], into)


def _rows_in_order(connection: sqlite3.Connection, name: str) -> sqlite3.Cursor:
    try:
        return connection.execute(f"SELECT * FROM {_quote(name)} ORDER BY rowid")
    except sqlite3.OperationalError:  # a table WITHOUT ROWID, which is in the order of its key
        return connection.execute(f"SELECT * FROM {_quote(name)}")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
