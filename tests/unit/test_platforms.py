"""What differs between operating systems: locks of files, here also those of Windows, by a stand-in of its module."""

import os
import sys
from collections.abc import Iterator
from importlib import reload
from pathlib import Path
from types import ModuleType

import pytest

from recallog_projections import file_locks
from recallog_projections.private_files import LockFile, LockHeld, hold_lock

pytestmark = pytest.mark.models()


class LockedBytes(ModuleType):
    """A stand-in for `msvcrt`: a byte of a file is locked for one descriptor; another one is refused."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: dict[tuple[int, int], int] = {}

    def locking(self, descriptor: int, mode: int, size: int) -> None:
        assert (os.lseek(descriptor, 0, os.SEEK_CUR), size) == (0, 1)
        status = os.fstat(descriptor)
        file = (status.st_dev, status.st_ino)
        if mode == self.LK_UNLCK:
            assert self.held.pop(file) == descriptor
        elif self.held.setdefault(file, descriptor) != descriptor:
            raise PermissionError(13, "Permission denied")


@pytest.fixture(params=["posix", "windows"])
def platform(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "windows":
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setitem(sys.modules, "msvcrt", LockedBytes())
        reload(file_locks)
    yield request.param
    monkeypatch.undo()
    reload(file_locks)


@pytest.mark.usefixtures("platform")
def test_a_lock_is_held_by_one_object_at_a_time(tmp_path: Path) -> None:
    one, other = LockFile(tmp_path / "lock"), LockFile(tmp_path / "lock")
    assert (one.acquire(), other.acquire(), one.is_held, other.is_held) == (True, False, True, False)
    one.release()
    assert (other.acquire(), one.acquire()) == (True, False)
    other.release()


@pytest.mark.usefixtures("platform")
def test_locks_of_different_files_do_not_meet(tmp_path: Path) -> None:
    one, other = LockFile(tmp_path / "one"), LockFile(tmp_path / "other")
    assert (one.acquire(), other.acquire()) == (True, True)
    one.release()
    other.release()


@pytest.mark.usefixtures("platform")
def test_who_cannot_wait_is_told_that_a_lock_is_held(tmp_path: Path) -> None:
    with hold_lock(tmp_path / "lock"), pytest.raises(LockHeld), hold_lock(tmp_path / "lock"):
        pass
    with hold_lock(tmp_path / "lock"):
        pass


def test_modules_of_one_system_alone_are_imported_in_two_places() -> None:
    """Everything else imports on all systems. The second place is in a function of a process that some do not have."""
    root = Path(__file__).parents[2]
    places = {"schemas", "projections", "streams", "memory", "service"}
    files = [file for place in places for file in (root / place).rglob("*.py")]
    of_one_system = {"import fcntl", "import msvcrt", "import pwd", "import resource"}
    found = {file.name for file in files if of_one_system & lines(file)}
    assert found == {"file_locks.py", "starting.py"}


def lines(file: Path) -> set[str]:
    return {line.strip() for line in file.read_text(encoding="utf-8").splitlines()}
