"""Files and folders of a memory, which are readable and writable to their owner alone, whatever the umask is.

This applies to new ones only: existing ones keep the rights that their owner gave them.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal

from recallog_projections import file_locks

_POLL_SECONDS = 0.01
FILE, FOLDER = 0o600, 0o700
UMASK = 0o077
"""For a separate process of Recallog whose libraries also create files."""


def make_folder(path: Path) -> None:
    """Create a folder, and those above it that are missing. Raises `OSError`, also if `path` is a file."""
    if path.parent != path and not path.parent.exists():
        make_folder(path.parent)
    try:
        path.mkdir(FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        path.chmod(FOLDER)


def open_file(path: Path, mode: Literal["ab", "wb", "xb", "a+b"]) -> BinaryIO:
    """The opened file, which is created if it does not exist."""
    return open(path, mode, opener=_descriptor)  # a `Path` takes no opener


def _descriptor(path: str | Path, flags: int) -> int:
    descriptor = os.open(path, flags, FILE)
    if hasattr(os, "fchmod") and os.fstat(descriptor).st_mode & FILE != FILE:  # an unusual umask
        os.fchmod(descriptor, FILE)
    return descriptor


class LockFile:
    """A lock between processes, and between the objects of one process. The system releases it if its process dies.

    The file and its folder are created when it is acquired first, and remain. Their errors are `OSError`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds it."""
        return self._descriptor is not None

    def acquire(self) -> bool:
        """Take the lock; False if it is held."""
        descriptor = self._open()
        try:
            is_held = file_locks.try_lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        if not is_held:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def _open(self) -> int:
        try:
            return _descriptor(self._path, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:
            make_folder(self._path.parent)
            return _descriptor(self._path, os.O_RDWR | os.O_CREAT)

    def release(self) -> None:
        """Release the lock if this object holds it."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            file_locks.unlock(descriptor)  # a child that was forked meanwhile has it open, too
            os.close(descriptor)


class LockHeld(Exception):
    """Another process or object holds a lock."""


@contextmanager
def hold_lock(path: Path, wait_seconds: float = 0) -> Iterator[None]:
    """Hold the lock at `path`. Raises `LockHeld` if another holder has kept it for more than `wait_seconds`."""
    lock, give_up = LockFile(path), time.monotonic() + wait_seconds
    while not lock.acquire():
        if time.monotonic() >= give_up:
            raise LockHeld
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


def restrict(folder: Path) -> None:
    """Make a folder and what is in it private: a library has created the files with the umask of this process."""
    for parent, _, names in os.walk(folder):
        _restrict(Path(parent), FOLDER)
        for name in names:
            _restrict(Path(parent) / name, FILE)


def _restrict(path: Path, mode: int) -> None:
    with suppress(FileNotFoundError, PermissionError):  # the library has renamed or deleted it, or it is another user's
        if stat.S_IMODE(path.stat().st_mode) != mode:
            path.chmod(mode)
