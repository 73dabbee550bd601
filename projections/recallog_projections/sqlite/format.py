"""The kinds of SQLite files, and the checks of a file that is opened."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from recallog_projections.sqlite.errors import FileErrors


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The identification and the settings of one kind of file."""

    what: str
    """The name in messages, for example "ledger"."""
    application_id: int
    version: int
    schema: str
    remedy: str
    """What to do about a damaged file, for messages."""
    synchronous: str
    repair: str = ""
    """What to do first, for messages about damage outside of records."""
    salvage: str = ""
    """What else can be done if records of it cannot be read, for messages."""
    disposable: bool = False
    """Whether the content can be computed again. Older versions and leftovers of deleted files are then deleted."""
    upgrade: Callable[[sqlite3.Connection, int], None] | None = None
    """Changes a file of an older version, which is given, into one of `version`. It runs in one transaction, which also
    sets the version. None: files of older versions are refused. Not used if `disposable`."""
    identity: str = ""
    """A query whose row is unique to each file. A process does not accept another file in place of one it had open."""

    def errors(self, path: Path) -> FileErrors:
        """The errors about a file of this format."""
        return FileErrors(self.what, path, self.remedy, self.repair, self.salvage, disposable=self.disposable)


def check_not_empty(path: Path, errors: FileErrors) -> None:
    """Refuse an empty file, which SQLite would take for a new one."""
    if path.stat().st_size == 0:
        raise errors.empty()


def check_whole(path: Path, connection: sqlite3.Connection, errors: FileErrors) -> None:
    """Refuse a truncated file: SQLite accepts one whose last page is incomplete.

    The file must not be opened except by SQLite: closing it would drop the POSIX locks of all connections of this
    process to it, and another process could then delete the write-ahead log that they use.
    """
    try:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_NOTADB:
            raise errors.foreign() from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise errors.make_truncated() from error
        raise
    log = Path(f"{path}-wal")  # its pages are counted, but are not in the file yet
    if path.stat().st_size < pages * page_bytes and not (log.exists() and log.stat().st_size):
        raise errors.make_truncated()


def is_older(format: FileFormat, connection: sqlite3.Connection, errors: FileErrors) -> bool:  # noqa: A002
    """Whether the file has an older format. Raises `StorageForeign` or `StorageTooNew` if this code cannot use it."""
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id != format.application_id:
        raise errors.foreign()
    if version > format.version:
        raise errors.too_new(version, format.version)
    if version < format.version and not format.disposable and format.upgrade is None:
        raise errors.too_old(version, format.version)
    return bool(version < format.version)


def upgrade(format: FileFormat, connection: sqlite3.Connection, errors: FileErrors) -> None:  # noqa: A002
    """Upgrade a file of an older version in one transaction, unless another process has done so meanwhile."""
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version < format.version and format.upgrade is not None:
            format.upgrade(connection, version)
            connection.execute(f"PRAGMA user_version={format.version}")
        commit(connection, errors)
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    with suppress(sqlite3.Error):  # its write-ahead log is as large as the file
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def commit(connection: sqlite3.Connection, errors: FileErrors) -> None:
    """Commit, or raise `UnknownOutcome` if the disk failed in it."""
    try:
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_IOERR_FSYNC:
            raise
        # The whole transaction is in the log; the next process that opens the file may find it committed.
        raise errors.unknown(f"the disk failed while it was being written ({error}). Check the disk") from error
