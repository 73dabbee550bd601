"""Connections to a SQLite file."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

PAGE_BYTES = 4096


def connect(path: Path, mode: str, wait_seconds: float) -> sqlite3.Connection:
    """A connection that waits `wait_seconds` for locks. Its transactions are begun and ended by statements.

    `mode` is that of SQLite's URIs; further parameters may follow. "rw" does not create a file that was just deleted.
    """
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )


def set_wait(connection: sqlite3.Connection, seconds: float) -> None:
    """Set how long the connection waits for locks."""
    connection.execute(f"PRAGMA busy_timeout={round(1000 * seconds)}")
