"""The folder of the embedded engine as any process may look at it: its collections and its size."""

import os
import re
from contextlib import suppress
from pathlib import Path

NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""The names of collections."""

OPENING_BYTES_MIN = 128 * 1024 * 1024
"""The space that must be free to create or open a shard, or to delete points: opening one has taken 53 MB on a tmpfs.
An open shard is searched without writing."""


def disk_bytes(folder: Path) -> int:
    """The blocks that a folder takes on disk, in bytes. Its files are sparse."""
    size = 0
    for parent, folders, files in os.walk(folder):  # which leaves out what is deleted meanwhile
        for name in (*folders, *files):
            with suppress(FileNotFoundError):  # threads of the library rename and delete files
                size += Path(parent, name).lstat().st_blocks * 512
    return size


def collections_in(folder: Path) -> set[str]:
    """The names of the collections in a folder, including collections that another process has open."""
    try:
        entries = [*folder.iterdir()]
    except FileNotFoundError:
        return set()
    return {entry.name for entry in entries if entry.is_dir() and NAME.fullmatch(entry.name)}
