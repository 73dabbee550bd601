"""Ledgers as the versions 1 and 2 of the format wrote them: without checksums, and without times."""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from recallog_schemas import Event, codec
from recallog_streams.ledgers.sqlite_records import event_checksum, space_checksum

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
CHECKSUMS = """
    PRAGMA user_version=2;
    ALTER TABLE manifest ADD COLUMN copy TEXT NOT NULL DEFAULT '';
    UPDATE manifest SET copy = id;
    ALTER TABLE spaces ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE events ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
"""
MANIFEST = "sqlite:0123456789abcdef0123456789abcdef"


def write(path: Path, events: Iterable[Event], version: int = 1) -> None:
    """Write a ledger of an old version with `events`."""
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
        if version == 2:
            connection.executescript(CHECKSUMS)
            connection.create_function("event_checksum", 5, event_checksum)
            connection.create_function("space_checksum", 2, space_checksum)
            connection.execute("UPDATE spaces SET crc = space_checksum(number, name)")
            connection.execute("UPDATE events SET crc = event_checksum(offset, space, id, value, 0)")
