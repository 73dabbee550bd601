"""Ledgers as version 1 of the format wrote them."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from recallog_schemas import Event, codec

SCHEMA = """
    PRAGMA journal_mode=WAL;
    PRAGMA application_id=1382239335;
    PRAGMA user_version=1;
    CREATE TABLE manifest (id TEXT NOT NULL);
    INSERT INTO manifest VALUES ('0123456789abcdef0123456789abcdef');
    CREATE TABLE spaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE events (
        offset INTEGER PRIMARY KEY, space INTEGER NOT NULL, id TEXT NOT NULL, value BLOB NOT NULL, UNIQUE (space, id)
    );
    CREATE INDEX events_of_space ON events (space);
"""
MANIFEST = "sqlite:0123456789abcdef0123456789abcdef"


def write(path: Path, events: Iterable[Event]) -> None:
    """Write a ledger of version 1 with `events`."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("BEGIN")
        numbers: dict[str, int] = {}
        for offset, event in enumerate(events):
            if event.space not in numbers:
                numbers[event.space] = len(numbers) + 1
                connection.execute("INSERT INTO spaces VALUES (?, ?)", (numbers[event.space], event.space))
            row = (offset, numbers[event.space], event.id, codec.encode(event))
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?)", row)
        connection.execute("COMMIT")
