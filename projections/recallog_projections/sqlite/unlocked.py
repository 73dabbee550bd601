"""Reading a SQLite file without writing anything and without locks, where it cannot be opened as usual.

SQLite creates the `-wal` and the `-shm` of a file that nobody has open. That fails in a read-only folder and on a full
disk. So the file is read without them, and file and `-wal` are compared before and after each transaction: inode, size
and time of modification. A write changes the `-wal` before it changes the file.
"""

import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from recallog_projections import file_errors
from recallog_projections.notices import warn_once
from recallog_projections.sqlite.connecting import connect
from recallog_projections.sqlite.errors import FileErrors
from recallog_projections.sqlite.format import FileFormat, check_whole, is_older, upgrade
from recallog_projections.sqlite.moved import FileMoved
from recallog_projections.sqlite.write_ahead_log import WriteAheadLog, status

Result = TypeVar("Result")

_Stamp = tuple[int, int, int]
"""Inode, size, and time of modification in nanoseconds: a written file has another one."""

_CLOCK_TICK_NANOSECONDS = 20_000_000
"""Two writes that are this far apart have different times of modification."""
_NOT_WRITTEN = {
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
}


def needs_writing(error: Exception) -> bool:
    """Whether a file could not be opened because something had to be written for it, for example its `-shm`."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, OSError) or (code & 0xFF in _NOT_WRITTEN and code != sqlite3.SQLITE_IOERR_SHORT_READ)


class UnlockedFile:
    """An open file that is only read."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        stamps: tuple[_Stamp | None, _Stamp | None],
        copy: tempfile.TemporaryDirectory[str] | None,
    ) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._path = path
        self._stamps = stamps
        self._copy = copy

    @classmethod
    def open(
        cls,
        path: Path,
        format: FileFormat,  # noqa: A002
        log: WriteAheadLog,
        accept: Callable[[sqlite3.Connection], None],
        cause: Exception,
    ) -> Self:
        """Open the file, which could not be opened as usual because of `cause`. `accept` may refuse its content.

        Without a `-wal` SQLite reads the file alone (`immutable`). Otherwise it keeps the index of the `-wal` in
        memory, as for an exclusive lock. A file of an older format is upgraded in a copy.

        Raises `cause` if that is not possible either, and `Moved` if the file changes meanwhile.
        """
        errors = format.errors(path)
        stamps = _stamps(path)
        if time.time_ns() - max(stamp[2] for stamp in stamps if stamp is not None) < _CLOCK_TICK_NANOSECONDS:
            time.sleep(_CLOCK_TICK_NANOSECONDS / 1e9)  # the next write has another time
        if log.lost_frames():
            raise cause if format.disposable else errors.log_gone()
        copy = None
        try:
            connection = connect(path, "ro&vfs=unix-none" if log.log_bytes() else "ro&immutable=1", 0)
            try:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                check_whole(path, connection, errors)
                if is_older(format, connection, errors):
                    if format.disposable:
                        raise cause
                    connection.close()
                    copy = _copy_file(path, errors)
                    connection = connect(Path(copy.name) / path.name, "rw", 0)
                    upgrade(format, connection, errors)
                accept(connection)
                connection.execute("PRAGMA cache_size=-16384")
                if _stamps(path) != stamps:
                    raise FileMoved
            except BaseException:
                connection.close()
                if copy is not None:
                    copy.cleanup()
                raise
        except (sqlite3.OperationalError, OSError):
            raise cause from None
        warn_once(
            "storage",
            ("read without writing", str(path.parent)),
            f"{path.parent} cannot be written ({file_errors.why_not_writable(path.parent) or cause}): its files are "
            "read as they are, and publishing fails",
        )
        return cls(connection, path, stamps, copy)

    @property
    def is_closed(self) -> bool:
        return self._connection is None

    def run(self, work: Callable[[sqlite3.Connection], Result], *, write: bool) -> Result:
        """The result of `work`, which does not write.

        Raises `Moved`, and closes the file, if another process has written to it since it was opened.
        """
        connection = self._connection
        if write or connection is None:
            self.close()  # perhaps it can be written by now
            raise FileMoved
        connection.execute("BEGIN")
        try:
            result = work(connection)
        except sqlite3.Error as error:
            self._check_unchanged(error)
            raise
        finally:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        self._check_unchanged()
        return result

    def _check_unchanged(self, cause: Exception | None = None) -> None:
        if _stamps(self._path) != self._stamps:
            self.close()
            raise FileMoved from cause

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if self._copy is not None:
            self._copy.cleanup()


def _copy_file(path: Path, errors: FileErrors) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder with a copy of the file and its `-wal`."""
    present = [Path(f"{path}{ending}") for ending in ("", "-wal") if Path(f"{path}{ending}").exists()]
    size_bytes = sum(file.stat().st_size for file in present)
    folder = tempfile.TemporaryDirectory(prefix="recallog-", ignore_cleanup_errors=True)
    try:
        if shutil.disk_usage(folder.name).free < 2 * size_bytes:
            raise errors.no_space_to_upgrade(folder.name, size_bytes)
        for file in present:
            shutil.copyfile(file, Path(folder.name) / file.name)
    except BaseException:
        folder.cleanup()
        raise
    return folder


def _stamps(path: Path) -> tuple[_Stamp | None, _Stamp | None]:
    """The stamps of the file and its `-wal`; None for one that does not exist, or an empty `-wal`."""
    log = _stamp(f"{path}-wal")
    return _stamp(str(path)), log if log is not None and log[1] else None


def _stamp(path: str) -> _Stamp | None:
    found = status(path)
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)
