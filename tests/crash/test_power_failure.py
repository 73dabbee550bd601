"""Power failures: what is acknowledged is there afterwards, and the rest is built again.

`make power N=2000` tries more moments of a recorded run.
"""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from power.campaign import Failure, Outcome, failures, run
from power.disk import SECTOR, Disk
from power.recording import Recording, new_folder, record, what_is_missing
from power.trace import Entry
from power.workload import OPENINGS
from support import notices

SEED = 7
FAILURES = 20
ROOT = Path("/disk")
FILE, OTHER, FOLDER = 2, 3, 4
"""Numbers of inodes."""


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = new_folder()
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def recording(folder: Path, request: pytest.FixtureRequest) -> Recording:
    if missing := what_is_missing():
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(f"CI=true, and power failures cannot be tested: {missing}", pytrace=False)
        notices.add(request.config, "power failures were NOT tested", missing)
        pytest.skip(missing)
    return record(folder / "base")


def found(recording: Recording, wanted: list[Failure], folder: Path) -> list[Outcome]:
    folder.mkdir()
    return [each for each in run(recording, wanted, SEED, folder, lambda _: None) if each.problems]


def test_after_a_power_failure_at_any_moment_nothing_acknowledged_is_lost(recording: Recording, folder: Path) -> None:
    assert found(recording, failures(recording, SEED, FAILURES), folder / "any") == []


def test_a_process_that_acknowledges_first_after_another_has_only_read_loses_nothing(
    recording: Recording, folder: Path
) -> None:
    first = [moment for moment in recording.acknowledgements() if "by" in recording.said(moment)[-1]]
    wanted = [Failure(number, moment, 0.0) for number, moment in enumerate(first)]
    assert len(wanted) >= OPENINGS
    assert found(recording, wanted, folder / "first") == []


def test_the_recording_is_complete(recording: Recording, folder: Path) -> None:
    disk = recording.disk()
    for entry in recording.entries:
        disk.apply(entry)
    disk.write(folder / "again", random.Random(SEED), 1.0)
    again, there = contents(folder / "again"), contents(recording.root)
    # Files have 32 MB: a comparison of all bytes would take the memory of the machine to explain a difference.
    assert {path for path in again.keys() | there.keys() if again.get(path) != there.get(path)} == set()


def contents(folder: Path) -> dict[str, bytes]:
    """All files by path, except those that processes share in memory."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# The disk of these tests loses what was not synced.


def opened(inode: int, path: str) -> Entry:
    return Entry("o", inode, 0, 0, str(ROOT / path).encode(), b"")


def made(inode: int, path: str) -> Entry:
    return Entry("d", inode, 0, 0, str(ROOT / path).encode(), b"")


def renamed(path: str, to: str) -> Entry:
    return Entry("r", 0, 0, 0, str(ROOT / path).encode(), str(ROOT / to).encode())


def written(inode: int, data: bytes, offset: int = 0) -> Entry:
    return Entry("w", inode, offset, len(data), data, b"")


def synced(inode: int) -> tuple[Entry, Entry]:
    """An inode that no record has made is the root."""
    return Entry("b", inode, 0, inode, b"", b""), Entry("e", inode, 0, inode, b"", b"")


def after(tmp_path: Path, *entries: Entry, chance: float = 0.0, seed: int = SEED) -> dict[str, bytes]:
    """The files after a power failure."""
    disk = Disk(ROOT)
    for entry in entries:
        disk.apply(entry)
    disk.write(tmp_path / str(seed), random.Random(seed), chance)
    return contents(tmp_path / str(seed))


def test_what_was_synced_by_content_and_name_is_there(tmp_path: Path) -> None:
    assert after(tmp_path, opened(FILE, "a"), written(FILE, b"new"), *synced(FILE), *synced(1)) == {"a": b"new"}


def test_a_file_whose_name_was_not_synced_is_lost(tmp_path: Path) -> None:
    assert after(tmp_path, opened(FILE, "a"), written(FILE, b"new"), *synced(FILE)) == {}


def test_a_file_in_a_folder_whose_own_name_was_not_synced_is_lost(tmp_path: Path) -> None:
    entries = [made(FOLDER, "f"), opened(FILE, "f/a"), written(FILE, b"new"), *synced(FILE), *synced(FOLDER)]
    assert after(tmp_path, *entries) == {}


def test_what_was_written_after_the_sync_is_lost(tmp_path: Path) -> None:
    entries = [opened(FILE, "a"), written(FILE, b"new"), *synced(FILE), *synced(1), written(FILE, b"er", 3)]
    assert after(tmp_path, *entries) == {"a": b"new"}


def test_a_write_during_a_sync_is_not_safe(tmp_path: Path) -> None:
    begins, ends = synced(FILE)
    entries = [opened(FILE, "a"), *synced(1), written(FILE, b"new"), begins, written(FILE, b"er", 3), ends]
    assert after(tmp_path, *entries) == {"a": b"new"}


def test_a_renamed_file_has_the_old_name_until_the_folder_is_synced(tmp_path: Path) -> None:
    before = [opened(FILE, "a"), *synced(1), opened(OTHER, "b"), *synced(1), renamed("b", "a")]
    assert after(tmp_path, *before).keys() == {"a", "b"}
    assert after(tmp_path, *before, *synced(1), seed=1).keys() == {"a"}


def test_sectors_that_were_not_synced_are_written_or_not_each_by_itself(tmp_path: Path) -> None:
    entries = [opened(FILE, "a"), written(FILE, b"o" * 4 * SECTOR), *synced(FILE), *synced(1)]
    entries.append(written(FILE, b"n" * 4 * SECTOR))
    seen = {after(tmp_path, *entries, chance=0.5, seed=seed)["a"] for seed in range(100)}
    assert seen == {b"".join(bytes([letter]) * SECTOR for letter in each) for each in _all_of(b"on", 4)}


def _all_of(letters: bytes, count: int) -> list[bytes]:
    return [bytes([first]) + rest for first in letters for rest in _all_of(letters, count - 1)] if count else [b""]
