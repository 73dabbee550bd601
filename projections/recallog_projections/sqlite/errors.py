"""Errors about a SQLite file: each names the file and what to do."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from recallog_projections import file_errors
from recallog_schemas.errors import (
    LockTimeout,
    RecallogError,
    StorageCorrupt,
    StorageForeign,
    StorageReplaced,
    StorageTooNew,
    StorageUnavailable,
    UnknownOutcome,
)

_ANOTHER_FOLDER = "Name another folder with --home or RECALLOG_HOME"
_UNSOUND = {
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR),
    *(sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG),
}
"""Codes of errors that statements raise only in a damaged file: a table is missing, or an index has other keys."""


class Damaged(Exception):
    """Raised by the `work` of `SqliteFile.run` for content that fails its checksum: `run` raises `StorageCorrupt`.

    The message names the content; `position` and `until` are those of `StorageCorrupt`.
    """

    def __init__(self, what: str, *, position: str = "", until: int | None = None) -> None:
        super().__init__(what)
        self.position = position
        self.until = until


class FileErrors:
    """The errors about the file at `path`, which is a `what`, for example a ledger."""

    def __init__(self, what: str, path: Path, remedy: str, repair: str, salvage: str, *, disposable: bool) -> None:
        self._what = what
        self._path = path
        self._file = f"the {what} {path}"
        self._remedy = remedy
        self._repair = repair
        self._salvage = salvage
        self._disposable = disposable

    def empty(self) -> StorageCorrupt:
        return StorageCorrupt(f"{self._file} is empty", remedy=self._remedy)

    def make_truncated(self) -> StorageCorrupt:
        return StorageCorrupt(f"{self._file} is truncated", remedy=self._remedy)

    def make_damaged(
        self, reason: Exception, *, position: str = "", until: int | None = None, opens: bool = True
    ) -> StorageCorrupt:
        """`opens` is false for a file of which nothing else can be read, and that `recallog verify` cannot look at."""
        more = self._salvage if position else self._repair if opens else ""
        remedy = f"{self._remedy}; {more}" if more else self._remedy
        return StorageCorrupt(f"{self._file} is damaged ({reason})", remedy=remedy, position=position, until=until)

    def foreign(self) -> StorageForeign:
        what = f"{self._path} is not a {self._what} of Recallog"
        if self._disposable:
            return StorageForeign(f"{what}. {_ANOTHER_FOLDER}")
        return StorageForeign(
            f"{what}, or its beginning is damaged. {_ANOTHER_FOLDER}, or restore your backup of this folder"
        )

    def without_remedy(self, damage: RecallogError) -> str:
        """The message of an error about this file, up to its remedy."""
        if isinstance(damage, StorageCorrupt):
            return damage.finding
        return str(damage).removesuffix(f". {_ANOTHER_FOLDER}")

    def too_new(self, version: int, known: int) -> StorageTooNew:
        or_delete = ", or delete it: its content can be computed again" if self._disposable else ""
        return StorageTooNew(
            f"{self._file} has format {version}; this version of Recallog reads up to {known}. Install a newer version "
            f"of Recallog to open it{or_delete}"
        )

    def too_old(self, version: int, known: int) -> StorageForeign:
        return StorageForeign(
            f"{self._file} has format {version}; this version of Recallog reads {known} only. Export it with the "
            "version that wrote it, and ingest the export"
        )

    def no_space_to_upgrade(self, folder: str, size_bytes: int) -> StorageUnavailable:
        return StorageUnavailable(
            f"{self._file} has an older format and cannot be written, and {folder} has no space to upgrade a copy "
            f"({size_bytes:,} bytes). Set TMPDIR to another folder"
        )

    def make_replaced(self) -> StorageReplaced:
        return StorageReplaced(
            f"{self._file} was deleted or replaced while it was open; nothing was written. Put it back, then try again"
        )

    def gone_without_log(self) -> StorageReplaced:
        return StorageReplaced(
            f"{self._file} is gone, and {self._path.name}-wal holds its last writes. Put the file back beside it, or "
            "move both away to begin a new one"
        )

    def log_gone(self) -> StorageReplaced:
        return StorageReplaced(
            f"the -wal of {self._file} is gone, and its last writes with it. Put {self._path}-wal back; or delete "
            f"{self._path}-shm, to continue without them"
        )

    def opened_without(self, ending: str) -> LockTimeout:
        return LockTimeout(
            f"another process has {self._file} open without its {ending}: that was deleted, or the process is stopped "
            "while it opens or closes the file. What it holds is saved when it next uses or closes the file. "
            f"Find it: fuser {self._path}"
        )

    def make_held(self, seconds: float) -> LockTimeout:
        holds = f"has held {self._file} for more than {seconds:g} s" if seconds else f"holds {self._file}"
        return LockTimeout(
            f"another process {holds}; nothing was written. Try again, or see who holds it: fuser {self._path}"
        )

    def changing(self) -> StorageUnavailable:
        return StorageUnavailable(f"{self._file} changes while it is read; try again")

    def unknown(self, what_happened: str) -> UnknownOutcome:
        return UnknownOutcome(
            f"{self._file}: {what_happened}; the write may or may not be there. Send the same events again: events "
            "that are there count once"
        )

    def read_only(self) -> RecallogError:
        return file_errors.read_only(self._what, self._path)

    @contextmanager
    def translate_errors(self, waited_seconds: Callable[[], float]) -> Iterator[None]:
        """Raise errors of SQLite and of the system as errors of Recallog. `waited_seconds` is for a lock."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            self._raise_translated(error, waited_seconds())
        except Damaged as damage:
            raise self.make_damaged(damage, position=damage.position, until=damage.until) from None
        except UnicodeDecodeError as error:  # SQLite's message quotes damaged bytes
            raise self.make_damaged(error) from error
        except OSError as error:
            raise file_errors.storage_error(error, self._what, self._path) from error

    def _raise_translated(self, error: sqlite3.DatabaseError, waited_seconds: float) -> NoReturn:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        undecodable = isinstance(error, sqlite3.OperationalError) and not hasattr(error, "sqlite_errorcode")
        if is_busy(error):
            raise self.make_held(waited_seconds) from error
        if code == sqlite3.SQLITE_FULL:
            raise file_errors.full(self._what, self._path) from error
        if code == sqlite3.SQLITE_READONLY:
            raise self.read_only() from error
        if code in _UNSOUND or undecodable:
            raise self.make_damaged(error) from error
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
            if not os.access(self._path.parent, os.W_OK):
                raise self.read_only() from error
            if not file_errors.has_space(self._path.parent):
                raise file_errors.full(self._what, self._path) from error
        raise StorageUnavailable(
            f"{self._file}: {error}; nothing was written. Check the disk and its free space"
        ) from error


def is_busy(error: Exception) -> bool:
    """Whether another process held a lock for too long."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, LockTimeout) or code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_unsound(error: sqlite3.DatabaseError) -> bool:
    """Whether a statement failed because of what its file contains, and not because of the disk or a lock."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF in _UNSOUND


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether something could not be read because its page, or its text, is damaged."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF == sqlite3.SQLITE_CORRUPT
