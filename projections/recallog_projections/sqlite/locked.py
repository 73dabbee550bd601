"""An open SQLite file with its write-ahead log, used with SQLite's locks.

SQLite notices neither that the file was replaced nor that its log was deleted. Both are looked for in each transaction:
before anything is written, after the commit and before the caller gets the result, and after each read.
"""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn, Self, TypeVar

from recallog_projections.notices import warn_once
from recallog_projections.sqlite.connecting import PAGE_BYTES, connect, set_wait
from recallog_projections.sqlite.creating import create
from recallog_projections.sqlite.format import FileFormat, check_whole, commit, is_older, upgrade
from recallog_projections.sqlite.moved import FileMoved
from recallog_projections.sqlite.write_ahead_log import WriteAheadLog, inode_of, status
from recallog_projections.syncing import sync_names
from recallog_schemas.errors import RecallogError

Result = TypeVar("Result")

_POLL_SECONDS = 0.005
_FOLDER_TICK_NANOSECONDS = 3_000_000_000
"""More than the unit of a folder's time of modification in any file system (FAT: 2 s)."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long to wait for locks of other processes."""

    write_seconds: float
    read_seconds: float


class _Rescue(Enum):
    """What became of a deleted log."""

    EMPTIED = "its content is in the file, and it is empty"
    MOVED = "its content is in the file, but others still read it"
    LEFT = "other processes have gone on without it"


class LockedFile:
    """One connection. Each method either leaves it usable or closes it."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path,
        format: FileFormat,  # noqa: A002
        log: WriteAheadLog,
        inode: int,
        waits: Waits,
    ) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._path = path
        self._name, self._folder = str(path), str(path.parent)
        self._what = format.what
        self._errors = format.errors(path)
        self._log = log
        self._inode = inode
        self._log_inodes = log.inodes()
        self._waits = waits
        self._names_are_safe = format.disposable
        self._unchanged: tuple[int, int] | None = None
        """Inode and time of modification of the folder while the files in it were in place."""

    @classmethod
    def open(
        cls,
        path: Path,
        format: FileFormat,  # noqa: A002
        log: WriteAheadLog,
        accept: Callable[[sqlite3.Connection], None],
        waits: Waits,
        wait_seconds: float,
        inode: int,
    ) -> Self:
        """Open the file whose inode was `inode` a moment ago. `accept` may refuse its content.

        Waits `wait_seconds` for locks. Raises `Moved` if it was replaced by a new one, because it was an older one
        or had lost its log and can be computed again.
        """
        errors = format.errors(path)
        if _has_lost_log(path, format, log, wait_seconds):
            if not format.disposable:
                raise errors.log_gone()
            create(path, format, waits.write_seconds, instead_of=inode)
            raise FileMoved
        connection = connect(path, "rw", wait_seconds)
        try:
            _check_log_is_shared(path, format, log, connection, wait_seconds)
            check_whole(path, connection, errors)
            if is_older(format, connection, errors):
                if format.disposable:
                    # The old file is still open here, so that no other process is the last to close it: that one would
                    # delete the write-ahead log by its name, which may be that of the new file.
                    create(path, format, waits.write_seconds, instead_of=inode)
                    raise FileMoved
                upgrade(format, connection, errors)
            accept(connection)
            # 16 MiB of pages are cached, and the log is moved into the file every 16 MiB, so that pages which many
            # batches change are written once. No memory mapping: if another process truncates the file, it crashes.
            connection.execute(f"PRAGMA synchronous={format.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // PAGE_BYTES}")
            set_wait(connection, waits.write_seconds)
        except BaseException:
            connection.close()
            raise
        opened = cls(connection, path, format, log, inode, waits)
        if None in opened._log_inodes:  # deleted since the first statement opened them
            opened._renew()
        return opened

    @property
    def is_closed(self) -> bool:
        return self._connection is None

    def run(self, work: Callable[[sqlite3.Connection], Result], *, write: bool) -> Result:
        """The result of `work` in one transaction.

        Raises `StorageReplaced` if the file is no longer in place, `Moved` if its log was and is now in the file, and
        `UnknownOutcome` if either was found after the commit and the log could not be moved into the file.
        """
        connection = self._connection
        if connection is None:
            raise FileMoved
        try:
            if write and not self._names_are_safe:
                # SQLite syncs the names of its files, and never those of the folders that were made for them.
                sync_names(self._path.parent)
                self._names_are_safe = True
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if write and not self._is_in_place():  # a writer that holds the lock waits for no other one
                raise FileMoved
            result = work(connection)
            if write:
                commit(connection, self._errors)
            else:
                connection.execute("ROLLBACK")  # a COMMIT fails after any statement that found a damaged page
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, Exception) and not self._is_in_place():
                self._check_file_in_place()
                self._renew()
            raise
        if not self._is_in_place():
            if write:
                self._confirm()
            else:
                self._check_what_was_read()
        return result

    def rewrite(self) -> None:
        """Rewrite the file. SQLite does it in one transaction, which takes the lock of writers."""
        if self._connection is None or not self._is_in_place():
            raise FileMoved
        self._connection.execute("VACUUM")
        if not self._is_in_place():
            self._confirm()

    def empty_log(self) -> bool:
        """Move the log into the file, and empty it, unless others use it for longer than a write waits."""
        if self._connection is None or not self._is_in_place():
            return False
        _, emptied = _checkpoint_log(self._connection, self._waits.write_seconds)
        set_wait(self._connection, self._waits.write_seconds)
        return emptied

    def finish(self) -> None:
        """Close the file for good. A deleted log is moved into the file first, as far as that is possible."""
        if self._connection is not None and inode_of(self._name) == self._inode:
            with suppress(RecallogError, sqlite3.Error, OSError):
                if not self._log.is_in_place(self._log_inodes):
                    self._rescue(self._connection)
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _is_in_place(self) -> bool:
        """Whether the file, its `-wal` and its `-shm` are those that are open.

        Deleting, renaming and creating files changes the time of their folder. It is compared where possible: one look
        instead of three. A time that has just passed may also be that of a later change.
        """
        folder = status(self._folder)
        stamp = None if folder is None else (folder.st_ino, folder.st_mtime_ns)
        if stamp is not None and stamp == self._unchanged:
            return True
        in_place = inode_of(self._name) == self._inode and self._log.is_in_place(self._log_inodes)
        old = stamp is not None and time.time_ns() - stamp[1] > _FOLDER_TICK_NANOSECONDS
        self._unchanged = stamp if in_place and old else None
        return in_place

    def _check_file_in_place(self) -> None:
        """Refuse to use a file that was deleted while it was open: its writes would be lost with the process."""
        if inode_of(self._name) != self._inode:
            self.close()
            raise self._errors.make_replaced()

    def _check_what_was_read(self) -> None:
        """Make sure that it is what the file in place holds. Raises `Moved` if it must be read again."""
        self._check_file_in_place()
        try:
            self._renew()
        except (RecallogError, sqlite3.Error, OSError):
            # It cannot be saved now, for example because the disk is full. It is whole as long as nobody else writes.
            if self._connection is None or not self._log.was_left_by(self._log_inodes):
                raise

    def _confirm(self) -> None:
        """Make sure of a commit after which the file or its log is no longer in place. Raises `UnknownOutcome`."""
        try:
            self._check_file_in_place()
            if self._connection is None or self._rescue(self._connection) is not _Rescue.LEFT:
                return
        except (RecallogError, sqlite3.Error, OSError) as error:
            raise self._errors.unknown(f"it was deleted or replaced while it was being written ({error})") from error
        raise self._errors.unknown("its -wal was replaced while it was being written")

    def _renew(self) -> NoReturn:
        """Raise `Moved` once what a deleted log holds is in the file, or `LockTimeout`."""
        if self._connection is not None and self._rescue(self._connection) is _Rescue.MOVED:
            raise self._errors.make_held(self._waits.read_seconds)
        raise FileMoved

    def _rescue(self, connection: sqlite3.Connection) -> _Rescue:
        """Move what a deleted log holds into the file, and close the connection unless others still read that log.

        The connection has the deleted `-wal` and `-shm` open, and SQLite reads them through it.
        """
        if not self._log.was_left_by(self._log_inodes):
            # Others have gone on with another log: what this connection has open must not reach the file any more.
            # Another one is open while it is closed, so that SQLite neither writes it back nor deletes the other log.
            with suppress(sqlite3.Error), closing(connect(self._path, "rw", self._waits.read_seconds)) as other:
                other.execute("PRAGMA schema_version").fetchone()
                self.close()
            self.close()
            outcome = _Rescue.LEFT
        else:
            moved, emptied = _checkpoint_log(connection, self._waits.read_seconds)
            set_wait(connection, self._waits.write_seconds)
            if not moved:
                raise self._errors.make_held(self._waits.read_seconds)
            outcome = _Rescue.EMPTIED if emptied else _Rescue.MOVED
            if emptied:
                self._log.put_aside_another(self._log_inodes)
                self.close()
        left = outcome is _Rescue.LEFT
        goes_on = "Another process goes on with it" if left else "Nothing is lost: it was written back"
        warn_once(
            "storage",
            ("log deleted", self._name),
            f"the -wal or -shm of the {self._what} {self._path} was deleted while it was open. {goes_on}. Delete these "
            "files only together with the one that they belong to",
        )
        return outcome


def _has_lost_log(path: Path, format: FileFormat, log: WriteAheadLog, wait_seconds: float) -> bool:  # noqa: A002
    """Whether the `-wal` is gone, and with it commits that no process has open.

    Raises `LockTimeout` if another process has the file open without its `-shm`: a connection would see another log
    than that process, and both would damage the file.
    """
    give_up = time.monotonic() + wait_seconds
    while not log.index_bytes():
        # It is created by the first process that opens the file and deleted by the last one that closes it.
        if log.is_alone() is not False:
            return False
        if time.monotonic() > give_up:
            raise format.errors(path).opened_without("-shm")
        time.sleep(_POLL_SECONDS)
    return bool(log.log_bytes() == 0 and log.is_alone() and log.lost_frames())


def _check_log_is_shared(
    path: Path,
    format: FileFormat,  # noqa: A002
    log: WriteAheadLog,
    connection: sqlite3.Connection,
    wait_seconds: float,
) -> None:
    """Refuse a new, empty `-wal` whose `-shm` counts what another process has in a deleted one."""
    if log.log_bytes() or not log.index_bytes():
        return
    try:
        _, emptied = _checkpoint_log(connection, wait_seconds)
    except sqlite3.DatabaseError as error:  # any other is found next
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHORT_READ:
            raise format.errors(path).opened_without("-wal") from error
        return
    if not emptied and not log.log_bytes():
        raise format.errors(path).make_held(wait_seconds)


def _checkpoint_log(connection: sqlite3.Connection, wait_seconds: float) -> tuple[bool, bool]:
    """Move the whole log into the file and empty it. Returns whether it was moved, and whether it was emptied.

    Readers and writers of other processes can prevent either.
    """
    give_up = time.monotonic() + wait_seconds
    set_wait(connection, wait_seconds)
    mode = "PASSIVE"  # waits for no writer
    while True:
        _, frames, copied = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        if frames == 0 or time.monotonic() > give_up:
            return frames == copied >= 0, frames == 0
        if frames > 0:
            mode = "TRUNCATE"
        else:
            time.sleep(_POLL_SECONDS)
