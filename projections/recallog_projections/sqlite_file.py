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

from filelock import FileLock

from recallog_schemas import limits
from recallog_schemas.errors import (
    LockTimeout,
    RecallogError,
    StorageCorrupt,
    StorageForeign,
    StorageFull,
    StorageReadOnly,
    StorageReplaced,
    StorageTooNew,
    StorageUnavailable,
    UnknownOutcome,
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Format:
    """What makes a file one of ours."""

    what: str
    """The file in words, for messages: "ledger"."""
    application_id: int
    version: int
    schema: str
    remedy: str
    """What to do about a damaged one."""
    synchronous: str
    page_bytes: int = 4096
    disposable: bool = False
    """Made again from elsewhere, so that what is left of a deleted one is thrown away."""


class SqliteFile:
    """A file of one `Format`. Opened with the first use; `run` is the only way in."""

    def __init__(self, path: Path, format: Format, lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS) -> None:  # noqa: A002
        self.path = path
        self._format = format
        self._lock_wait_seconds = lock_wait_seconds
        self._connection: sqlite3.Connection | None = None
        self._inode = -1
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"recallog-{format.what}")

    async def run(self, work: Callable[[sqlite3.Connection], Answer], *, write: bool = False) -> Answer:
        """The answer of `work`, run in one transaction. Raises a `StorageError`; then nothing was written."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work, write)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def size_bytes(self) -> int:
        """The file with its write-ahead log."""
        return sum(path.stat().st_size for path in (self.path, Path(f"{self.path}-wal")) if path.exists())

    def _run(self, work: Callable[[sqlite3.Connection], Answer], write: bool) -> Answer:
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
        if not self.path.exists():
            self._make()
        self._check_whole()
        connection = self._connect(self.path)
        try:
            self._check_ours(connection)
            # 16 MiB of pages in memory, and the log moved into the file every 16 MiB: pages that many batches change
            # are then written once. No memory-mapping: another process's truncation would be a crash here.
            connection.execute(f"PRAGMA synchronous={self._format.synchronous}")
            connection.execute("PRAGMA cache_size=-16384")
            connection.execute(f"PRAGMA wal_autocheckpoint={(16 << 20) // self._format.page_bytes}")
        except BaseException:
            connection.close()
            raise
        self._connection, self._inode = connection, self.path.stat().st_ino
        return connection

    def _connect(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(
            path, timeout=self._lock_wait_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
        )

    def _make(self) -> None:
        """Write a new file aside and give it its name in one step, so that nobody ever sees half a file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.new")
        try:
            connection = self._connect(aside)
            try:
                connection.execute(f"PRAGMA page_size={self._format.page_bytes}")
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(f"PRAGMA application_id={self._format.application_id}")
                connection.execute(f"PRAGMA user_version={self._format.version}")
                connection.executescript(self._format.schema)
            finally:
                connection.close()
            with FileLock(f"{self.path}.making", timeout=self._lock_wait_seconds):
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

    def _check_whole(self) -> None:
        """SQLite takes an empty file for a new database, and notices missing pages only when it reads them."""
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            header = file.read(100)
        if size == 0:
            raise StorageCorrupt(f"the {self._format.what} {self.path} is empty. {self._format.remedy}")
        if header[:16] != b"SQLite format 3\0" or len(header) < 100:
            raise self._foreign()
        page_size = int.from_bytes(header[16:18], "big")
        pages = int.from_bytes(header[28:32], "big")
        wal = Path(f"{self.path}-wal")
        if size < pages * (65536 if page_size == 1 else page_size) and not (wal.exists() and wal.stat().st_size):
            raise StorageCorrupt(f"the {self._format.what} {self.path} is truncated. {self._format.remedy}")

    def _check_ours(self, connection: sqlite3.Connection) -> None:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application_id != self._format.application_id:
            raise self._foreign()
        if version > self._format.version:
            raise StorageTooNew(
                f"the {self._format.what} {self.path} has format {version}; this version of Recallog reads up to "
                f"{self._format.version}. Upgrade it: pip install --upgrade recallog"
            )

    def _foreign(self) -> StorageForeign:
        return StorageForeign(
            f"{self.path} is not a {self._format.what} of Recallog. Name another folder with --home or RECALLOG_HOME"
        )

    def _check_in_place(self) -> None:
        """A file deleted under an open connection would take writes and lose them with the process."""
        try:
            in_place = self.path.stat().st_ino == self._inode
        except FileNotFoundError:
            in_place = False
        if not in_place:
            self._close()
            raise StorageReplaced(
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
