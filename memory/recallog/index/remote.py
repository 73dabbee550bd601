"""Clients of the index service: a call to it, and the process that serves a folder."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import IO, TYPE_CHECKING

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.settings import Settings
from recallog_projections.breaker import Attempt, Breaker
from recallog_projections.native_threads import ONE_ARENA, ONE_THREAD
from recallog_projections.threads import run_in_own_thread
from recallog_schemas import limits
from recallog_schemas.errors import IndexUnavailable
from recallog_streams.concurrency import cancel_all

if TYPE_CHECKING:
    import subprocess

START_SECONDS = 20.0
"""How long a service may take to start, as long as it shows that it is alive. A new process imports the engine."""
WORKING_SECONDS = 0.25
"""How often a service reports that it executes a call."""
PATIENCE_SECONDS = 60.0
"""How long a patient call waits for a process that computes and does not send messages."""
SPAWN_SECONDS_MIN = 1.0
"""The least time between two attempts to start a process. A process that finds another one serving ends at once."""
OTHER_SECONDS = 30.0
"""A process that ends normally within this time has found another one serving, and has not served itself."""
RETRY_SECONDS_MAX = 60.0
"""The longest time in which no process is started after several have failed in succession."""
_POLL_SECONDS = 0.02
_CRASHES = ("SIGABRT", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE")
"""Signals that may end a process if files of the engine are damaged."""
_LOG_BYTES = 4096
"""The size of the end of the log that is read for the cause of a failure."""

_logger = logging.getLogger("recallog.index")

_breakers: dict[Path, Breaker] = {}
"""By folder. A service that does not respond costs one deadline, whichever part of this process uses it."""


class ServiceAbsent(IndexUnavailable):
    """No process serves the index, or the one that did ended before it answered."""


class ServiceKilled(IndexUnavailable):
    """The process that this one started for the index was ended by a signal."""


class ServiceSilent(IndexUnavailable):
    """The process that serves the index does not respond."""


async def call(
    home: Path,
    message: messages.Call,
    progress: Callable[[int, int], None] | None = None,
    deadline_seconds: float = limits.DEADLINE_SECONDS,
    *,
    patient: bool = False,
) -> bytes:
    """The result of one call to the service of a folder, as JSON.

    `progress` is called with (done, total) while the call is executed. Raises the error that the call raised,
    `ServiceAbsent`, or `ServiceSilent` if the service does not respond for `deadline_seconds`, and then at once for
    some seconds. A `patient` call is always made, and continues while the process of an unresponsive service computes.
    """
    breaker = _breaker(home) if patient else _breakers.get(home) or _breakers.setdefault(home, _breaker(home))
    attempt: Attempt | None = None
    try:
        async with breaker.attempt(deadline_seconds) as attempt:
            try:
                answer = await _call_service(home, message, progress, attempt, patient)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                raise ServiceAbsent(
                    f"the index of {home} is not being served ({error}); the next query starts it"
                ) from error
        if patient:  # when the service answers again, calls that are not patient use it at once
            _breakers.pop(home, None)
        return answer
    except ServiceSilent:
        if attempt is not None and attempt.silent and await asyncio.to_thread(_remove_stale_address, home):
            _breakers.pop(home, None)
        raise


def _breaker(home: Path) -> Breaker:
    return Breaker(
        lambda reason: ServiceSilent(
            f"the process that serves the index of {home} {reason}. See {_whom(home)}, and {home / layout.INDEX_LOG}"
        ),
        failures=(),
    )


def _whom(home: Path) -> str:
    """The process that serves a folder, in words, with the way to continue it."""
    try:
        pid = _address(home).pid
    except (OSError, msgspec.MsgspecError):
        return f"who holds {home / layout.INDEX_LOCK}"
    return f"process {pid}, which `kill -CONT {pid}` continues if it is stopped"


async def _call_service(
    home: Path, message: messages.Call, progress: Callable[[int, int], None] | None, attempt: Attempt, patient: bool
) -> bytes:
    address = _address(home)
    if not _exists(address.pid):
        raise ConnectionError(f"the process {address.pid} has ended")
    reader, writer = await asyncio.open_connection("127.0.0.1", address.port, limit=messages.BUFFER_BYTES)
    try:
        writer.write(messages.frame_message(messages.Handshake(address.token)) + messages.frame_message(message))
        while True:
            frame = messages.frame(await _next_message(reader, attempt, address.pid if patient else None))
            match frame:
                case messages.Result(value):
                    return value
                case messages.Failed() as failed:
                    raise messages.error_of(failed)
                case messages.Progressed(done, total):
                    if progress is not None:
                        progress(done, total)
                case messages.Gone():
                    raise ConnectionError("the service ends")
                case messages.StillWorking():
                    pass
    finally:
        writer.close()


def _address(home: Path) -> messages.ServiceAddress:
    """The address on which the service listens. It is read in the event loop, because a thread would cost more than the
    call."""
    return messages.address((home / layout.INDEX_ADDRESS).read_bytes())


async def _next_message(reader: asyncio.StreamReader, attempt: Attempt, busy: int | None) -> bytes:
    """The next message. Each part of it that arrives counts as progress, and so do computations of the process
    `busy`."""
    watching = asyncio.create_task(_watch(busy, attempt)) if busy is not None else None
    try:
        return await _receive(reader, attempt)
    finally:
        if watching is not None:
            await cancel_all(watching)


async def _watch(pid: int, attempt: Attempt) -> None:
    """Restart the deadline while the process `pid` computes, at most for `PATIENCE_SECONDS`."""
    before, give_up = _activity(pid), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up:
        await asyncio.sleep(WORKING_SECONDS)
        if (now := _activity(pid)) != before:
            attempt.progress()
            before = now


async def _receive(reader: asyncio.StreamReader, attempt: Attempt) -> bytes:
    length = int.from_bytes(await reader.readexactly(messages.LENGTH_BYTES), "big")
    if length > messages.MESSAGE_BYTES_MAX:
        raise ConnectionError("it does not use this protocol")
    parts = []
    while length:
        part = await reader.read(length)
        if not part:
            raise ConnectionError("it has ended while it answered")
        attempt.progress()
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _activity(pid: int) -> object:
    """A value that changes while a process runs or waits for a processor. Where the system does not report it, the
    value always changes."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return time.monotonic() if state == "R" else (fields[10], fields[11])  # seconds of processors


def _exists(pid: int) -> bool:
    """Whether there may be a process `pid`."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _remove_stale_address(home: Path) -> bool:
    """Delete the address if no process serves the folder, but another program listens there and does not respond."""
    from recallog_projections import private_files

    with contextlib.suppress(OSError, private_files.LockHeld), private_files.hold_lock(home / layout.INDEX_LOCK):
        (home / layout.INDEX_ADDRESS).unlink(missing_ok=True)
        return True
    return False


class ServiceProcess:
    """Finds the process that serves a folder, starts it if there is none, and ends it if it does not outlive this
    process.

    A service with `index_idle_seconds` outlives the process that starts it, and ends when it is idle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home
        self._process: subprocess.Popen[bytes] | None = None
        self._processes = Lock()
        """Held while the process is started or ended."""
        self._spawned_at = -SPAWN_SECONDS_MIN
        self._found_another = False
        """Whether the last process that was started here ended at once, because another one held the lock."""
        self._failures = 0
        """The number of processes in succession that failed before they served."""
        self._failure: IndexUnavailable = IndexUnavailable()
        """Why the last of these processes failed."""
        self._retry_at = 0.0
        self._closed = False

    async def health(self, *, patient: bool = False) -> messages.HealthReport | None:
        """Whether the index follows the ledger; None if no service answers. Raises `ServiceSilent`.

        The address file does not prove that a service runs: a killed process leaves it behind.
        """
        try:
            data = await call(
                self._home, messages.Health(), deadline_seconds=self._settings.deadline_seconds, patient=patient
            )
        except ServiceAbsent:
            return None
        self._failures = 0
        return msgspec.json.decode(data, type=messages.HealthReport)

    async def begin(self, *, patient: bool = False) -> messages.HealthReport | None:
        """Start a service if none answers, without waiting for it. Returns the health of the service that answers.

        Raises `IndexUnavailable` if its process cannot be started, or does not respond.
        """
        health = await self.health(patient=patient)
        if health is None:
            from recallog.index.ownership import held_by, owner_of  # most commands find a service

            owner = await asyncio.to_thread(owner_of, self._home)
            if owner is not None:
                raise held_by(self._home, owner)
            await asyncio.to_thread(self._ensure_process)
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
        """A value that changes while a process that starts to serve the folder is alive."""
        touched = 0
        with contextlib.suppress(OSError):
            touched = (self._home / layout.INDEX_STARTING).stat().st_mtime_ns
        # A process that finds another one serving ends at once, and does not report on the other one.
        is_first = self._process is not None and not self._found_another
        return touched, _activity(self._process.pid) if self._process is not None and is_first else None

    def _ensure_process(self) -> None:
        """Start the process, unless this process has started it and it still runs."""
        with self._processes:
            if self._closed:
                raise IndexUnavailable("the memory is closed, and with it the index; open it again")
            if self._process is not None and self._process.poll() is None:
                return
            if self._process is not None and self._process.returncode != 0:
                if self._has_served(self._process.pid):
                    self._failures = 0
                why = _explain_end(self._process.returncode, self._home / layout.INDEX_LOG)
                self._note_failure(ServiceKilled(why) if self._process.returncode < 0 else IndexUnavailable(why))
                self._end_process()
                raise self._failure  # the next query tries again
            if time.monotonic() < self._retry_at:
                raise self._failure
            self._found_another = self._process is not None and time.monotonic() < self._spawned_at + OTHER_SECONDS
            if time.monotonic() < self._spawned_at + SPAWN_SECONDS_MIN:
                return
            self._end_process()
            try:
                self._spawn()
            except OSError as error:
                self._note_failure(IndexUnavailable(f"the index's process cannot be started: {error}"))
                raise self._failure from error

    def _has_served(self, pid: int) -> bool:
        """Whether the process `pid` has served, so that it has left its address behind."""
        try:
            return _address(self._home).pid == pid
        except (OSError, msgspec.MsgspecError):
            return False

    def _note_failure(self, failure: IndexUnavailable) -> None:
        """Wait longer after each failure except the first, so that processes are not started in vain for each query."""
        wait_seconds = min(RETRY_SECONDS_MAX, 2.0**self._failures) if self._failures else 0.0
        self._failures += 1
        self._failure, self._retry_at = failure, time.monotonic() + wait_seconds
        self._spawned_at = -SPAWN_SECONDS_MIN

    def _spawn(self) -> None:
        import subprocess  # most commands find a service that another process has started

        from recallog_projections import private_files
        from recallog_projections.file_errors import has_space, why_not_writable

        folder = self._home / layout.INDEX
        if folder.exists() and not folder.is_dir():
            raise IndexUnavailable(f"{folder} is not a folder: move it away, and the next query builds the index")
        why = why_not_writable(folder if folder.exists() else self._home)
        if why and has_space(self._home):
            raise IndexUnavailable(f"the index in {folder} cannot be served: {why}")
        self._spawned_at = time.monotonic()
        private_files.make_folder(folder)
        with _log(self._home / layout.INDEX_LOG) as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recallog.index_service"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # A backtrace of the engine takes seconds, in which queries are not answered.
                env={**os.environ, **ONE_THREAD, **ONE_ARENA, "RUST_BACKTRACE": "0"},
                start_new_session=self._outlives,  # otherwise Ctrl-C in the terminal would end it
            )
        if self._process.stdin is not None:
            self._process.stdin.write(messages.encode_settings(self._settings))
            self._process.stdin.flush()
            # Otherwise standard input stays open. The service ends when it is closed, which also happens if this
            # process ends.
            if self._outlives:
                self._process.stdin.close()
                # The thread reaps the process if it ends first, and ends with this process.
                Thread(target=self._process.wait, name="recallog-index-process", daemon=True).start()

    @property
    def _outlives(self) -> bool:
        """Whether the service outlives the process that starts it."""
        return self._settings.index_idle_seconds > 0

    async def close(self) -> None:
        """End the process if this one has started it and it does not outlive this one.

        If it has not ended after `deadline_seconds`, it is killed, and the batch in progress is indexed again.
        """
        self._closed = True
        await run_in_own_thread(self._end)

    def _end(self) -> None:
        with self._processes:
            self._end_process()

    def _end_process(self) -> None:
        """End the process that this one has started, and wait for its end."""
        if self._process is None or self._outlives:
            self._process = None
            return
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        from subprocess import TimeoutExpired

        try:
            self._process.wait(self._settings.deadline_seconds)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def _log(path: Path) -> IO[bytes]:
    """The log, opened for appending. The process also serves if its log cannot be written."""
    from recallog_projections import private_files

    try:
        return private_files.open_file(path, "ab")
    except OSError as error:
        _logger.warning("the log of the index's process cannot be written, which then has none: %s", error)
        return Path(os.devnull).open("wb")


def _explain_end(code: int, log: Path) -> str:
    """Why a process ended, and what to do. The reasons are its last line in the log, a full disk, or files that may be
    damaged."""
    from recallog_projections.file_errors import has_room
    from recallog_projections.index.engines.folder import OPENING_BYTES_MIN

    how, then = f"exit code {code}", ""
    if code < 0:
        with contextlib.suppress(ValueError):
            how = signal.Signals(-code).name
    if log.parent.exists() and not has_room(log.parent, OPENING_BYTES_MIN):
        then = f". The disk of {log.parent} is full: free some space, and the index continues"
    elif how in _CRASHES:
        then = f". A file in {log.parent} may be damaged: try again; after some crashes the index is built again"
    last = ""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        last = lines[-1].strip() if lines and code > 0 else ""
    return f"the index's process ended ({how}{': ' + last if last else ''}); see {log}{then}"
