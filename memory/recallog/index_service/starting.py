"""The start of the index service: its lock, signs of life for clients that wait, and the record of its last crashes.

Imports are deferred, so that the process can show that it is alive before it imports the engine and the model.
"""

import faulthandler
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from recallog import layout
from recallog.json_lines import JsonLines

ALIVE_SECONDS = 0.25
"""How often a starting service shows that it is alive."""
HANG_SECONDS = 120.0
"""How long the event loop may be blocked before the process ends itself. The engine blocks it in each call: up to half
a second, and for seconds if a large index is opened on a slow disk. On damaged files, a call may never return."""
CRASHES = 2
"""How often a process may crash or hang in the engine before the engine's folder is set aside. Its files are then
considered damaged, and the next process would end in the same way."""
CRASH_SECONDS = 24 * 3600.0
"""How long crashes are remembered."""
_REPORTS = re.compile(rb"^(?=Fatal Python error|Timeout \()", re.MULTILINE)
"""The beginnings of the reports of `faulthandler`."""
_ENGINE = b"engines/edge.py"
"""A part of the stacks in a report if the engine was called."""

_log = logging.getLogger("recallog.index")


def main() -> None:
    """Serve the folder that standard input names. Returns at once if another process serves it."""
    from recallog_projections import private_files

    os.umask(private_files.UMASK)  # the engine's library creates files too
    line = _line(0)
    home = Path(json.loads(line)["home"])
    private_files.make_folder(home / layout.INDEX)
    logging.basicConfig(level=logging.INFO, handlers=[handler := logging.StreamHandler()])
    handler.setFormatter(JsonLines())
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs each request
    try:
        with private_files.hold_lock(home / layout.INDEX_LOCK), crashes(home) as alive, _starting(home) as started:
            from recallog.index_service.service import serve

            serve(line, started, alive)
    except private_files.LockHeld:
        return


@contextmanager
def _starting(home: Path) -> Iterator[Event]:
    """Show that this process is alive until the yielded event is set, which means that the service answers."""
    path, started = home / layout.INDEX_STARTING, Event()

    def touch() -> None:
        while not started.wait(ALIVE_SECONDS):
            with suppress(OSError):
                path.touch()
        path.unlink(missing_ok=True)

    path.touch()
    thread = Thread(target=touch, name="recallog-starting", daemon=True)
    thread.start()
    try:
        yield started
    finally:
        started.set()
        thread.join()


@contextmanager
def crashes(home: Path) -> Iterator[Callable[[], None]]:
    """Record where this process crashes or hangs. If earlier processes did, the engine's files are set aside first.

    While the disk is full, crashes do not count: the engine writes through memory maps, and the system ends its
    process.

    Call the returned function repeatedly: the process ends `HANG_SECONDS` after the last call.
    """
    from recallog_projections.file_errors import has_room
    from recallog_projections.index.engines.folder import OPENING_BYTES_MIN

    with (home / layout.INDEX_CRASHES).open("a+b") as file:
        if time.time() - os.fstat(file.fileno()).st_mtime > CRASH_SECONDS:
            file.truncate(0)
        file.seek(0)
        if not has_room(home / layout.INDEX, OPENING_BYTES_MIN):
            file.truncate(0)  # the full disk has ended the process, which does not damage a file
        if sum(_ENGINE in report for report in _REPORTS.split(file.read())) >= CRASHES:
            set_aside(home / layout.INDEX_ENGINE, f"the process that served it crashed {CRASHES} times")
            file.truncate(0)

        def alive() -> None:
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=file)

        faulthandler.enable(file)
        alive()
        try:
            yield alive
        finally:
            faulthandler.cancel_dump_traceback_later()
            faulthandler.disable()


def set_aside(folder: Path, reason: str) -> None:
    """Rename the folder of the engine, so that the index is rebuilt. A folder that was set aside earlier is deleted."""
    if not folder.exists():
        return
    aside = folder.with_name(f"{folder.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    _log.warning("%s: %s is set aside as %s, and the index is built again from the ledger", reason, folder, aside.name)


def _line(descriptor: int) -> bytes:
    """The first line, read without a buffer, so that the end of the input can be detected later."""
    line = bytearray()
    while not line.endswith(b"\n") and (byte := os.read(descriptor, 1)):
        line += byte
    return bytes(line)
