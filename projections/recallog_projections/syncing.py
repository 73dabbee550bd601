"""Names of files that survive a power failure: a sync of a file makes its content safe, but not its name."""

import os
from contextlib import suppress
from pathlib import Path


def sync(path: Path) -> None:
    """Make the content of a file safe, or the names in a folder."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def sync_names(folder: Path) -> None:
    """Make the names in a folder safe, and its own name and those of the folders above, up to the root of its disk.

    A folder above that this user may not read is skipped: another user created it.
    """
    folder = folder.absolute()
    sync(folder)
    disk = folder.stat().st_dev
    for above in folder.parents:
        with suppress(PermissionError):
            if above.stat().st_dev != disk:
                return
            sync(above)
