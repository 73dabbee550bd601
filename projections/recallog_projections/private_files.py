"""Files and folders of a memory, which are readable and writable to their owner alone, whatever the umask is.

Only new ones are made so: what exists keeps the rights that its owner gave it.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

if TYPE_CHECKING:
    from filelock import FileLock

FILE, FOLDER = 0o600, 0o700
UMASK = 0o077
"""Of a process of its own whose libraries create files too."""


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


def _descriptor(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, FILE)
    if hasattr(os, "fchmod") and os.fstat(descriptor).st_mode & FILE != FILE:  # an unusual umask
        os.fchmod(descriptor, FILE)
    return descriptor


def lock(path: Path, timeout: float = 0, *, thread_local: bool = True) -> "FileLock":
    """The lock file at `path`, which is created when it is acquired first."""
    from filelock import FileLock  # most commands take no lock

    return FileLock(path, timeout=timeout, mode=FILE, thread_local=thread_local)


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
