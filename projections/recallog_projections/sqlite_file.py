"""A SQLite file that several processes share: created atomically, checked when opened, with errors of Recallog.

The ledger and the views of a folder are two such files. Each connection has a thread of its own, so that the event loop
never waits for the disk.
"""

import asyncio
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from recallog_projections.threads import run_last
from recallog_schemas import limits
from recallog_schemas.errors import (
    LockTimeout,
    RecallogError,
    StorageCorrupt,
    StorageError,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StorageTooNew,
    StorageUnavailable,
    UnknownOutcome,
)

Result = TypeVar("Result")

_logger = logging.getLogger("recallog.storage")

_PAGE_BYTES = 4096
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


class SqliteFile:
    """A file of one `FileFormat`, opened by the first call of `run`."""

    def __init__(self, path: Path, format: FileFormat, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:  # noqa: A002
        self.path = path
        self._format = format
        self._lock_wait_seconds = lock_wait_seconds
        self._connection: sqlite3.Connection | None = None
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
        finally:
            self._in_use.release()

    async def close(self) -> None:
        """Close the file; later calls of `run` raise `StorageError`."""
        if self._closed:
            return
        self._closed = True
        await run_last(self._thread, self._close)

    async def size_bytes(self) -> int:
        """The size of the file and its write-ahead log."""
        return await asyncio.to_thread(self._size_bytes)

    def _size_bytes(self) -> int:
        return sum(path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists())

    def _run(self, work: Callable[[sqlite3.Connection], Result], write: bool, keep_damaged: bool) -> Result:
        with self._in_use:
            try:
                return self._transaction(work, write)
            except (StorageCorrupt, StorageForeign) as damage:
                if keep_damaged or not self._format.disposable:
                    raise
                self._discard(damage)
            return self._transaction(work, write)

    def _transaction(self, work: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        with self._translated_errors():
            connection = self._connection or self._open()
            self._check_in_place()
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                result = work(connection)
                if write:
                    self._commit(connection)
                else:
                    connection.execute("ROLLBACK")  # a COMMIT fails after any statement that found a damaged page
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return result

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
            raise UnknownOutcome(
                f"the disk failed while the {self._format.what} {self.path} was being written ({error}); the write may "
                "or may not be there. Check the disk, then send the same events again: events that are there count once"
            ) from error

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        while True:
            inode = self._inode_in_place()
            if inode is None:
                if self._identity is not None:
                    raise self._replaced()
                self._create()
                continue
            self._inode = inode
            try:
                return self._open_file(inode)
            except (RecallogError, sqlite3.Error, OSError):
                if self._inode_in_place() == inode:
                    raise  # otherwise another process replaced the file meanwhile, and the error may be of either file

    def _open_file(self, inode: int) -> sqlite3.Connection:
        # The inode was read before connecting: if the file is replaced in between, `_check_in_place` detects it.
        connection = self._connect(self.path)
        try:
            self._check_whole(connection)
            older = self._check_format(connection) < self._format.version
            if older and self._format.disposable:
                # The old file is still open here, so that no other process is the last to close it: that one would
                # delete the write-ahead log by its name, which may be that of the new file.
                self._create(instead_of=inode)
                connection.close()
                return self._open()
            if older:
                self._upgrade(connection)
            self._check_same(connection)
            # 16 MiB of pages are cached, and the log is moved into the file every 16 MiB, so that pages which many
            # batches change are written once. No memory mapping: if another process truncates the file, it crashes.
            connection.execute(f"PRAGMA synchronous={self._format.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // _PAGE_BYTES}")
        except BaseException:
            connection.close()
            raise
        self._connection = connection
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

    def _connect(self, path: Path, mode: str = "rw") -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",  # "rw" does not create a file that was just deleted
            uri=True,
            timeout=self._lock_wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _create(self, instead_of: int | None = None, aside: Path | None = None) -> bool:
        """Write a new file under a temporary name and link it in one step, so that no process sees an incomplete file.

        `instead_of` is the inode of a file to replace, which is renamed to `aside` or deleted. Processes that have
        it open detect it at their next use. Returns whether it was replaced here, not by another process.
        """
        from filelock import FileLock  # needed only here: opening an existing file takes no lock

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
            raise StorageTooNew(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads up to "
                f"{self._format.version}. Install a newer version of Recallog to open it"
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
        return StorageForeign(f"{self.path} is not a {self._format.what} of Recallog. {_ANOTHER_FOLDER}")

    def _check_in_place(self) -> None:
        """Refuse to use a file that was deleted while it was open: its writes would be lost with the process."""
        if self._inode_in_place() != self._inode:
            self._close()
            raise self._replaced()

    def _inode_in_place(self) -> int | None:
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None

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
        except PermissionError as error:
            raise self._read_only() from error
        except OSError as error:
            raise StorageUnavailable(f"the {self._format.what} {self.path}: {error.strerror or error}") from error

    def _translated(self, error: sqlite3.DatabaseError) -> RecallogError:
        what, code = f"the {self._format.what} {self.path}", getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LockTimeout(
                f"another process has held {what} for more than {self._lock_wait_seconds:g} s; nothing was written. "
                f"Try again, or see who holds it: fuser {self.path}"
            )
        if code == sqlite3.SQLITE_FULL:
            return StorageFull(f"no space left for {what}; nothing was written. Free some space and try again")
        if code == sqlite3.SQLITE_READONLY:
            return self._read_only()
        undecodable = isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")
        if code in _UNSOUND or undecodable:
            return self._damaged(error)
        if code == sqlite3.SQLITE_CANTOPEN and not os.access(self.path.parent, os.W_OK):
            return self._read_only()
        return StorageUnavailable(f"{what}: {error}; nothing was written. Check the disk and its free space")

    def _read_only(self) -> StorageReadOnly:
        return StorageReadOnly(
            f"no right to write the {self._format.what} {self.path}. Give this user the right to write its folder, or "
            "name another with --home or RECALLOG_HOME"
        )
