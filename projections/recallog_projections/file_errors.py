"""Errors of the operating system about a file of a memory, as errors of Recallog that say what to do."""

import errno
import os
import tempfile
from pathlib import Path

from recallog_schemas.errors import StorageError, StorageFull, StorageReadOnly, StorageUnavailable

ANOTHER_FOLDER = "name another folder with --home or RECALLOG_HOME"

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PROBE_BYTES = 64 * 1024
_NO_SUCH_PATH = {errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL}


def storage_error(error: OSError, what: str, path: Path) -> StorageError:
    """`error`, which concerns `path`, as an error that names it. `what` is the kind of file, for example "ledger"."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return read_only(what, path)
    if error.errno in _NO_SPACE:
        return full(what, path)
    if error.errno in _NO_SUCH_PATH:
        reason = _why_no_folder(path.parent) or error.strerror
        return StorageError(f"the {what} cannot be at {path}: {reason}. Correct the folder's name, or {ANOTHER_FOLDER}")
    return StorageUnavailable(f"the {what} {path}: {error.strerror or error}")


def read_only(what: str, path: Path) -> StorageReadOnly:
    """The error of a process that may not write `path`."""
    if is_on_read_only_mount(path):
        return StorageReadOnly(
            f"the {what} {path} is on a read-only file system. Mount it for writing, or {ANOTHER_FOLDER}"
        )
    if os.access(path, os.F_OK) and not os.access(path, os.R_OK):
        return StorageReadOnly(f"no right to read the {what} {path}. Give this user the right to read and write it")
    return StorageReadOnly(
        f"no right to write the {what} {path}. Give this user the right to write its folder, or {ANOTHER_FOLDER}"
    )


def full(what: str, path: Path) -> StorageFull:
    """The error of a process that found no space, or reached its quota, while writing `path`."""
    return StorageFull(f"no space left for the {what} {path}; nothing was written. Free some space and try again")


def why_not_writable(folder: Path) -> str:
    """Why files in `folder` cannot be written, in a few words; "" if no reason is known."""
    if is_on_read_only_mount(folder):
        return "it is on a read-only file system"
    if not os.access(folder, os.W_OK):
        return "there is no right to write it"
    return "" if has_space(folder) else "no space is left"


def is_on_read_only_mount(path: Path) -> bool:
    """Whether `path`, or the nearest folder above it that exists, is on a file system that is mounted read-only."""
    status = _file_system(path)
    return status is not None and bool(status.f_flag & os.ST_RDONLY)


def has_space(path: Path) -> bool:
    """Whether the file system of `path` has a free block and a free inode for this user."""
    status = _file_system(path)
    return status is None or (status.f_bavail > 0 and (status.f_favail > 0 or status.f_files == 0))


def has_room(folder: Path, bytes_min: int) -> bool:
    """Whether the file system of `folder`, which exists, has this many free bytes, of which this user may take some.

    Only the latter shows whether a quota is reached.
    """
    status = _file_system(folder)
    if status is not None and status.f_bavail * status.f_frsize < bytes_min:
        return False
    if not hasattr(os, "posix_fallocate"):  # macOS, Windows
        return True
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, _PROBE_BYTES)
    except OSError as error:
        return error.errno not in _NO_SPACE
    return True


def _file_system(path: Path) -> "os.statvfs_result | None":
    if not hasattr(os, "statvfs"):  # Windows
        return None
    for place in (path, *path.absolute().parents):
        try:
            return os.statvfs(place)
        except OSError:
            continue
    return None


def _why_no_folder(folder: Path) -> str:
    """Why a folder of this name does not exist and cannot be created; "" if no reason is known."""
    for place in (folder, *folder.parents):
        try:
            if not place.is_dir() and place.exists():
                return f"{place} is a file, not a folder"
            place.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            return error.strerror or str(error)
    return ""
