"""The check of a SQLite file as a whole: every page of every tree, the list of free pages, and the schema."""

import sqlite3
from contextlib import closing

from recallog_projections.sqlite.errors import is_damage

_PROBLEMS_MAX = 20
"""How many problems SQLite looks for. One is enough to know that the file is damaged."""


def find_problems(connection: sqlite3.Connection, schema: str) -> list[str]:
    """What is wrong with a file that was created with `schema`; empty if nothing is."""
    changed = schema_problems(connection, schema)
    return [*(f"the definition of {name} was changed" for name in changed), *problems(connection)]


def problems(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the structure of the file, in SQLite's words; empty if nothing is."""
    found: list[str] = []
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_PROBLEMS_MAX})"):
            found += [line for line in str(text).splitlines() if line != "ok" and not line.startswith("***")]
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        found.append(str(error))
    return found


def schema_problems(connection: sqlite3.Connection, schema: str) -> list[str]:
    """The tables and indexes whose definition is not the one of `schema`; empty if all are as they were created."""
    expected, found = (
        {name: (kind, table, "".join(str(sql).split())) for name, (kind, table, sql) in definitions.items()}
        for definitions in (definitions_of(schema), _definitions(connection))
    )
    return sorted(str(name) for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))


def definitions_of(schema: str) -> dict[str, tuple[str, str, str | None]]:
    """By name, in the order of their creation: the kind, the table and the statement of what `schema` creates."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(schema)
        return _definitions(fresh)


def _definitions(connection: sqlite3.Connection) -> dict[str, tuple[str, str, str | None]]:
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_schema ORDER BY rowid").fetchall()
    return {name: (kind, table, sql) for name, kind, table, sql in rows}
