"""Keys in a file of a memory's folder."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from recallog import layout
from recallog_projections import private_files
from recallog_projections.file_errors import storage_error
from recallog_projections.syncing import sync_names
from recallog_schemas import limits
from recallog_schemas.errors import StorageCorrupt
from recallog_service.access import key_document
from recallog_service.access.key_document import KeysDamaged
from recallog_service.access.keys import Key, KeyStore
from recallog_streams.locks.folder import FolderLock

_WHAT = "file of keys"


class KeyFile(KeyStore):
    """Keys in a file that only its owner can read. It is read again when another process has changed it."""

    def __init__(self, home: Path) -> None:
        self._path = home / layout.KEYS
        self._lock = FolderLock(home / layout.KEYS_LOCK, limits.LOCK_WAIT_SECONDS)
        self._version: tuple[int, int, int] | None = None
        """Identifies the version of the file that `_stored` was read from; None if there was no file."""
        self._stored: Mapping[str, Key] = {}

    async def get(self, id_: str) -> Key | None:
        return self._keys().get(id_)

    async def all(self) -> Sequence[Key]:
        return list(self._keys().values())

    async def put(self, key: Key) -> None:
        try:
            private_files.make_folder(self._path.parent)
            async with self._lock():
                self._write(list({**self._keys(), key.id: key}.values()))
        except OSError as error:
            raise storage_error(error, _WHAT, self._path) from error

    async def close(self) -> None:
        """Does nothing: the file is open only while it is read or written."""

    def _keys(self) -> Mapping[str, Key]:
        try:
            found = self._path.stat()
            version = found.st_mtime_ns, found.st_size, found.st_ino
            if version != self._version:
                self._stored = {key.id: key for key in key_document.read_keys(self._path.read_bytes())}
                self._version = version
        except FileNotFoundError:
            self._version, self._stored = None, {}
        except OSError as error:
            raise storage_error(error, _WHAT, self._path) from error
        except KeysDamaged:
            raise StorageCorrupt(
                f"the {_WHAT} {self._path} is damaged: its checksum does not match its content",
                remedy="Put it back from your backup, or delete it and make new keys",
            ) from None
        return self._stored

    def _write(self, keys: list[Key]) -> None:
        """Replace the file. Readers find the old or the new one, also after a crash."""
        with NamedTemporaryFile(dir=self._path.parent, prefix=f".{layout.KEYS}.", delete=False) as file:
            try:
                Path(file.name).chmod(private_files.FILE)  # already so, unless the umask is unusual
                file.write(key_document.seal_keys(keys, indent=2))
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(self._path)
                sync_names(self._path.parent)  # otherwise a revoked key could be valid again after a power failure
            except BaseException:
                with suppress(OSError):
                    Path(file.name).unlink()
                raise
