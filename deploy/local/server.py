"""A server as a local process: start (until it answers), stop, kill, pause, and start again with its data."""

import atexit
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from deploy.local import ports
from deploy.local.spawning import spawn

START_SECONDS = 120.0
"""Kafka needs 5 s of CPU time to start, which is 25 s on a machine with five times the load it can handle."""
STOP_SECONDS = 10.0
_POLL_SECONDS = 0.02
_PORT_ATTEMPTS = 5
_CHILD_SECONDS_MAX = 10.0
_TAIL_LINES = 25


class LocalServerError(RuntimeError):
    """A local server did not start; the text says why and what to do."""


class NotInstalled(LocalServerError):
    """A program that the server needs is missing; the text says what to install."""


class LocalServer(ABC):
    """One process and its folder: `data/`, `server.log`, `ports.json` and a lock that the process holds."""

    name: ClassVar[str]
    port_names: ClassVar[tuple[str, ...]] = ("server",)

    def __init__(
        self, folder: Path | str, *, preferred_port: int | None = None, dies_with_starter: bool = True
    ) -> None:
        """Does not start the server.

        Args:
            folder: the folder of the server's data and log; one server at a time uses it.
            preferred_port: where clients connect, if no other process uses that port.
            dies_with_starter: the server is killed when this process ends, even by kill -9 (on Linux; elsewhere only
                when it ends by itself).
        """
        self.folder = Path(folder).absolute()
        self.data = self.folder / "data"
        self.log = self.folder / "server.log"
        self.ports: dict[str, int] = {}
        self._preferred_port = preferred_port
        self._dies_with_starter = dies_with_starter
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def _command(self) -> list[str]:
        """Prepare the folder for the current ports; return the program and its arguments."""

    @abstractmethod
    def _prober(self) -> AbstractContextManager[Callable[[], bool]]:
        """A function that returns whether this server, and not another one on its port, answers a request."""

    @property
    def address(self) -> str:
        """Host and port for clients; the same after each start of this object."""
        if not self.ports:
            raise LocalServerError(f"{self.name} has no port yet: call start() first")
        return f"{ports.HOST}:{self.ports[self.port_names[0]]}"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        if self._process is None or self._process.poll() is not None:
            raise LocalServerError(f"{self.name} in {self.folder} does not run")
        return self._process.pid

    def start(self, timeout_seconds: float = START_SECONDS) -> Self:
        """Start the server and return when it answers; on a folder that was used before, with its data.

        The ports are the preferred one and those of the last start. If another process uses them now, an object that is
        started for the first time chooses other ports, and one that was started before raises, because its clients have
        its address.

        Raises:
            NotInstalled: a program is missing.
            LocalServerError: it ended or did not answer in time (the text contains the end of its log), or a port is
                in use.
        """
        if self.running:
            return self
        started_before = bool(self.ports)
        self.data.mkdir(parents=True, exist_ok=True)
        self.ports = self.ports or self._preferred_ports()
        deadline = time.monotonic() + timeout_seconds
        for _ in range(_PORT_ATTEMPTS):
            if all(ports.is_free(port) for port in self.ports.values()):
                logged = self._spawn()
                if self._answers_before(deadline):
                    (self.folder / "ports.json").write_text(json.dumps(self.ports))
                    return self
                if not self._lost_its_port(logged):
                    raise self._failure(timeout_seconds)
            if started_before:
                break
            self.ports = self._other_ports()
        raise LocalServerError(f"{self.name} cannot start: a port of {sorted(self.ports.values())} is in use")

    def stop(self) -> None:
        """Stop the server: SIGTERM, and SIGKILL if it still runs after 10 seconds."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server with SIGKILL, as in a crash."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Pause the server (SIGSTOP): its connections stay open, and it does not answer."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused server (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def copy_data(self, target: Path) -> None:
        """Copy the data to the new folder `target`, like a snapshot of a disk; a running server is paused for it."""
        if running := self.running:
            self.pause()
        try:
            shutil.copytree(self.data, target)
        finally:
            if running:
                self.resume()

    def restore_data(self, source: Path) -> None:
        """Replace the data of the stopped server with a copy that `copy_data` made in `source`."""
        if self.running:
            raise LocalServerError(f"stop {self.name} before its data is replaced")
        shutil.rmtree(self.data)
        shutil.copytree(source, self.data)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def _take(self, lock: int) -> None:
        """Lock the folder. A child that a killed Redis had forked to rewrite its log has the lock a little longer."""
        give_up = time.monotonic() + (0.0 if self._process is None else _CHILD_SECONDS_MAX)
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= give_up:
                    raise LocalServerError(f"another {self.name} runs in {self.folder}: stop it first") from None
                time.sleep(_POLL_SECONDS)
            else:
                return

    def _spawn(self) -> int:
        """Start the process; return the size of the log before the start."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take(lock)
            command = self._command()
            with self.log.open("ab") as log:
                logged = log.tell()
                # The process inherits the lock, so the lock is free exactly when the process has ended.
                self._process = spawn(command, self.folder, log, lock=lock, dies_with_starter=self._dies_with_starter)
        finally:
            os.close(lock)
        if self._dies_with_starter:
            _started.add(self)
        return logged

    def _answers_before(self, deadline: float) -> bool:
        try:
            with self._prober() as answers:
                while self.running and time.monotonic() < deadline:
                    if answers():
                        return True
                    time.sleep(_POLL_SECONDS)
        except BaseException:  # Ctrl-C too: nothing else would stop the process
            self.kill()
            raise
        return False

    def _lost_its_port(self, logged: int) -> bool:
        with self.log.open("rb") as log:
            log.seek(logged)
            return not self.running and b"address already in use" in log.read().lower()

    def _failure(self, timeout_seconds: float) -> LocalServerError:
        code = None if self._process is None else self._process.poll()
        self.kill()
        what = f"did not answer within {timeout_seconds:g} s" if code is None else f"ended with exit code {code}"
        tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
        return LocalServerError(f"{self.name} {what}. The end of {self.log}:\n{tail}")

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None:
            return
        process.send_signal(how)
        process.send_signal(signal.SIGCONT)  # a paused process would not see SIGTERM
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        process.kill()
        process.wait()

    def _last_ports(self) -> dict[str, int]:
        try:
            return {name: int(port) for name, port in json.loads((self.folder / "ports.json").read_text()).items()}
        except FileNotFoundError:
            return {}

    def _preferred_ports(self) -> dict[str, int]:
        chosen = self._last_ports() or self._other_ports()
        if self._preferred_port is not None and ports.is_free(self._preferred_port):
            chosen[self.port_names[0]] = self._preferred_port
        return chosen

    def _other_ports(self) -> dict[str, int]:
        return {name: ports.free_port() for name in self.port_names}


_started: "weakref.WeakSet[LocalServer]" = weakref.WeakSet()


@atexit.register
def _kill_running_servers() -> None:
    """Kill the servers at exit, for systems without a parent-death signal (macOS)."""
    for server in list(_started):
        server.kill()
