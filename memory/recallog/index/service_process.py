"""How a program has the index of its folder served: it asks the process of the user, or starts it.

Most commands find a service, and do not import this module.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Lock, Thread
from typing import IO

import msgspec

from recallog import layout
from recallog.index import hosting, messages
from recallog.index.hosting import Lease
from recallog.index.ownership import held_by, owner_of
from recallog.index.remote import WORKING_SECONDS, activity, read_health
from recallog.settings import Settings
from recallog_projections import private_files
from recallog_projections.file_errors import has_room, has_space, why_not_writable
from recallog_projections.native_threads import ONE_ARENA, ONE_THREAD
from recallog_projections.threads import run_in_own_thread
from recallog_schemas.errors import IndexUnavailable, RecallogError

START_SECONDS = 20.0
"""How long a service may take to start, as long as its process shows that it is alive. A new one imports the engine."""
ASK_SECONDS_MIN = 1.0
"""The least time between two requests to serve a folder whose index another process holds."""
RETRY_SECONDS_MAX = 60.0
"""The longest time in which no process is asked after several have failed in succession."""
_POLL_SECONDS = 0.02
_END_SECONDS = 1.0
"""The longest time from the end of a process' connections to its own end."""
_CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")
"""Signals that may end a process if files of the engine are damaged."""
_LOG_BYTES = 4096
"""The size of the end of the log that is read for the cause of a failure."""

_logger = logging.getLogger("recallog.index")


class ServiceKilled(IndexUnavailable):
    """The process that served the index has ended without an error of its own."""


class ServiceProcess:
    """Finds the service of a folder, has it started if there is none, and ends it if it does not outlive this program.

    A service with `index_idle_seconds` outlives the program that asks for it, and ends when it is idle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home
        self._lease: Lease | None = None
        self._process: subprocess.Popen[bytes] | None = None
        """The process, if this program has started it."""
        self._asking = Lock()
        """Held while the process is asked to serve or to close the folder."""
        self._ask_at = 0.0
        """When it may be asked again."""
        self._is_elsewhere = False
        """Whether the last answer was that another process holds the folder's index."""
        self._failures = 0
        """How often in succession the folder could not be served."""
        self._failure: IndexUnavailable = IndexUnavailable()
        """Why it could not be served the last time."""
        self._retry_at = 0.0
        self._closed = False

    async def begin(self, *, patient: bool = False) -> messages.HealthReport | None:
        """Start a service if none answers, without waiting for it. Returns the health of the service that answers.

        Raises `IndexUnavailable` if its process cannot be started, or does not respond.
        """
        found = self._settings
        health = await read_health(self._home, found.deadline_seconds, embedder=found.embedder, patient=patient)
        if health is not None:
            self._failures = 0
        else:
            owner = await asyncio.to_thread(owner_of, self._home)
            if owner is not None:
                raise held_by(self._home, owner)
            await asyncio.to_thread(self._ensure_asked)
        return health

    async def start(self, wait_seconds: float = START_SECONDS, *, patient: bool = False) -> messages.HealthReport:
        """The health of the service, once one answers; `patient` as in `call`.

        Raises `IndexUnavailable` if none answers after `wait_seconds`, or if the process that starts does not show for
        `deadline_seconds` that it is alive.
        """
        give_up = time.monotonic() + wait_seconds
        sign: object = None
        signed_at = time.monotonic()
        while (health := await self._begin_again(give_up) if patient else await self.begin()) is None:
            if (latest := self._sign_of_life()) != sign:
                sign, signed_at = latest, time.monotonic()
            if time.monotonic() - signed_at > self._settings.deadline_seconds:
                raise IndexUnavailable(
                    f"the process that starts to serve the index of {self._home} has shown no sign of life for "
                    f"{self._settings.deadline_seconds:g} s. See who holds {self._home / layout.INDEX_LOCK}, and "
                    f"{self._home / layout.INDEX_LOG}"
                )
            if time.monotonic() > give_up:
                raise IndexUnavailable("the index is starting; try again in a moment")
            await asyncio.sleep(_POLL_SECONDS)
        return health

    async def _begin_again(self, give_up: float) -> messages.HealthReport | None:
        """A patient `begin`. Until `give_up`, a killed process is not an error: another one is started."""
        try:
            return await self.begin(patient=True)
        except ServiceKilled:
            if time.monotonic() > give_up:
                raise
            return None

    def _sign_of_life(self) -> object:
        """A value that changes while a process that starts to serve the folder is alive.

        It does not change while another process holds the index of the folder.
        """
        lease = self._lease
        return None if lease is None or (self._is_elsewhere and not lease.is_served) else activity(lease.pid)

    def _ensure_asked(self) -> None:
        """Ask for the folder to be served, unless it is served or starts. The process is started if there is none."""
        with self._asking:
            if self._closed:
                raise IndexUnavailable("the memory is closed, and with it the index; open it again")
            if self._lease is not None and not self._has_ended(self._lease):
                return
            if self._process is not None and self._process.poll():
                raise self._note_end()
            if time.monotonic() < self._retry_at:
                raise self._failure
            if time.monotonic() >= self._ask_at:
                try:
                    self._ask()
                except OSError as error:
                    failure = IndexUnavailable(f"the index's process cannot be started: {error}")
                    raise self._note_failure(failure) from error

    def _has_ended(self, lease: Lease) -> bool:
        """Whether the serving of the folder has ended without an error. Raises `IndexUnavailable` if it has failed."""
        try:
            ending = lease.read_ending()
        except (OSError, EOFError, msgspec.MsgspecError):
            self._close_lease()
            if lease.is_served:
                raise self._note_end() from None
            return True
        except RecallogError as error:
            self._close_lease()
            raise self._note_failure(IndexUnavailable(str(error))) from error
        if ending is None:
            return False
        self._close_lease()
        self._is_elsewhere = ending.elsewhere
        self._ask_at = time.monotonic() + ASK_SECONDS_MIN if ending.elsewhere else 0.0
        return True

    def _close_lease(self) -> None:
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def _note_end(self) -> IndexUnavailable:
        """The error for a process that has ended although it should serve the folder."""
        code = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_END_SECONDS)
            self._process = None
        why = _explain_end(code, self._home, hosting.find_socket(self._home).with_suffix(".log"))
        return self._note_failure(IndexUnavailable(why) if code and code > 0 else ServiceKilled(why))

    def _note_failure(self, failure: IndexUnavailable) -> IndexUnavailable:
        """Wait longer after each failure except the first, so that processes are not started in vain for each query."""
        wait_seconds = min(RETRY_SECONDS_MAX, 2.0**self._failures) if self._failures else 0.0
        self._failures += 1
        self._failure, self._retry_at = failure, time.monotonic() + wait_seconds
        self._ask_at = 0.0
        return failure

    def _ask(self) -> None:
        """Ask the process of the user to serve the folder, after starting it if none listens."""
        self._check_writable()
        self._process = None
        path = hosting.find_socket(self._home)
        connection = self._connect(path)
        if connection is None:
            try:
                with private_files.hold_lock(path.with_suffix(".lock"), self._settings.deadline_seconds):
                    connection = self._connect(path) or self._spawn(path)
            except private_files.LockHeld:
                raise TimeoutError(f"another program is starting it at {path}") from None
        pid = hosting.pid_of_peer(connection) if self._process is None else self._process.pid
        self._lease = Lease(connection, pid, self._settings)

    def _connect(self, path: Path) -> socket.socket | None:
        """A connection to the process; None if none listens."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(self._settings.deadline_seconds)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            connection.connect(str(path))
            return connection
        connection.close()
        return None

    def _check_writable(self) -> None:
        folder = self._home / layout.INDEX
        if folder.exists() and not folder.is_dir():
            raise IndexUnavailable(f"{folder} is not a folder: move it away, and the next query builds the index")
        why = why_not_writable(folder if folder.exists() else self._home)
        if why and has_space(self._home):
            raise IndexUnavailable(f"the index in {folder} cannot be served: {why}")

    def _spawn(self, path: Path) -> socket.socket:
        """Start the process. The socket at which it listens exists from the beginning: this program may end at once."""
        with hosting.listen(path) as listener, _log(path.with_suffix(".log")) as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recallog.index_service"],
                stdin=listener.fileno(),
                stdout=log,
                stderr=log,
                # A backtrace of the engine takes seconds, in which queries are not answered.
                env={**hosting.inherited_environment(), **ONE_THREAD, **ONE_ARENA, "RUST_BACKTRACE": "0"},
                cwd="/",  # it serves other folders too
                start_new_session=True,  # otherwise Ctrl-C in the terminal would end it
            )
            # The thread reaps the process if it ends first, and ends with this program.
            Thread(target=self._process.wait, name="recallog-index-process", daemon=True).start()
            connection = self._connect(path)
        if connection is None:
            raise FileNotFoundError(path)
        return connection

    async def close(self) -> None:
        """Close the folder if its service does not outlive this program, and wait for that, at most for
        `deadline_seconds`.

        A process that this program has started and that is stopped is then killed. It serves nobody.
        """
        self._closed = True
        await run_in_own_thread(self._end)

    def _end(self) -> None:
        with self._asking:
            lease, process = self._lease, self._process
            if lease is None or self._settings.index_idle_seconds > 0:
                self._close_lease()
                return
            ending = lease.end(self._settings.deadline_seconds)
            self._lease = None
            if process is not None and ending is None and not _is_active(process.pid):
                process.kill()
            if process is not None and (ending is None or ending.is_last):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self._settings.deadline_seconds)


def _is_active(pid: int) -> bool:
    """Whether a process computes, or waits for a processor."""
    before = activity(pid)
    time.sleep(WORKING_SECONDS)
    return activity(pid) != before


def _log(path: Path) -> IO[bytes]:
    """The log, opened for appending. The process also serves if its log cannot be written."""
    try:
        return private_files.open_file(path, "ab")
    except OSError as error:
        _logger.warning("the log of the index's process cannot be written, which then has none: %s", error)
        return Path(os.devnull).open("wb")


def _explain_end(code: int | None, home: Path, log: Path) -> str:
    """Why a process ended, and what to do. The reasons are its last line in the log, a full disk, or files that may be
    damaged. `code` is None if another program has started the process."""
    from recallog_projections.index.engines.folder import OPENING_BYTES_MIN

    how, then, folder = "" if code is None else f"exit code {code}", "", home / layout.INDEX
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            how = signal.Signals(-code).name
    if folder.exists() and not has_room(folder, OPENING_BYTES_MIN):
        then = f". The disk of {folder} is full: free some space, and the index continues"
    elif how in _CRASHES:
        then = (
            ". A file of this or another index may be damaged: try again; after some crashes that index is built again"
        )
    last = ""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        last = f": {lines[-1].strip()}" if lines and code is not None and code > 0 else ""
    return f"the index's process ended{f' ({how}{last})' if how else ''}; see {log}{then}"
