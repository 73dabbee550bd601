"""The projector lock of a folder: one process at a time folds a batch, the others wait."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from recallog_projections import private_files
from recallog_projections.file_errors import storage_error
from recallog_schemas.errors import LockTimeout

if TYPE_CHECKING:
    from filelock import FileLock

_POLL_SECONDS = 0.002


class FolderLock:
    """A file lock that is held for one batch, never while idle. The system releases it if its process dies."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._among_tasks = asyncio.Lock()

    @cached_property
    def _among_processes(self) -> "FileLock":
        return private_files.lock(self._path)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        async with self._among_tasks:
            await self._acquire()
            try:
                yield
            finally:
                self._among_processes.release()

    async def _acquire(self) -> None:
        from filelock import Timeout

        give_up = time.monotonic() + self._wait_seconds
        while True:
            try:
                self._among_processes.acquire(blocking=False)
            except Timeout:
                if time.monotonic() > give_up:
                    raise LockTimeout(
                        f"another process has held {self._path} for more than {self._wait_seconds:g} s; nothing was "
                        f"written. Try again, or find the process that holds it: fuser {self._path}"
                    ) from None
                await asyncio.sleep(_POLL_SECONDS)
            except OSError as error:
                raise storage_error(error, "lock file", self._path) from error
            else:
                return
