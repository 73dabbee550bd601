"""Folders that cannot be written: mounted read-only, or on a full disk. Only root can make them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FULL_DISK_BYTES = 4 * 1024 * 1024


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"SKIPPED LOUDLY: this user may not mount ({done.stderr.strip()})")


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """The same folder at another place, where nothing can be written."""
    place = folder.with_name(f"{folder.name}-read-only")
    place.mkdir()
    _mount("--bind", str(folder), str(place))
    try:
        _mount("-o", "remount,ro,bind", str(place))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def resize(disk: Path, size_bytes: int) -> None:
    """Give a small disk another size, which may be smaller than before, and no less than what is on it."""
    _mount("-o", f"remount,size={size_bytes}", str(disk))


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A new disk of `FULL_DISK_BYTES` at `place`."""
    place.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={FULL_DISK_BYTES}", "tmpfs", str(place))
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
        place.rmdir()


def fill(disk: Path) -> Path:
    """A file that takes all space of a small disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    return filler
