"""The write-ahead log of a SQLite file, the `-wal`, and its index, the `-shm`: whether they are still in place.

SQLite opens both by name once and never looks again. If one is deleted, the connections that have it open go on writing
to it, and what they commit is lost when the last of them ends without closing the file. Connections that open the file
meanwhile see another `-wal` with the same index, or the same `-wal` with another index, and both damage the file.
"""

import errno
import os
import secrets
import sqlite3
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

_HEADER = struct.Struct("=IIIBBHI")
"""The beginning of a `-shm` (SQLite's WAL-mode file format, section 2.1): version, unused, change counter, whether it
is initialised, byte order of checksums, page size, and the number of valid frames in the `-wal`."""
_HEADER_BYTES = 48
_COPIED_AT = 96
"""Where the number of frames is that were copied into the file: after two copies of the header."""


class LogInodes(NamedTuple):
    """The `-wal` and the `-shm` of a file, by inode; None: it does not exist."""

    wal: int | None
    shm: int | None


class WriteAheadLog:
    """The `-wal` and the `-shm` of the file at `path`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.log, self.index = f"{path}-wal", f"{path}-shm"

    def inodes(self) -> LogInodes:
        return LogInodes(inode_of(self.log), inode_of(self.index))

    def is_in_place(self, opened: LogInodes) -> bool:
        """Whether both still are those of `opened`. Called several times in each transaction."""
        try:
            return os.stat(self.log).st_ino == opened.wal and os.stat(self.index).st_ino == opened.shm  # noqa: PTH116
        except OSError:
            return False

    def log_bytes(self) -> int:
        """The size of the `-wal`; 0 if there is none."""
        return _size_bytes(self.log)

    def index_bytes(self) -> int:
        """The size of the `-shm`; 0 if there is none."""
        return _size_bytes(self.index)

    def was_left_by(self, opened: LogInodes) -> bool:
        """Whether the `-shm` of `opened`, which this process has open, still describes the `-wal` of `opened`.

        It does until another process writes to a new `-wal` with that `-shm`. No process of Recallog does so before the
        deleted `-wal` was moved into the file, nor opens the file without its `-shm` while others have it open.
        """
        now = self.inodes()
        if now.shm not in (None, opened.shm):
            return False
        if now.wal == opened.wal or self.log_bytes() == 0:
            return True
        salts = _open_content(opened.wal, 16, 8)
        return len(salts) == 8 and salts == _open_content(opened.shm, 32, 8)

    def put_aside_another(self, opened: LogInodes) -> None:
        """Rename a `-wal` that is not the one of `opened`, and not empty: SQLite would apply it to the file."""
        if self.inodes().wal != opened.wal and self.log_bytes():
            Path(self.log).rename(f"{self.log}.{secrets.token_hex(4)}.aside")

    def lost_frames(self) -> int:
        """How many frames the `-shm` counts that are neither in the file nor in the `-wal`, which is missing or empty.

        Only for a file that no process has open. After a crash the `-shm` is as old as the `-wal`.
        """
        if self.log_bytes():
            return 0
        with suppress(OSError):
            data = Path(self.index).read_bytes()[: _COPIED_AT + 4]
            if len(data) == _COPIED_AT + 4 and data[:_HEADER_BYTES] == data[_HEADER_BYTES:_COPIED_AT]:
                _, _, _, initialised, _, _, frames = _HEADER.unpack_from(data)
                (copied,) = struct.unpack_from("=I", data, _COPIED_AT)
                return max(0, frames - copied) if initialised else 0
        return 0

    def is_alone(self) -> bool | None:
        """Whether no connection of any process has the file open; None if that cannot be determined.

        If so, the `-wal` is moved into the file, as its last user would have done by closing it.
        """
        uri = f"file:{quote(str(self._path.absolute()))}?mode=rw"
        try:
            with closing(sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)) as connection:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                connection.execute("PRAGMA schema_version").fetchone()
        except sqlite3.DatabaseError as error:
            return False if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY else None
        return True


_NO_FILE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def status(path: str) -> os.stat_result | None:
    """The status of a file; None if the path leads to no file."""
    try:
        return os.stat(path)  # noqa: PTH116 - several times in each transaction, and half the time of Path.stat
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def inode_of(path: str) -> int | None:
    """The inode of a file; None if it does not exist."""
    found = status(path)
    return None if found is None else found.st_ino


def _size_bytes(path: str) -> int:
    found = status(path)
    return 0 if found is None else found.st_size


def _open_content(inode: int | None, start: int, size_bytes: int) -> bytes:
    """A part of a file that this process has open, perhaps deleted; empty if it cannot be found.

    It is read through the descriptor that SQLite has: closing another one would drop SQLite's locks.
    """
    with suppress(OSError):
        for name in os.listdir("/dev/fd"):  # noqa: PTH208 - one of them is the listing's own, which is closed by now
            with suppress(OSError):
                if os.fstat(int(name)).st_ino == inode:
                    return os.pread(int(name), size_bytes, start)
    return b""
