"""Clients of the index service: one call to it, and the process that serves a folder."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

import msgspec

from recallog import layout
from recallog.index import messages
from recallog.settings import Settings
from recallog_projections.threads import run_in_own_thread
from recallog_schemas.errors import IndexUnavailable

if TYPE_CHECKING:
    import subprocess

START_SECONDS = 20.0
"""How long a service may take to start: it is a new process that imports the engine."""
END_SECONDS = 10.0
"""How long a service may take to end before it is killed. Only the batch in progress is lost, and indexed again."""
SILENCE_SECONDS = 60.0
"""How long a service may send nothing while it executes a call. It sends a frame every `WORKING_SECONDS`."""
WORKING_SECONDS = 5.0
"""How often a service says that it executes a call."""
_POLL_SECONDS = 0.02


class ServiceAbsent(IndexUnavailable):
    """No process serves the index, or the one that did ended before it answered."""


async def call(home: Path, message: messages.Call, progress: Callable[[int, int], None] | None = None) -> bytes:
    """What the service of a folder returns for one call, as JSON.

    `progress` is called with (done, total) while the call is executed. Raises the error that the call raised,
    `ServiceAbsent`, or `IndexUnavailable` if the service is silent for `SILENCE_SECONDS`.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        # Read in the event loop: the file has 100 bytes, and a thread would cost more than the call.
        address = msgspec.json.decode((home / layout.INDEX_ADDRESS).read_bytes(), type=messages.Address)
        reader, writer = await asyncio.open_connection("127.0.0.1", address.port, limit=messages.BUFFER_BYTES)
        writer.write(messages.framed(messages.Handshake(address.token)) + messages.framed(message))
        while True:
            match await _next_frame(home, reader):
                case messages.Result(value):
                    return value
                case messages.Failed() as failed:
                    raise messages.error_of(failed)
                case messages.Progressed(done, total):
                    if progress is not None:
                        progress(done, total)
                case messages.Gone():
                    raise ConnectionError("the service ends")
                case messages.Working():
                    pass
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise ServiceAbsent(f"the index of {home} is not being served ({error}); the next query starts it") from error
    finally:
        if writer is not None:
            writer.close()


async def _next_frame(home: Path, reader: asyncio.StreamReader) -> messages.Frame:
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            length = int.from_bytes(await reader.readexactly(messages.LENGTH_BYTES), "big")
            if length > messages.MESSAGE_BYTES_MAX:
                raise ConnectionError("it does not use this protocol")
            return messages.frame(await reader.readexactly(length))
    except TimeoutError:
        raise IndexUnavailable(
            f"the process that serves the index of {home} has said nothing for {SILENCE_SECONDS:g} s; see "
            f"{home / layout.INDEX_LOG}"
        ) from None


class ServiceProcess:
    """The process that serves a folder: finds it, starts it if there is none, and ends it if it does not outlive this.

    A service with `index_idle_seconds` outlives the process that starts it, and ends when it is idle.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._home = settings.home
        self._process: subprocess.Popen[bytes] | None = None
        self._processes = Lock()
        """Held while the process is started or ended."""
        self._closed = False

    async def health(self) -> messages.HealthReport | None:
        """Whether the index follows the ledger; None if no service answers.

        The address file alone is no proof of a service: one that was killed leaves it behind.
        """
        try:
            data = await call(self._home, messages.Health())
        except IndexUnavailable:
            return None
        return msgspec.json.decode(data, type=messages.HealthReport)

    async def begin(self) -> messages.HealthReport | None:
        """Start a service if none answers, without waiting for it. Returns the health of the one that answers.

        Raises `IndexUnavailable` if its process cannot be started.
        """
        health = await self.health()
        if health is None:
            await asyncio.to_thread(self._ensure_process)
        return health

    async def start(self, wait_seconds: float = START_SECONDS) -> messages.HealthReport:
        """The health of the service, once one answers. Raises `IndexUnavailable` if none does after `wait_seconds`."""
        give_up = time.monotonic() + wait_seconds
        while (health := await self.begin()) is None:
            if time.monotonic() > give_up:
                raise IndexUnavailable("the index is starting; try again in a moment")
            await asyncio.sleep(_POLL_SECONDS)
        return health

    def _ensure_process(self) -> None:
        """Start the process, unless this one has started it and it still runs."""
        with self._processes:
            if self._closed:
                raise IndexUnavailable("the memory is closed, and with it the index; open it again")
            if self._process is None or self._process.poll() is not None:
                failed = self._process is not None and self._process.returncode != 0
                self._end_process()
                if failed:  # the next query tries again
                    raise IndexUnavailable(f"the index's process ended; see {self._home / layout.INDEX_LOG}")
                try:
                    self._spawn()
                except OSError as error:
                    raise IndexUnavailable(f"the index's process cannot be started: {error}") from error

    def _spawn(self) -> None:
        import subprocess  # most commands find a service that another one has started

        (self._home / layout.INDEX).mkdir(parents=True, exist_ok=True)
        with (self._home / layout.INDEX_LOG).open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recallog.index_service"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # The products of a query's matrices are small: with threads of their own they take three times as long
                # on a busy machine.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=self._outlives,  # Ctrl-C in the terminal then does not end it
            )
        if self._process.stdin is not None:
            self._process.stdin.write(messages.encode_settings(self._settings))
            self._process.stdin.flush()
            # Otherwise standard input stays open: the service ends when it is closed, also because this process ended.
            if self._outlives:
                self._process.stdin.close()
                # Reaps it if it ends first. The thread ends with this process.
                Thread(target=self._process.wait, name="recallog-index-process", daemon=True).start()

    @property
    def _outlives(self) -> bool:
        """Whether the service outlives the process that starts it."""
        return self._settings.index_idle_seconds > 0

    async def close(self) -> None:
        """End the process if this one has started it and it does not outlive this one."""
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
            self._process.wait(END_SECONDS)
        except TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
