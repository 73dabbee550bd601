"""The projector lock of a folder: one process at a time folds a batch, the others wait."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from recallog_projections.file_errors import storage_error
from recallog_projections.private_files import LockFile
from recallog_schemas.errors import LockTimeout

_POLL_SECONDS = 0.002


class FolderLock:
    """A file lock that is held for one batch, never while idle. The system releases it if its process dies."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self._path = path
        self._wait_seconds = wait_seconds
        self._among_tasks = asyncio.Lock()
        self._among_processes = LockFile(path)

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[None]:
        async with self._among_tasks:
            await self._acquire()
            try:
                yield
            finally:
                self._among_processes.release()

    async def _acquire(self) -> None:
        give_up = time.monotonic() + self._wait_seconds
        while not self._try():
            if time.monotonic() > give_up:
                raise LockTimeout(
                    f"another process has held {self._path} for more than {self._wait_seconds:g} s; nothing was "
                    f"written. Try again, or find the process that holds it: fuser {self._path}"
                )
            await asyncio.sleep(_POLL_SECONDS)

    def _try(self) -> bool:
        try:
            return self._among_processes.acquire()
        except OSError as error:
            raise storage_error(error, "lock file", self._path) from error
