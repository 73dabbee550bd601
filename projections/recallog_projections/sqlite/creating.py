"""Creating and replacing a SQLite file, so that no process sees an incomplete one."""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from recallog_projections import private_files
from recallog_projections.sqlite.connecting import PAGE_BYTES, connect
from recallog_projections.sqlite.format import FileFormat
from recallog_projections.sqlite.write_ahead_log import inode_of
from recallog_projections.syncing import sync


def create(
    path: Path,
    format: FileFormat,  # noqa: A002
    wait_seconds: float,
    *,
    instead_of: int | None = None,
    aside: Path | None = None,
) -> bool:
    """Write a new file under a temporary name and link it in one step.

    `instead_of` is the inode of a file to replace, which is renamed to `aside` or deleted. Processes that have it open
    detect it at their next use. Returns whether it was replaced here, not by another process.

    Raises `LockTimeout` if another process has been creating the file for more than `wait_seconds`.
    """
    private_files.make_folder(path.parent)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    try:
        private_files.open_file(new, "xb").close()  # SQLite gives its rights to `-wal` and `-shm`
        with closing(connect(new, "rw", wait_seconds)) as connection:
            connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA application_id={format.application_id}")
            connection.execute(f"PRAGMA user_version={format.version}")
            connection.executescript(format.schema)
        with private_files.hold_lock(Path(f"{path}.making"), wait_seconds):
            replaces = instead_of is not None and inode_of(str(path)) == instead_of
            if replaces:
                _remove(path, aside)
            if not path.exists():  # otherwise another process has created it, which serves as well
                _clear_leftovers(path, format)
                os.link(new, path)
        sync(path.parent)
    except private_files.LockHeld:
        raise format.errors(path).make_held(wait_seconds) from None
    finally:
        for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm")):
            leftover.unlink(missing_ok=True)
    return replaces


def is_ours(path: Path, format: FileFormat, wait_seconds: float) -> bool:  # noqa: A002
    """Whether a damaged file was written by Recallog, or is empty, so that nothing is lost with it."""
    with suppress(sqlite3.Error, OSError):
        if path.stat().st_size == 0:
            return True
        with closing(connect(path, "rw", wait_seconds)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            return bool(application_id == format.application_id)
    return False


def _remove(path: Path, aside: Path | None) -> None:
    """Delete the file, or rename it to `aside` with its write-ahead log."""
    if aside is None:
        path.unlink()
        return
    for ending in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{ending}").rename(f"{aside}{ending}")


def _clear_leftovers(path: Path, format: FileFormat) -> None:  # noqa: A002
    """Delete the write-ahead log of a deleted file: SQLite would apply it to a new file of the same name."""
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not format.disposable and log.exists() and log.stat().st_size:
        raise format.errors(path).gone_without_log()
    log.unlink(missing_ok=True)
    index.unlink(missing_ok=True)
