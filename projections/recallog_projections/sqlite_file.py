"""A SQLite file that several processes share: created atomically, checked when opened, with errors of Recallog.

The ledger and the views of a folder are two such files. Each connection has a thread of its own, so that the event loop
never waits for the disk.
"""

import asyncio
import logging
import os
import secrets
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import quote

from recallog_projections import file_errors
from recallog_projections.notices import warn_once
from recallog_projections.sqlite_log import LogInodes, WriteAheadLog, status
from recallog_projections.threads import run_last
from recallog_schemas import limits
from recallog_schemas.errors import (
    LockTimeout,
    RecallogError,
    StorageCorrupt,
    StorageError,
    StorageForeign,
    StorageReplaced,
    StorageTooNew,
    StorageUnavailable,
    UnknownOutcome,
)

Result = TypeVar("Result")

_Stamp = tuple[int, int, int]
"""Inode, size, and time of modification in nanoseconds: a written file has another one."""

_logger = logging.getLogger("recallog.storage")

_PAGE_BYTES = 4096
_NOT_WRITTEN = {
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM),
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
}
_TRIES = 5
"""How often a transaction is tried whose file, or write-ahead log, is replaced or written meanwhile."""
_POLL_SECONDS = 0.005
_FOLDER_TICK_NANOSECONDS = 3_000_000_000
"""More than the unit of a folder's time of modification in any file system (FAT: 2 s)."""
_CLOCK_TICK_NANOSECONDS = 20_000_000
"""Two writes that are this far apart have different times of modification."""
_ANOTHER_FOLDER = "Name another folder with --home or RECALLOG_HOME"
_UNSOUND = {
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR),
    *(sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG),
}
"""Codes of errors that statements raise only in a damaged file: a table is missing, or an index has other keys."""


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
    disposable: bool = False
    """Whether the content can be computed again. Older versions and leftovers of deleted files are then deleted."""
    upgrade: Callable[[sqlite3.Connection, int], None] | None = None
    """Changes a file of an older version, which is given, into one of `version`. It runs in one transaction, which also
    sets the version. None: files of older versions are refused. Not used if `disposable`."""
    identity: str = ""
    """A query whose row is unique to each file. A process does not accept another file in place of one it had open."""


class Damaged(Exception):
    """Raised by the `work` of `SqliteFile.run` for content that fails its checksum: `run` raises `StorageCorrupt`.

    The message names the content; `position` and `until` are those of `StorageCorrupt`.
    """

    def __init__(self, what: str, *, position: str = "", until: int | None = None) -> None:
        super().__init__(what)
        self.position = position
        self.until = until


class _Passing(Exception):
    """An error of Recallog that `work` raised. It may be about another file, and must not count as one of this file."""

    def __init__(self, error: RecallogError) -> None:
        self.error = error


class _LogLost(Exception):
    """The `-wal` is gone, and with it commits that no process has in memory any more."""


class _Rescue(Enum):
    """What became of a deleted log."""

    EMPTIED = "its content is in the file, and it is empty"
    MOVED = "its content is in the file, but others still read it"
    LEFT = "other processes have gone on without it"


class _Moved(Exception):
    """The file or its write-ahead log changed in a way that needs a new connection; nothing was written."""


class SqliteFile:
    """A file of one `FileFormat`, opened by the first call of `run`.

    Where nothing can be written (a read-only folder, a full disk) it is read without locks, with its `-wal`, whose
    index SQLite then keeps in memory. Instead, file and `-wal` are compared before and after each transaction.
    """

    def __init__(
        self,
        path: Path,
        format: FileFormat,  # noqa: A002
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        deadline_seconds: float | None = None,
    ) -> None:
        """A read waits `deadline_seconds` for a lock (default: like a write), a write `lock_wait_seconds`."""
        self.path = path
        self._name = str(path)
        self._folder = str(path.parent)
        self._unchanged: tuple[int, int] | None = None
        """Inode and time of modification of the folder while the files in it were in place."""
        self._format = format
        self._lock_wait_seconds = lock_wait_seconds
        self._deadline_seconds = lock_wait_seconds if deadline_seconds is None else deadline_seconds
        self._connection: sqlite3.Connection | None = None
        self._log = WriteAheadLog(path)
        self._opened = LogInodes(None, None)
        self._unlocked: tuple[_Stamp | None, _Stamp | None] | None = None
        """The stamps of file and `-wal` if they are read without locks."""
        self._impatient_until = 0.0
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._inode = -1
        self._identity: object = None
        self._closed = False
        self._in_use = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"recallog-{format.what}")

    async def run(
        self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False, keep_damaged: bool = False
    ) -> Result:
        """Run `work` in one transaction and return its result.

        A damaged file of a disposable format is replaced by a new one, and `work` runs again, unless `keep_damaged`.

        Raises `StorageError`, and then nothing was written, or `UnknownOutcome`.
        """
        if self._closed:
            raise StorageError(f"the memory is closed, and with it the {self._format.what} {self.path}; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work, write, keep_damaged)

    def run_here(self, work: Callable[[sqlite3.Connection], Result]) -> Result | None:
        """`run` for a read, in the calling thread; None while another thread uses the file, and once it is closed."""
        if not self._in_use.acquire(blocking=False):
            return None
        try:
            return None if self._closed else self._transaction(work, write=False)
        except _Passing as passing:
            raise passing.error from None
        finally:
            self._in_use.release()

    async def close(self) -> None:
        """Close the file; later calls of `run` raise `StorageError`."""
        if self._closed:
            return
        self._closed = True
        await run_last(self._thread, self._finish)

    async def size_bytes(self) -> int:
        """The size of the file and its write-ahead log."""
        return await asyncio.to_thread(self._size_bytes)

    def _size_bytes(self) -> int:
        return sum(path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists())

    def _run(self, work: Callable[[sqlite3.Connection], Result], write: bool, keep_damaged: bool) -> Result:
        with self._in_use:
            try:
                try:
                    return self._transaction(work, write)
                except (StorageCorrupt, StorageForeign) as damage:
                    if keep_damaged or not self._format.disposable:
                        raise
                    self._discard(damage)
                return self._transaction(work, write)
            except _Passing as passing:
                raise passing.error from None

    def _transaction(self, work: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        with self._translated_errors():
            for _ in range(_TRIES):
                with suppress(_Moved):
                    if self._unlocked is not None and write:
                        self._close()  # perhaps it can be written by now
                    connection = self._connection or self._open(write)
                    if self._unlocked is None:
                        return self._locked(connection, work, write)
                    if write:
                        raise self._read_only()
                    return self._read_unlocked(connection, work)
            raise StorageUnavailable(f"the {self._format.what} {self.path} changes while it is read; try again")

    def _locked(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result], write: bool
    ) -> Result:
        """The result of `work` in one transaction. Raises `_Moved` if a deleted log had to be moved into the file."""
        try:
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            if write and not self._is_in_place():  # a writer that holds the lock waits for no other one
                raise _Moved
            result = _result(work, connection)
            if write:
                self._commit(connection)
            elif connection.in_transaction:
                # A COMMIT fails after any statement that found a damaged page; after an I/O error that `work` went on
                # from, SQLite may have rolled back itself.
                connection.execute("ROLLBACK")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            if isinstance(error, Exception) and not self._is_in_place():
                self._check_in_place()
                self._renew()
            raise
        if not self._is_in_place():
            if write:
                self._confirm()
            else:
                self._check_what_was_read()
        return result

    def _read_unlocked(self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """The result of `work`. Raises `_Moved` if another process wrote to the file meanwhile, or since it was opened.

        A write changes the `-wal` before it changes the file.
        """
        connection.execute("BEGIN")
        try:
            result = _result(work, connection)
        except sqlite3.Error as error:
            self._check_unchanged(error)
            raise
        finally:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        self._check_unchanged()
        return result

    def _check_unchanged(self, cause: Exception | None = None) -> None:
        if self._stamps() != self._unlocked:
            self._close()
            raise _Moved from cause

    def _is_in_place(self) -> bool:
        """Whether the file, its `-wal` and its `-shm` are those that are open.

        Deleting, renaming and creating files changes the time of their folder. It is compared where possible: one look
        instead of three. A time that has just passed may also be that of a later change.
        """
        folder = status(self._folder)
        stamp = None if folder is None else (folder.st_ino, folder.st_mtime_ns)
        if stamp is not None and stamp == self._unchanged:
            return True
        in_place = self._inode_in_place() == self._inode and self._log.is_in_place(self._opened)
        old = stamp is not None and time.time_ns() - stamp[1] > _FOLDER_TICK_NANOSECONDS
        self._unchanged = stamp if in_place and old else None
        return in_place

    def _check_what_was_read(self) -> None:
        """Make sure that it is what the file in place holds. Raises `_Moved` if it must be read again."""
        self._check_in_place()
        try:
            self._renew()
        except (RecallogError, sqlite3.Error, OSError):
            # It cannot be saved now, for example because the disk is full. It is whole as long as nobody else writes.
            if self._connection is None or not self._log.was_left_by(self._opened):
                raise

    def _confirm(self) -> None:
        """Make sure of a commit after which the file or its log is no longer in place. Raises `UnknownOutcome`."""
        try:
            self._check_in_place()
            if self._rescue() is not _Rescue.LEFT:
                return
        except (RecallogError, sqlite3.Error, OSError) as error:
            raise self._unknown(f"it was deleted or replaced while it was being written ({error})") from error
        raise self._unknown("its -wal was replaced while it was being written")

    def _renew(self) -> NoReturn:
        """Raise `_Moved` once what a deleted log holds is in the file, or `LockTimeout`."""
        if self._rescue() is _Rescue.MOVED:
            raise self._held()
        raise _Moved

    def _rescue(self) -> "_Rescue":
        """Move what a deleted log holds into the file, and close the connection.

        The connection has the deleted `-wal` and `-shm` open, and SQLite reads them through it.
        """
        connection = self._connection
        if connection is None:
            return _Rescue.EMPTIED
        if not self._log.was_left_by(self._opened):
            # Others have gone on with another log: what this connection has open must not reach the file any more.
            # Another one is open while it is closed, so that SQLite neither writes it back nor deletes the other log.
            with suppress(sqlite3.Error), closing(self._connect(self.path)) as other:
                other.execute("PRAGMA schema_version").fetchone()
                self._close()
            self._close()
            outcome = _Rescue.LEFT
        else:
            moved, emptied = self._checkpointed(connection, self._deadline_seconds)
            connection.execute(f"PRAGMA busy_timeout={round(1000 * self._lock_wait_seconds)}")
            if not moved:
                raise self._held()
            outcome = _Rescue.EMPTIED if emptied else _Rescue.MOVED
            if emptied:
                self._log.put_aside_another(self._opened)
                self._close()
        goes_on = (
            "Another process goes on with it" if outcome is _Rescue.LEFT else "Nothing is lost: it was written back"
        )
        warn_once(
            "storage",
            ("log deleted", str(self.path)),
            f"the -wal or -shm of the {self._format.what} {self.path} was deleted while it was open. {goes_on}. Delete "
            "these files only together with the one that they belong to",
        )
        return outcome

    def _checkpointed(self, connection: sqlite3.Connection, wait_seconds: float) -> tuple[bool, bool]:
        """Move the whole log into the file and empty it: whether it was moved, and whether it was emptied.

        Readers and writers of other processes can prevent either.
        """
        give_up = time.monotonic() + wait_seconds
        connection.execute(f"PRAGMA busy_timeout={round(1000 * wait_seconds)}")
        mode = "PASSIVE"  # waits for no writer
        while True:
            _, frames, copied = connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            if frames == 0 or time.monotonic() > give_up:
                return frames == copied >= 0, frames == 0
            if frames > 0:
                mode = "TRUNCATE"
            else:
                time.sleep(_POLL_SECONDS)

    def _discard(self, damage: StorageError) -> None:
        """Replace the file that was found damaged by a new one, unless another process has done so.

        A file that another program wrote is renamed. Raises `damage` if the file cannot be replaced.
        """
        aside = None if self._is_ours() else self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.aside")
        try:
            replaced = self._create(instead_of=self._inode, aside=aside)
        except (sqlite3.Error, OSError):
            raise damage from None
        finally:
            self._close()
        if replaced:
            _logger.warning(
                "%s. A new file has replaced it%s; the views are built again from the ledger",
                str(damage).removesuffix(f". {self._format.remedy}").removesuffix(f". {_ANOTHER_FOLDER}"),
                "" if aside is None else f", and it was renamed to {aside.name}: delete that if nobody needs it",
            )

    def _is_ours(self) -> bool:
        """Whether the damaged file was written by Recallog, or is empty, so that nothing is lost with it."""
        if self._connection is not None:
            return True
        with suppress(sqlite3.Error, OSError), closing(self._connect(self.path)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            return application_id == self._format.application_id or self.path.stat().st_size == 0
        return False

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_IOERR_FSYNC:
                raise
            # The whole transaction is in the log; the next process that opens the file may find it committed.
            raise self._unknown(f"the disk failed while it was being written ({error}). Check the disk") from error

    def _unknown(self, what_happened: str) -> UnknownOutcome:
        return UnknownOutcome(
            f"the {self._format.what} {self.path}: {what_happened}; the write may or may not be there. Send the same "
            "events again: events that are there count once"
        )

    def _finish(self) -> None:
        """Close the file for good. A deleted log is moved into the file first, as far as that is possible."""
        if self._connection is not None and self._unlocked is None and self._inode_in_place() == self._inode:
            with suppress(RecallogError, sqlite3.Error, OSError):
                if not self._log.is_in_place(self._opened):
                    self._rescue()
        self._close()

    def _close(self) -> None:
        connection, self._connection, self._unlocked = self._connection, None, None
        if connection is not None:
            connection.close()
        if self._copy is not None:
            self._copy.cleanup()
            self._copy = None

    def _open(self, write: bool) -> sqlite3.Connection:
        while True:
            inode = self._inode_in_place()
            if inode is None:
                if self._identity is not None:
                    raise self._replaced()
                self._create()
                continue
            self._inode = inode
            try:
                try:
                    return self._open_file(inode, write)
                except (sqlite3.OperationalError, OSError) as error:
                    if write or not _needs_writing(error):
                        raise
                    return self._open_unlocked(error)
            except (RecallogError, sqlite3.Error, OSError):
                if self._inode_in_place() == inode:
                    raise  # otherwise another process replaced the file meanwhile, and the error may be of either file

    def _open_unlocked(self, error: Exception) -> sqlite3.Connection:
        """A connection to a file that cannot be opened as usual (`error`), for reading without writing anything.

        It takes no locks, so that `_read_unlocked` compares the files. Without a `-wal` it reads the file alone
        (`immutable`); otherwise SQLite keeps the index of the `-wal` in memory, as for an exclusive lock.

        Raises `error` if that is not possible either.
        """
        stamps = self._stamps()
        if time.time_ns() - max(stamp[2] for stamp in stamps if stamp is not None) < _CLOCK_TICK_NANOSECONDS:
            time.sleep(_CLOCK_TICK_NANOSECONDS / 1e9)  # the next write has another time
        if self._log.lost_frames():
            raise error if self._format.disposable else self._log_gone()
        try:
            if self._log.log_bytes():
                connection = self._connect(self.path, "ro&vfs=unix-none")
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            else:
                connection = self._connect(self.path, "ro&immutable=1")
            try:
                self._check_whole(connection)
                if self._check_format(connection) < self._format.version:
                    if self._format.disposable:
                        raise error
                    connection = self._upgraded_copy(connection)
                self._check_same(connection)
                connection.execute("PRAGMA cache_size=-16384")
            except BaseException:
                connection.close()
                raise
        except (sqlite3.OperationalError, OSError):
            raise error from None
        if self._stamps() != stamps:
            connection.close()
            raise _Moved
        self._connection, self._unlocked = connection, stamps
        reason = file_errors.why_not_writable(self.path.parent) or str(error)
        warn_once(
            "storage",
            ("read without writing", str(self.path.parent)),
            f"{self.path.parent} cannot be written ({reason}): its files are read as they are, and publishing fails",
        )
        return connection

    def _upgraded_copy(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """A copy, in a temporary folder, of a file of an older format that cannot be upgraded in its place."""
        connection.close()
        size_bytes = self._size_bytes()
        folder = self._copy = tempfile.TemporaryDirectory(prefix="recallog-", ignore_cleanup_errors=True)
        try:
            if shutil.disk_usage(folder.name).free < 2 * size_bytes:
                raise StorageUnavailable(
                    f"the {self._format.what} {self.path} has an older format and cannot be written, and "
                    f"{folder.name} has no space to upgrade a copy ({size_bytes:,} bytes). Set TMPDIR to another folder"
                )
            copy = Path(folder.name) / self.path.name
            for ending in ("", "-wal"):
                if Path(f"{self.path}{ending}").exists():
                    shutil.copyfile(f"{self.path}{ending}", f"{copy}{ending}")
            copied = self._connect(copy)
            try:
                self._upgrade(copied)
            except BaseException:
                copied.close()
                raise
            return copied
        except BaseException:
            folder.cleanup()
            self._copy = None
            raise

    def _stamps(self) -> tuple[_Stamp | None, _Stamp | None]:
        """The stamps of the file and its `-wal`; None for one that does not exist, or an empty `-wal`."""
        log = _stamp(self._log.log)
        return _stamp(str(self.path)), log if log is not None and log[1] else None

    def _check_log_in_place(self, write: bool) -> None:
        """Refuse to open a file whose `-wal` or `-shm` was deleted while another process has it open.

        A connection would see another log than that process, and both would damage the file.
        """
        give_up = time.monotonic() + self._wait_seconds(write)
        while not self._log.index_bytes():
            # It is created by the first process that opens the file and deleted by the last one that closes it.
            if self._log.is_alone() is not False:
                return
            if time.monotonic() > give_up:
                raise self._log_deleted("-shm")
            time.sleep(_POLL_SECONDS)
        if self._log.log_bytes() == 0 and self._log.is_alone() and self._log.lost_frames():
            raise _LogLost

    def _check_log_is_shared(self, connection: sqlite3.Connection, write: bool) -> None:
        """Refuse a new, empty `-wal` whose `-shm` counts what another process has in a deleted one."""
        if self._log.log_bytes() or not self._log.index_bytes():
            return
        try:
            _, emptied = self._checkpointed(connection, self._wait_seconds(write))
            if not emptied and not self._log.log_bytes():
                raise self._held()
        except sqlite3.DatabaseError as error:  # any other is found next
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_IOERR_SHORT_READ:
                raise self._log_deleted("-wal") from error

    def _log_gone(self) -> StorageReplaced:
        return StorageReplaced(
            f"the -wal of the {self._format.what} {self.path} is gone, and its last writes with it. Put "
            f"{self._log.log} back; or delete {self._log.index}, to go on without them"
        )

    def _log_deleted(self, ending: str) -> LockTimeout:
        self._impatient_until = time.monotonic() + self._deadline_seconds
        return LockTimeout(
            f"another process has the {self._format.what} {self.path} open without its {ending}: that was deleted, or "
            "the process is stopped while it opens or closes the file. What it holds is saved when it next uses or "
            f"closes the file. Find it: fuser {self.path}"
        )

    def _held(self) -> LockTimeout:
        self._impatient_until = time.monotonic() + self._deadline_seconds
        seconds = self._lock_wait_seconds if self._connection is not None else self._deadline_seconds
        return LockTimeout(
            f"another process has held the {self._format.what} {self.path} for more than {seconds:g} s; nothing was "
            f"written. Try again, or see who holds it: fuser {self.path}"
        )

    def _wait_seconds(self, write: bool) -> float:
        """How long to wait for a lock on opening. The reads that follow one which has waited in vain do not wait."""
        if write:
            return self._lock_wait_seconds
        return 0.0 if time.monotonic() < self._impatient_until else self._deadline_seconds

    def _open_file(self, inode: int, write: bool) -> sqlite3.Connection:
        try:
            self._check_log_in_place(write)
        except _LogLost:
            if not self._format.disposable:
                raise self._log_gone() from None
            self._create(instead_of=inode)
            raise _Moved from None
        # The inode was read before connecting: if the file is replaced in between, `_check_in_place` detects it.
        connection = self._connect(self.path, wait_seconds=self._wait_seconds(write))
        try:
            self._check_log_is_shared(connection, write)
            self._check_whole(connection)
            older = self._check_format(connection) < self._format.version
            if older and self._format.disposable:
                # The old file is still open here, so that no other process is the last to close it: that one would
                # delete the write-ahead log by its name, which may be that of the new file.
                self._create(instead_of=inode)
                raise _Moved
            if older:
                self._upgrade(connection)
            self._check_same(connection)
            # 16 MiB of pages are cached, and the log is moved into the file every 16 MiB, so that pages which many
            # batches change are written once. No memory mapping: if another process truncates the file, it crashes.
            connection.execute(f"PRAGMA synchronous={self._format.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // _PAGE_BYTES}")
            connection.execute(f"PRAGMA busy_timeout={round(1000 * self._lock_wait_seconds)}")
        except BaseException:
            connection.close()
            raise
        self._connection, self._opened, self._unchanged = connection, self._log.inodes(), None
        if None in self._opened:  # deleted since the first statement opened them
            self._renew()
        return connection

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("BEGIN IMMEDIATE")
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            # Another process may have upgraded it while this one waited.
            if version < self._format.version and self._format.upgrade is not None:
                self._format.upgrade(connection, version)
                connection.execute(f"PRAGMA user_version={self._format.version}")
            self._commit(connection)
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        with suppress(sqlite3.Error):  # its write-ahead log is as large as the file
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _connect(self, path: Path, mode: str = "rw", wait_seconds: float | None = None) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",  # "rw" does not create a file that was just deleted
            uri=True,
            timeout=self._lock_wait_seconds if wait_seconds is None else wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _create(self, instead_of: int | None = None, aside: Path | None = None) -> bool:
        """Write a new file under a temporary name and link it in one step, so that no process sees an incomplete file.

        `instead_of` is the inode of a file to replace, which is renamed to `aside` or deleted. Processes that have
        it open detect it at their next use. Returns whether it was replaced here, not by another process.
        """
        from filelock import FileLock, Timeout  # needed only here: opening an existing file takes no lock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.new")
        try:
            connection = self._connect(new, "rwc")
            try:
                connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(f"PRAGMA application_id={self._format.application_id}")
                connection.execute(f"PRAGMA user_version={self._format.version}")
                connection.executescript(self._format.schema)
            finally:
                connection.close()
            with FileLock(f"{self.path}.making", timeout=self._lock_wait_seconds):
                replaces = instead_of is not None and self._inode_in_place() == instead_of
                if replaces:
                    self._remove(aside)
                if not self.path.exists():  # otherwise another process has created it, which serves as well
                    self._clear_leftovers()
                    os.link(new, self.path)
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except Timeout:
            raise self._held() from None
        finally:
            for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
                leftover.unlink(missing_ok=True)
        return replaces

    def _remove(self, aside: Path | None) -> None:
        """Delete the file, or rename it to `aside` with its write-ahead log."""
        if aside is None:
            self.path.unlink()
            return
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                Path(f"{self.path}{ending}").rename(f"{aside}{ending}")

    def _clear_leftovers(self) -> None:
        """Delete the write-ahead log of a deleted file: SQLite would apply it to a new file of the same name."""
        log, index = Path(f"{self.path}-wal"), Path(f"{self.path}-shm")
        if not self._format.disposable and log.exists() and log.stat().st_size:
            raise StorageReplaced(
                f"the {self._format.what} {self.path} is gone, and {log.name} holds its last writes. Put "
                "the file back beside it, or move both away to begin a new one"
            )
        log.unlink(missing_ok=True)
        index.unlink(missing_ok=True)

    def _check_whole(self, connection: sqlite3.Connection) -> None:
        """Refuse empty and truncated files: SQLite accepts an empty file, and one whose last page is incomplete.

        The file must not be opened except by SQLite: closing it would drop the POSIX locks of all connections of this
        process to it, and another process could then delete the write-ahead log that they use.
        """
        if self.path.stat().st_size == 0:
            raise StorageCorrupt(f"the {self._format.what} {self.path} is empty. {self._format.remedy}")
        try:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_NOTADB:
                raise self._foreign() from error
            if code == sqlite3.SQLITE_CORRUPT:
                raise self._truncated() from error
            raise
        log = Path(f"{self.path}-wal")  # its pages are counted, but are not in the file yet
        if self.path.stat().st_size < pages * page_bytes and not (log.exists() and log.stat().st_size):
            raise self._truncated()

    def _damaged(self, reason: Exception, *, position: str = "", until: int | None = None) -> StorageCorrupt:
        message = f"the {self._format.what} {self.path} is damaged ({reason}). {self._format.remedy}"
        return StorageCorrupt(message, position=position, until=until)

    def _truncated(self) -> StorageCorrupt:
        return StorageCorrupt(f"the {self._format.what} {self.path} is truncated. {self._format.remedy}")

    def _check_format(self, connection: sqlite3.Connection) -> int:
        """The version of the file's format. Raises `StorageForeign` or `StorageTooNew` if this code cannot use it."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != self._format.application_id:
            raise self._foreign()
        if version > self._format.version:
            or_delete = ", or delete it: its content can be computed again" if self._format.disposable else ""
            raise StorageTooNew(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads up to "
                f"{self._format.version}. Install a newer version of Recallog to open it{or_delete}"
            )
        if version < self._format.version and not self._format.disposable and self._format.upgrade is None:
            raise StorageForeign(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads "
                f"{self._format.version} only. Export it with the version that wrote it, and ingest the export"
            )
        return int(version)

    def _check_same(self, connection: sqlite3.Connection) -> None:
        """Accept a file in place of a deleted one only if it is a copy of that one."""
        if not self._format.identity:
            return
        identity = connection.execute(self._format.identity).fetchone()
        if self._identity not in (None, identity):
            raise self._replaced()
        self._identity = identity

    def _foreign(self) -> StorageForeign:
        what = f"{self.path} is not a {self._format.what} of Recallog"
        if self._format.disposable:
            return StorageForeign(f"{what}. {_ANOTHER_FOLDER}")
        return StorageForeign(
            f"{what}, or its beginning is damaged. {_ANOTHER_FOLDER}, or restore your backup of this folder"
        )

    def _check_in_place(self) -> None:
        """Refuse to use a file that was deleted while it was open: its writes would be lost with the process."""
        if self._inode_in_place() != self._inode:
            self._close()
            raise self._replaced()

    def _inode_in_place(self) -> int | None:
        found = status(self._name)
        return None if found is None else found.st_ino

    def _replaced(self) -> StorageReplaced:
        return StorageReplaced(
            f"the {self._format.what} {self.path} was deleted or replaced while it was open; nothing was written. "
            "Put it back, then try again"
        )

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._translated(error) from error
        except Damaged as damage:
            raise self._damaged(damage, position=damage.position, until=damage.until) from None
        except UnicodeDecodeError as error:  # SQLite's message quotes damaged bytes
            raise self._damaged(error) from error
        except OSError as error:
            raise file_errors.storage_error(error, self._format.what, self.path) from error

    def _translated(self, error: sqlite3.DatabaseError) -> RecallogError:
        what, code = f"the {self._format.what} {self.path}", getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._held()
        if code == sqlite3.SQLITE_FULL:
            return file_errors.full(self._format.what, self.path)
        if code == sqlite3.SQLITE_READONLY:
            return self._read_only()
        undecodable = isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")
        if code in _UNSOUND or undecodable:
            return self._damaged(error)
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
            if not os.access(self.path.parent, os.W_OK):
                return self._read_only()
            if not file_errors.has_space(self.path.parent):
                return file_errors.full(self._format.what, self.path)
        return StorageUnavailable(f"{what}: {error}; nothing was written. Check the disk and its free space")

    def _read_only(self) -> RecallogError:
        return file_errors.read_only(self._format.what, self.path)


def _result(work: Callable[[sqlite3.Connection], Result], connection: sqlite3.Connection) -> Result:
    try:
        return work(connection)
    except RecallogError as error:
        raise _Passing(error) from error


def _needs_writing(error: Exception) -> bool:
    """Whether a file could not be opened because SQLite had to write something for it, for example its `-shm`."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, OSError) or (code & 0xFF in _NOT_WRITTEN and code != sqlite3.SQLITE_IOERR_SHORT_READ)


def _stamp(path: str) -> _Stamp | None:
    found = status(path)
    return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)
