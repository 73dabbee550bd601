"""One SQLite file that several processes share: made whole, checked when opened, and honest about what went wrong.

The ledger and the embedded views are two such files. All work on one connection runs in one thread of its own, so the
event loop never waits for the disk.
"""

import asyncio
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from filelock import FileLock

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

_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FileFormat:
    """What makes a file one of ours."""

    what: str
    """The file in words, for messages: "ledger"."""
    application_id: int
    version: int
    schema: str
    remedy: str
    """What to do about a damaged one."""
    synchronous: str
    disposable: bool = False
    """Made again from elsewhere, so that an older version, and what is left of a deleted one, is thrown away."""
    identity: str = ""
    """Query for what tells this file from others of its format: a process that had one open takes no other for it."""


class SqliteFile:
    """A file of one `FileFormat`. Opened with the first use; `run` is the only way in."""

    def __init__(self, path: Path, format: FileFormat, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:  # noqa: A002
        self.path = path
        self._format = format
        self._lock_wait_seconds = lock_wait_seconds
        self._connection: sqlite3.Connection | None = None
        self._inode = -1
        self._identity: object = None
        self._closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"recallog-{format.what}")

    async def run(self, work: Callable[[sqlite3.Connection], Result], *, write: bool = False) -> Result:
        """The answer of `work`, run in one transaction. Raises a `StorageError`; then nothing was written."""
        if self._closed:
            raise StorageError(f"the memory is closed, and with it the {self._format.what} {self.path}; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work, write)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def size_bytes(self) -> int:
        """The file with its write-ahead log."""
        return sum(path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists())

    def _run(self, work: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        with self._named_errors():
            connection = self._connection or self._open()
            self._check_in_place()
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            try:
                answer = work(connection)
                self._commit(connection)
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return answer

    def _commit(self, connection: sqlite3.Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_IOERR_FSYNC:
                raise
            # The whole transaction is in the log, and whoever opens the file next may read it back as committed.
            raise UnknownOutcome(
                f"the disk failed while the {self._format.what} {self.path} was being written ({error}); the write may "
                "or may not be there. Check the disk, then send the same again: what is there already counts once"
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
                self._make()
                continue
            try:
                return self._open_file(inode)
            except (RecallogError, sqlite3.Error, OSError):
                if self._inode_in_place() == inode:
                    raise  # or else another process made the file anew: what was seen is half old, half new

    def _open_file(self, inode: int) -> sqlite3.Connection:
        # The inode was read before connecting: if the file is exchanged in between, `_check_in_place` sees it.
        connection = self._connect(self.path)
        try:
            self._check_whole(connection)
            if self._check_ours(connection) < self._format.version:
                # With the old file still open: no other process can be the last to close it, which would delete the
                # write-ahead log by its name, by then that of the new file.
                self._make(instead_of=inode)
                connection.close()
                return self._open()
            self._check_same(connection)
            # 16 MiB of pages in memory, and the log moved into the file every 16 MiB: pages that many batches change
            # are then written once. No memory-mapping: another process's truncation would be a crash here.
            connection.execute(f"PRAGMA synchronous={self._format.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // _PAGE_BYTES}")
        except BaseException:
            connection.close()
            raise
        self._connection, self._inode = connection, inode
        return connection

    def _connect(self, path: Path, mode: str = "rw") -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",  # "rw": a file deleted just now is not made again, empty
            uri=True,
            timeout=self._lock_wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def _make(self, instead_of: int | None = None) -> None:
        """Write a new file aside and give it its name in one step, so that nobody ever sees half a file.

        `instead_of` is the inode of a file that it replaces; whoever has that open notices before the next use.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.new")
        try:
            connection = self._connect(aside, "rwc")
            try:
                connection.execute(f"PRAGMA page_size={_PAGE_BYTES}")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(f"PRAGMA application_id={self._format.application_id}")
                connection.execute(f"PRAGMA user_version={self._format.version}")
                connection.executescript(self._format.schema)
            finally:
                connection.close()
            with FileLock(f"{self.path}.making", timeout=self._lock_wait_seconds):
                if instead_of is not None and self._inode_in_place() == instead_of:
                    self.path.unlink()
                if not self.path.exists():  # if it does, another process was faster: its file is as good
                    self._clear_leftovers()
                    os.link(aside, self.path)
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        finally:
            for leftover in (aside, Path(f"{aside}-wal"), Path(f"{aside}-shm")):
                leftover.unlink(missing_ok=True)

    def _clear_leftovers(self) -> None:
        """SQLite would play the write-ahead log of a deleted file back into a new one of the same name."""
        log, index = Path(f"{self.path}-wal"), Path(f"{self.path}-shm")
        if not self._format.disposable and log.exists() and log.stat().st_size:
            raise StorageReplaced(
                f"the {self._format.what} {self.path} is gone, and {log.name} holds what was written to it last. Put "
                "the file back beside it, or move both away to begin a new one"
            )
        log.unlink(missing_ok=True)
        index.unlink(missing_ok=True)

    def _check_whole(self, connection: sqlite3.Connection) -> None:
        """SQLite takes an empty file for a new database, and does not miss a part of the last page.

        Never open the file beside SQLite to look into it: closing it again would drop the locks of every connection
        that this process has to it (POSIX), and another process would delete the write-ahead log under them.
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
        log = Path(f"{self.path}-wal")  # what is in it counts as pages, and is not in the file yet
        if self.path.stat().st_size < pages * page_bytes and not (log.exists() and log.stat().st_size):
            raise self._truncated()

    def _truncated(self) -> StorageCorrupt:
        return StorageCorrupt(f"the {self._format.what} {self.path} is truncated. {self._format.remedy}")

    def _check_ours(self, connection: sqlite3.Connection) -> int:
        """The version of the file's format. Raises where this code can do nothing with it."""
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != self._format.application_id:
            raise self._foreign()
        if version > self._format.version:
            raise StorageTooNew(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads up to "
                f"{self._format.version}. Upgrade it: pip install --upgrade recallog"
            )
        if version < self._format.version and not self._format.disposable:
            raise StorageForeign(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads "
                f"{self._format.version} only. Export it with the version that wrote it, and ingest the export"
            )
        return int(version)

    def _check_same(self, connection: sqlite3.Connection) -> None:
        """A file put back in the place of a deleted one may be a copy of it, but nothing else."""
        if not self._format.identity:
            return
        identity = connection.execute(self._format.identity).fetchone()
        if self._identity not in (None, identity):
            raise self._replaced()
        self._identity = identity

    def _foreign(self) -> StorageForeign:
        return StorageForeign(
            f"{self.path} is not a {self._format.what} of Recallog. Name another folder with --home or RECALLOG_HOME"
        )

    def _check_in_place(self) -> None:
        """A file deleted under an open connection would take writes and lose them with the process."""
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
            f"the {self._format.what} {self.path} was deleted or exchanged while it was open; nothing was written. "
            "Put it back, then try again"
        )

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise self._named(error) from error
        except PermissionError as error:
            raise self._read_only() from error
        except OSError as error:
            raise StorageUnavailable(f"the {self._format.what} {self.path}: {error.strerror or error}") from error

    def _named(self, error: sqlite3.DatabaseError) -> RecallogError:
        what, code = f"the {self._format.what} {self.path}", getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return LockTimeout(
                f"another process has held {what} for more than {self._lock_wait_seconds:g} s; nothing was written. "
                f"Try again, or see who holds it: fuser {self.path}"
            )
        if code == sqlite3.SQLITE_FULL:
            return StorageFull(f"no space left for {what}; nothing was written. Free some and try again")
        if code == sqlite3.SQLITE_READONLY:
            return self._read_only()
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return StorageCorrupt(f"{what} is damaged ({error}). {self._format.remedy}")
        if code == sqlite3.SQLITE_CANTOPEN and not os.access(self.path.parent, os.W_OK):
            return self._read_only()
        return StorageUnavailable(f"{what}: {error}; nothing was written. Check the disk and its free space")

    def _read_only(self) -> StorageReadOnly:
        return StorageReadOnly(
            f"no right to write the {self._format.what} {self.path}. Give this user the right to write its folder, or "
            "name another with --home or RECALLOG_HOME"
        )
