"""The parts of the file of the SQLite ledger besides its records: indexes, the table of spaces, free pages, the schema.

All of it follows from the records, or from this code. `find_problems` compares it with them, and `recompute` rebuilds
it without changing a record: new trees are built next to the damaged ones, and the schema then refers to the new ones.
"""

import sqlite3
from typing import NamedTuple

import msgspec

from recallog_projections.sqlite import integrity
from recallog_projections.sqlite.errors import Damaged, is_unsound
from recallog_projections.stores.checksums import is_intact
from recallog_streams.ledgers import sqlite_records as records
from recallog_streams.ledgers.ledger import LedgerPart, PartProblem


class _Index(NamedTuple):
    part: LedgerPart
    table: str
    columns: str
    """The columns of its entries, in their order."""


_INDEXES = {
    "sqlite_autoindex_events_1": _Index(LedgerPart.IDS, "events", "space, id, offset"),
    "events_of_space": _Index(LedgerPart.SPACE_INDEX, "events", "space, offset"),
    "sqlite_autoindex_spaces_1": _Index(LedgerPart.NAMES, "spaces", "name, number"),
}
_REPAIRED = {
    "spaces": "repaired_spaces",
    "sqlite_autoindex_spaces_1": "sqlite_autoindex_repaired_spaces_1",
    "sqlite_autoindex_events_1": "repaired_ids",
    "events_of_space": "repaired_space_index",
}
"""By the name of a tree: the temporary name of the one that replaces it."""
_ALL_RECORDS = "SELECT offset, space, id, value, crc, appended FROM events NOT INDEXED"
_UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, TypeError)
"""The errors of reading a damaged tree; the last one if columns have other types than they were written with."""


class _Named(msgspec.Struct):
    space: str


def find_problems(connection: sqlite3.Connection, schema: str) -> list[PartProblem]:
    """What is wrong, by part. For the records, only their tree is examined, not their values."""
    found = [
        PartProblem(LedgerPart.SCHEMA, f"the definition of {name} was changed")
        for name in integrity.schema_problems(connection, schema)
    ]
    structure = integrity.problems(connection)
    if structure:
        damaged = _damaged_records(connection)
        for name, index in _INDEXES.items():
            if reason := _index_problem(connection, name, index, damaged if index.table == "events" else frozenset()):
                found.append(PartProblem(index.part, reason))
    if reason := _spaces_problem(connection):
        found.append(PartProblem(LedgerPart.SPACES, reason))
    if structure and (reason := _search_problem(connection)):
        found.append(PartProblem(LedgerPart.RECORDS, reason))
    if structure and not found:
        of_free_pages = all("free" in each.lower() or "never used" in each for each in structure)
        found.append(PartProblem(LedgerPart.FREE_PAGES if of_free_pages else LedgerPart.RECORDS, structure[0]))
    return found


def _damage(error: Exception) -> Exception:
    """The error of a damaged tree. Raises an error of the disk, which says nothing about the file."""
    if isinstance(error, sqlite3.DatabaseError) and not is_unsound(error):
        raise error
    return error


def _damaged_records(connection: sqlite3.Connection) -> frozenset[int] | None:
    """The offsets of the records that fail their checksum; None if not all can be read."""
    try:
        rows = connection.execute(_ALL_RECORDS)
        return frozenset(offset for offset, *row in rows if not records.is_intact_record(offset, *row))
    except _UNREADABLE as error:
        _damage(error)
        return None


def _index_problem(connection: sqlite3.Connection, name: str, index: _Index, damaged: frozenset[int] | None) -> str:
    """What is wrong with an index; "" if it has the entries of its table in order.

    Rows that are `damaged` are left out: they are not a fault of the index. If they are not known (None),
    only the order is checked.
    """
    known = damaged or frozenset()
    count = total = 0
    before: tuple[object, ...] = ()
    try:
        sql = f"SELECT {index.columns} FROM {index.table} INDEXED BY {name} ORDER BY {index.columns}"
        for row in connection.execute(sql):
            if before and not before < row:
                return "its entries are not in order"
            before = row
            if row[-1] not in known:
                count, total = count + 1, total + hash(row)
    except _UNREADABLE as error:
        return f"it cannot be read: {_damage(error)}"
    if damaged is None:
        return ""
    try:
        rows = connection.execute(f"SELECT {index.columns} FROM {index.table} NOT INDEXED")
        expected = [hash(row) for row in rows if row[-1] not in known]
    except _UNREADABLE as error:
        _damage(error)
        return ""  # it is the table that is damaged
    return "" if (len(expected), sum(expected)) == (count, total) else "it has other entries than its table"


def _spaces_problem(connection: sqlite3.Connection) -> str:
    """What is wrong with the table of spaces; "" if it has the names in the records of each space."""
    found: dict[int, str] = {}
    try:
        for number, name, crc in connection.execute("SELECT number, name, crc FROM spaces NOT INDEXED"):
            if not is_intact(number, (name,), b"", crc):
                return f"the row of number {number} fails its checksum"
            found[number] = name
    except _UNREADABLE as error:
        return f"it cannot be read: {_damage(error)}"
    try:
        firsts = connection.execute("SELECT space, min(offset) FROM events GROUP BY space").fetchall()
        for number, first in firsts:
            sql = "SELECT space, id, value, crc, appended FROM events WHERE offset = ?"
            row = connection.execute(sql, (first,)).fetchone()
            # A record that is missing, damaged or of another space is a problem of its own, or one of an index.
            if row is not None and row[0] == number and records.is_intact_record(first, *row):
                name = msgspec.json.decode(row[2], type=_Named).space
                if found.get(number) != name:
                    return f"the row of number {number} is not {name!r}, as its records say"
    except _UNREADABLE as error:
        _damage(error)  # of a tree, which is a problem of its own
    return ""


def _search_problem(connection: sqlite3.Connection) -> str:
    """What is wrong with the tree of the records; "" if a search finds every record that a full read finds."""
    try:
        for (offset,) in connection.execute("SELECT offset FROM events NOT INDEXED").fetchall():
            if connection.execute("SELECT 1 FROM events WHERE offset = ?", (offset,)).fetchone() is None:
                return f"a search does not find the record at 0:{offset}"
    except _UNREADABLE as error:
        return f"it cannot be read: {_damage(error)}"
    return ""


def recompute(connection: sqlite3.Connection, schema: str) -> None:
    """Rebuild everything except the records, in the transaction of the caller, and make the schema refer to it.

    The connection must be closed after the commit, since it knows the former schema. The pages of the former
    trees are then unused until the file is rewritten (VACUUM).

    Raises `Damaged` if a record is damaged: an index may be the only place that still has its id.
    """
    names = _names(connection)
    connection.execute(
        "CREATE TABLE repaired_spaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, crc INTEGER NOT NULL)"
    )
    rows = [(number, name, records.space_checksum(number, name)) for number, name in sorted(names.items())]
    try:
        connection.executemany("INSERT INTO repaired_spaces VALUES (?, ?, ?)", rows)
        connection.execute("CREATE UNIQUE INDEX repaired_ids ON events (space, id)")
    except sqlite3.IntegrityError as error:
        raise Damaged("an id, or a space, was stored twice while its index was damaged") from error
    connection.execute("CREATE INDEX repaired_space_index ON events (space)")
    roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema").fetchall())
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("DELETE FROM sqlite_schema")
    for name, (kind, table, sql) in integrity.definitions_of(schema).items():
        root = roots[_REPAIRED.get(name, name)]
        connection.execute("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", (kind, name, table, root, sql))
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    connection.execute(f"PRAGMA schema_version={version + 1}")  # so that every connection reads the schema again


def _names(connection: sqlite3.Connection) -> dict[int, str]:
    """The name of each space, by number, as its first record says. Raises `Damaged` if a record is damaged."""
    names: dict[int, str] = {}
    for expected, (offset, space, *row) in enumerate(connection.execute(f"{_ALL_RECORDS} ORDER BY offset")):
        if offset != expected or not records.is_intact_record(offset, space, *row):
            raise Damaged(f"the record at 0:{expected} is damaged", position=f"0:{expected}")
        if space not in names:
            names[space] = msgspec.json.decode(row[1], type=_Named).space
    return names
