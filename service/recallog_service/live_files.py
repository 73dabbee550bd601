"""Watches files that other programs write: which ones have changed since the last read.

The states of the files are compared, so that nothing is missed: a file that was renamed, truncated or replaced has
another state. Notifications of the system (such as inotify) only end the wait.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recallog_projections.concurrency import cancel_all
from recallog_service.input_files import paths_in

_POLL_SECONDS = 1.0
"""Seconds between two checks. Network file systems do not report changes by other machines."""
_SETTLE_MILLISECONDS = 100
_SHARE_OF_TIME = 5
"""The wait is this many times as long as the preceding work, so that a file of 100 MB is not read again for each
line."""


class _State(NamedTuple):
    inode: int
    size: int
    modified: int


async def changed_files(names: Sequence[str]) -> AsyncIterator[list[str]]:
    """The files of `names` and of folders among them; then, without end, files that are new or have changed.

    A yielded list may be empty. A file that the caller could not read is yielded again when it changes.
    """
    read: dict[str, _State] = {}
    woken = asyncio.Event()
    watching = asyncio.create_task(_watch([name for name in names if Path(name).is_dir()], woken))
    try:
        while True:
            began = time.monotonic()
            woken.clear()
            found = _states(names)
            changed = [path for path, state in found.items() if read.get(path) != state]
            read = found
            yield changed
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), _POLL_SECONDS)
            await asyncio.sleep((time.monotonic() - began if changed else 0.0) * _SHARE_OF_TIME)
    finally:
        await cancel_all(watching)


def _states(names: Sequence[str]) -> dict[str, _State]:
    found: dict[str, _State] = {}
    for name in names:
        for path in paths_in(Path(name)) if Path(name).is_dir() else [Path(name)]:
            with suppress(OSError):  # removed meanwhile
                state = path.stat()
                found[os.fspath(path)] = _State(state.st_ino, state.st_size, state.st_mtime_ns)
    return found


async def _watch(folders: Sequence[str], woken: asyncio.Event) -> None:
    """Set the event after each change in the folders. Returns if the system does not report changes."""
    from watchfiles import awatch

    with suppress(OSError):
        async for _ in awatch(*folders, watch_filter=None, step=_SETTLE_MILLISECONDS, ignore_permission_denied=True):
            woken.set()
