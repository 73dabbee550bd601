"""Ownership of a folder's index by a program that has opened it with a custom embedder.

The engine can be open in one process. The program holds the lock that the service process of the folder would hold, and
identifies itself in a file, so that other processes know why they cannot start a service.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path

import msgspec

from recallog import layout
from recallog_projections import private_files
from recallog_projections.file_errors import storage_error
from recallog_schemas.errors import IndexUnavailable


class IndexOwner(msgspec.Struct, frozen=True):
    """The process that has the index of a folder open with a custom embedder."""

    pid: int
    model: str


_owners = msgspec.json.Decoder(IndexOwner)


class Ownership:
    """Holds the index of one folder, from `take` to `release`. The system releases it if the process dies."""

    def __init__(self, home: Path, model: str) -> None:
        self._home = home
        self._owner = IndexOwner(os.getpid(), model)
        self._taking = threading.Lock()
        self._released = False
        self._lock = private_files.LockFile(home / layout.INDEX_LOCK)

    def has_index(self) -> bool:
        """Whether the folder has an index."""
        return any((self._home / path).exists() for path in (layout.INDEX_ROWS, layout.INDEX_ENGINE))

    def take(self) -> None:
        """Take the index, unless this object holds it already. May block: call it in a thread.

        Raises `IndexUnavailable` if another process has it, or if the folder cannot be written.
        """
        with self._taking:
            if not self._lock.is_held:
                self._take()
        if self._released:  # meanwhile: the caller may have been cancelled, and does not know that it is taken
            self.release()

    def _take(self) -> None:
        file = self._home / layout.INDEX_OWNER
        try:
            private_files.make_folder(self._home / layout.INDEX)
            if not self._lock.acquire():
                raise self._make_held_error()
            aside = file.with_suffix(".new")
            with private_files.open_file(aside, "wb") as written:
                written.write(msgspec.json.encode(self._owner))
            aside.replace(file)
        except OSError as error:
            self._lock.release()
            raise IndexUnavailable(str(storage_error(error, "folder of the index", file.parent))) from error

    def release(self) -> None:
        """Release the index for good."""
        self._released = True
        with self._taking:
            if self._lock.is_held:
                with suppress(OSError):
                    (self._home / layout.INDEX_OWNER).unlink(missing_ok=True)
                self._lock.release()

    def _make_held_error(self) -> IndexUnavailable:
        owner = _read_owner(self._home)
        if owner is not None:
            return held_by(self._home, owner)
        return IndexUnavailable(
            f"another process serves the index of {self._home}, with the embedder of its settings, and ends some "
            f"minutes after its last user. Its log is {self._home / layout.INDEX_LOG}"
        )


def owner_of(home: Path) -> IndexOwner | None:
    """The owner of the index of a folder; None if there is none. May block: call it in a thread.

    The file alone is not proof, because a killed process leaves it behind.
    """
    owner = _read_owner(home)
    if owner is None:
        return None
    try:
        with private_files.hold_lock(home / layout.INDEX_LOCK):
            (home / layout.INDEX_OWNER).unlink(missing_ok=True)
    except private_files.LockHeld:
        return owner
    except OSError:
        pass
    return None


def held_by(home: Path, owner: IndexOwner) -> IndexUnavailable:
    """The error of a process that needs the index while `owner` has it."""
    return IndexUnavailable(
        f"process {owner.pid} has the index of {home} open with an embedder of its own, {owner.model}; only that "
        "process can use it until it closes the memory"
    )


def _read_owner(home: Path) -> IndexOwner | None:
    try:
        return _owners.decode((home / layout.INDEX_OWNER).read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
