"""Changes of a ledger's file behind Recallog's back, as somebody with SQLite can make them."""

import sqlite3
from contextlib import closing
from pathlib import Path

from recallog_streams.ledgers.sqlite_records import event_checksum


def alter_record(ledger: Path, offset: int, before: bytes, after: bytes, *, checksum: bool = True) -> None:
    """Replace `before` by `after` in the value of one record; with `checksum` correct its checksum too."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        sql = "SELECT space, id, value, crc, appended FROM events WHERE offset = ?"
        space, id_, value, crc, appended = connection.execute(sql, (offset,)).fetchone()
        assert before in value
        value = value.replace(before, after, 1)
        crc = event_checksum(offset, space, id_, value, appended) if checksum else crc
        connection.execute("UPDATE events SET value = ?, crc = ? WHERE offset = ?", (value, crc, offset))


def damage_row(views: Path, table: str) -> tuple[str, str, str]:
    """Change the value of the first row of a table of views, not its checksum; the row's space, owner and key."""
    with closing(sqlite3.connect(views)) as connection, connection:
        sql = "SELECT space, owner, key, value FROM rows WHERE name = ? ORDER BY space, owner, key LIMIT 1"
        *address, value = connection.execute(sql, (table,)).fetchone()
        changed = value[:-1] + bytes([value[-1] ^ 1])
        connection.execute(
            "UPDATE rows SET value = ? WHERE (name, space, owner, key) = (?, ?, ?, ?)", (changed, table, *address)
        )
    space, owner, key = address
    return space, owner, key


def damage_segment(views: Path, log: str) -> tuple[str, str]:
    """Change a byte of the last segment of a log, not its checksum; the log's space and owner."""
    with closing(sqlite3.connect(views)) as connection, connection:
        sql = (
            "SELECT l.space, l.owner, s.slot, s.entries FROM segments s JOIN logs l ON s.slot >> 32 = l.number "
            "WHERE l.name = ? ORDER BY s.slot DESC LIMIT 1"
        )
        space, owner, slot, entries = connection.execute(sql, (log,)).fetchone()
        changed = entries[:-1] + bytes([entries[-1] ^ 1])
        connection.execute("UPDATE segments SET entries = ? WHERE slot = ?", (changed, slot))
    return space, owner


def lose_row(views: Path, table: str) -> tuple[str, str, str]:
    """Delete the first row of a table of views; its space, owner and key."""
    with closing(sqlite3.connect(views)) as connection, connection:
        sql = "SELECT space, owner, key FROM rows WHERE name = ? ORDER BY space, owner, key LIMIT 1"
        space, owner, key = connection.execute(sql, (table,)).fetchone()
        connection.execute(
            "DELETE FROM rows WHERE (name, space, owner, key) = (?, ?, ?, ?)", (table, space, owner, key)
        )
    return space, owner, key


def delete_records(ledger: Path, first: int, last: int) -> None:
    """Delete the records from the offset `first` to `last`."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("DELETE FROM events WHERE offset BETWEEN ? AND ?", (first, last))


def plant_record(ledger: Path, data: bytes, id_: str | None = None, *, space: str = "village") -> int:
    """Append a record with any value, and return its offset; the default of `id_` is `planted-` and the offset."""
    with closing(sqlite3.connect(ledger)) as connection, connection:
        (offset,) = connection.execute("SELECT coalesce(max(offset) + 1, 0) FROM events").fetchone()
        (number,) = connection.execute("SELECT number FROM spaces WHERE name = ?", (space,)).fetchone()
        id_ = id_ or f"planted-{offset}"
        row = (offset, number, id_, data, event_checksum(offset, number, id_, data, 0), 0)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
    return int(offset)


def garbage_in_rows(views: Path) -> None:
    """Overwrite the root page of the table `rows` in a views file that no process has open."""
    with closing(sqlite3.connect(views)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rows'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with views.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
