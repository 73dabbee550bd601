"""A SQLite file that several processes share: created atomically, checked when opened, with errors of Recallog.

Each file has a thread of its own, so that the event loop never waits for the disk.
"""

import asyncio
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from recallog_projections.sqlite.creating import create, is_ours
from recallog_projections.sqlite.errors import is_busy, is_damage
from recallog_projections.sqlite.format import FileFormat, check_not_empty
from recallog_projections.sqlite.locked import LockedFile, Waits
from recallog_projections.sqlite.moved import FileMoved
from recallog_projections.sqlite.unlocked import UnlockedFile, needs_writing
from recallog_projections.sqlite.write_ahead_log import WriteAheadLog, inode_of
from recallog_projections.threads import run_last
from recallog_schemas import limits
from recallog_schemas.errors import RecallogError, StorageCorrupt, StorageError, StorageForeign

Result = TypeVar("Result")

_logger = logging.getLogger("recallog.storage")

_TRIES = 5
"""How often a transaction is tried whose file, or write-ahead log, is replaced or written meanwhile."""


class _Passing(Exception):
    """An error of Recallog that `work` raised. It may be about another file, and must not count as one of this file."""

    def __init__(self, error: RecallogError) -> None:
        self.error = error


class SqliteFile:
    """A file of one `FileFormat`, opened by the first call of `run`: without locks where nothing can be written."""

    def __init__(
        self,
        path: Path,
        format: FileFormat,  # noqa: A002
        lock_wait_seconds: float = limits.LOCK_WAIT_SECONDS,
        deadline_seconds: float | None = None,
    ) -> None:
        """A read waits `deadline_seconds` for a lock (default: like a write), a write `lock_wait_seconds`."""
        self.path = path
        self._format = format
        self._errors = format.errors(path)
        self._waits = Waits(lock_wait_seconds, lock_wait_seconds if deadline_seconds is None else deadline_seconds)
        self._log = WriteAheadLog(path)
        self._file: LockedFile | UnlockedFile | None = None
        self._inode = -1
        self.openings = 0
        """How often a file was opened in this place. If it is the same in two transactions, both had the same file."""
        self._identity: object = None
        self._impatient_until = 0.0
        self._closed = False
        self._in_use = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"recallog-{format.what}")

    @property
    def is_open(self) -> bool:
        return self._file is not None and not self._file.is_closed

    async def run(
        self,
        work: Callable[[sqlite3.Connection], Result],
        *,
        write: bool = False,
        keep_damaged: bool = False,
        last: bool = False,
    ) -> Result:
        """Run `work` in one transaction and return its result.

        A damaged file of a disposable format is replaced by a new one, and `work` runs again, unless `keep_damaged`.
        With `last` the connection is closed afterwards, because `work` has changed the schema without its knowledge.

        Raises `StorageError`, and then nothing was written, or `UnknownOutcome`.
        """
        if self._closed:
            raise StorageError(f"the memory is closed, and with it the {self._format.what} {self.path}; open it again")
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, self._run, work, write, keep_damaged, last
        )

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

    async def rewrite(self) -> None:
        """Rewrite the whole file in one atomic step, without unused pages.

        It needs as much free space as the file has, twice. Raises as `run` does.
        """
        await self.run(lambda connection: None, write=True)
        await asyncio.get_running_loop().run_in_executor(self._thread, self._rewrite)

    def _rewrite(self) -> None:
        with self._in_use, self._errors.translate_errors(lambda: self._waits.write_seconds):
            if not isinstance(self._file, LockedFile) or self._file.is_closed:
                raise self._errors.changing()
            self._file.rewrite()

    async def empty_log(self) -> bool:
        """Move the write-ahead log into the file, and empty it: what was overwritten is in neither any more.

        Waits for readers and writers of other processes as long as a write does. Returns whether the log is empty; if
        not, what they hold is moved later.
        """
        await self.run(lambda connection: None)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._empty_log)

    def _empty_log(self) -> bool:
        with self._in_use, self._errors.translate_errors(lambda: self._waits.write_seconds):
            return isinstance(self._file, LockedFile) and not self._file.is_closed and self._file.empty_log()

    async def replace(self) -> None:
        """Put a new, empty file in place of the present one, if there is one. Only for a disposable format."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._replace)

    def _replace(self) -> None:
        with self._in_use, self._errors.translate_errors(lambda: self._waits.write_seconds):
            inode = inode_of(str(self.path))
            if inode is not None:
                self._create(instead_of=inode)
            self._close()

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

    def _run(self, work: Callable[[sqlite3.Connection], Result], write: bool, keep_damaged: bool, last: bool) -> Result:
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
            finally:
                if last:
                    self._close()

    def _transaction(self, work: Callable[[sqlite3.Connection], Result], write: bool) -> Result:
        def check_file(connection: sqlite3.Connection) -> Result:
            try:
                return work(connection)
            except RecallogError as error:
                raise _Passing(error) from error

        def waited_seconds() -> float:
            return self._waits.write_seconds if write or self.is_open else self._waits.read_seconds

        with self._errors.translate_errors(waited_seconds):
            for _ in range(_TRIES):
                with suppress(FileMoved):
                    file = self._file
                    if file is None or file.is_closed:
                        file = self._file = self._open(write)
                        self.openings += 1
                    return file.run(check_file, write=write)
            raise self._errors.changing()

    def _discard(self, damage: StorageError) -> None:
        """Replace the file that was found damaged by a new one, unless another process has done so.

        A file that another program wrote is renamed. Raises `damage` if the file cannot be replaced.
        """
        ours = self.is_open or is_ours(self.path, self._format, self._waits.write_seconds)
        aside = None if ours else self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}.aside")
        try:
            replaced = self._create(instead_of=self._inode, aside=aside)
        except (sqlite3.Error, OSError):
            raise damage from None
        finally:
            self._close()
        if replaced:
            _logger.warning(
                "%s. A new file has replaced it%s; the views are built again from the ledger",
                self._errors.without_remedy(damage),
                "" if aside is None else f", and it was renamed to {aside.name}: delete that if it is not needed",
            )

    def _create(self, *, instead_of: int | None = None, aside: Path | None = None) -> bool:
        return create(self.path, self._format, self._waits.write_seconds, instead_of=instead_of, aside=aside)

    def _finish(self) -> None:
        if isinstance(self._file, LockedFile):
            self._file.finish()
        self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _open(self, write: bool) -> LockedFile | UnlockedFile:
        while True:
            inode = inode_of(str(self.path))
            if inode is None:
                if self._identity is not None:
                    raise self._errors.make_replaced()
                self._create()
                continue
            self._inode = inode
            try:
                return self._open_in_place(inode, write)
            except (RecallogError, sqlite3.Error, OSError) as error:
                if is_busy(error):
                    self._impatient_until = time.monotonic() + self._waits.read_seconds
                if inode_of(str(self.path)) == inode:
                    raise  # otherwise another process replaced the file meanwhile, and the error may be of either file

    def _open_in_place(self, inode: int, write: bool) -> LockedFile | UnlockedFile:
        # The inode was read before connecting: if the file is replaced in between, the first transaction detects it.
        check_not_empty(self.path, self._errors)
        try:
            return LockedFile.open(
                self.path, self._format, self._log, self._accept, self._waits, self._wait_seconds(write), inode
            )
        except (sqlite3.OperationalError, OSError) as error:
            if write or not needs_writing(error):
                raise
            return UnlockedFile.open(self.path, self._format, self._log, self._accept, error)

    def _accept(self, connection: sqlite3.Connection) -> None:
        """Accept a file in place of a deleted one only if it is a copy of that one."""
        if not self._format.identity:
            return
        try:
            identity = connection.execute(self._format.identity).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            raise self._errors.make_damaged(error, opens=False) from error
        if self._identity not in (None, identity):
            raise self._errors.make_replaced()
        self._identity = identity

    def _wait_seconds(self, write: bool) -> float:
        """How long to wait for a lock on opening. The reads that follow one which has waited in vain do not wait."""
        if write:
            return self._waits.write_seconds
        return 0.0 if time.monotonic() < self._impatient_until else self._waits.read_seconds
