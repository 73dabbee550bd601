"""Records of crashes and hangs of the process in the engine, each in the folder whose files were being used."""

import faulthandler
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock

from recallog import layout
from recallog_projections.file_errors import has_room
from recallog_projections.index.engines.folder import OPENING_BYTES_MIN

HANG_SECONDS = 120.0
"""How long the event loop may be blocked before the process ends itself. The engine blocks it in each call: up to half
a second, and for seconds if a large index is opened on a slow disk. On damaged files, a call may never return."""
CRASHES = 2
"""How often a process may crash or hang in the engine of a folder before its files are set aside. They are then
considered damaged, and the next process would end in the same way."""
CRASH_SECONDS = 24 * 3600.0
"""How long crashes are remembered."""
_REPORTS = re.compile(rb"^(?=Fatal Python error|Timeout \()", re.MULTILINE)
"""The beginnings of the reports of `faulthandler`."""

_log = logging.getLogger("recallog.index")

Calling = Callable[[], AbstractContextManager[None]]
"""Makes the context in which the engine of one folder is called."""


class CrashReports:
    """Where Python reports a crash or a hang of this process: in the file of the folder whose engine is called, or else
    on standard error.

    Calls of engines take turns. They would do so anyway, because the library holds the interpreter lock.
    """

    def __init__(self) -> None:
        self._descriptor = os.dup(2)
        self._calling = Lock()

    def enable(self) -> None:
        """Report crashes and hangs from now on, until this process ends."""
        faulthandler.enable(self._descriptor)
        self.show_alive()

    def show_alive(self) -> None:
        """Call this repeatedly: the process ends `HANG_SECONDS` after the last call."""
        faulthandler.dump_traceback_later(HANG_SECONDS, exit=True, file=self._descriptor)

    @contextmanager
    def of_folder(self, home: Path) -> Iterator[Calling]:
        """Record crashes and hangs in the engine of a folder. If there were some before, its files are set aside first.

        While the disk is full, crashes do not count: the engine writes through memory maps, and the system ends its
        process.
        """
        with (home / layout.INDEX_CRASHES).open("a+b") as file:
            if time.time() - os.fstat(file.fileno()).st_mtime > CRASH_SECONDS:
                file.truncate(0)
            file.seek(0)
            if not has_room(home / layout.INDEX, OPENING_BYTES_MIN):
                file.truncate(0)  # the full disk has ended the process, which does not damage a file
            if len(_REPORTS.findall(file.read())) >= CRASHES:
                set_aside(home / layout.INDEX_ENGINE, f"the process that served it crashed {CRASHES} times")
                file.truncate(0)

            @contextmanager
            def calling() -> Iterator[None]:
                with self._calling:
                    os.dup2(file.fileno(), self._descriptor, inheritable=False)
                    try:
                        yield
                    finally:
                        os.dup2(2, self._descriptor, inheritable=False)

            yield calling


def set_aside(folder: Path, reason: str) -> None:
    """Rename the folder of the engine, so that the index is rebuilt. A folder that was set aside earlier is deleted."""
    if not folder.exists():
        return
    aside = folder.with_name(f"{folder.name}.damaged")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    _log.warning("%s: %s is set aside as %s, and the index is built again from the ledger", reason, folder, aside.name)
