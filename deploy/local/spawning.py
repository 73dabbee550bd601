"""Starts processes that end with this process, but not with the thread that started them."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import IO

_BOUND_TO_STARTER = Path(__file__).with_name("bound_to_starter.py")


class _Spawner:
    """One thread that starts all processes and never ends.

    The kernel's parent-death signal comes when the *thread* that forked ends, so that a server started from a worker
    thread (`asyncio.to_thread`) would die at a random moment.
    """

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name="spawner of local servers", daemon=True).start()

    def spawn(self, command: list[str], folder: Path, log: IO[bytes], lock: int) -> subprocess.Popen[bytes]:
        result: Future[subprocess.Popen[bytes]] = Future()

        def start() -> None:
            try:
                result.set_result(_start(command, folder, log, lock))
            except OSError as error:
                result.set_exception(error)

        self._work.put(start)
        return result.result()

    def _run(self) -> None:
        while True:
            self._work.get()()


_creating = threading.Lock()
_spawner: _Spawner | None = None


def spawn(
    command: list[str], folder: Path, log: IO[bytes], *, lock: int, dies_with_starter: bool
) -> subprocess.Popen[bytes]:
    """Start `command` in a new session, so that Ctrl-C at the terminal does not reach it.

    Args:
        lock: an open file descriptor that the process holds as long as it runs.
        dies_with_starter: the kernel kills it when this process ends, however it ends (on Linux).
    """
    global _spawner
    if not dies_with_starter:
        return _start(command, folder, log, lock)
    with _creating:
        if _spawner is None or _spawner.process_id != os.getpid():  # a fork has no threads of its parent
            _spawner = _Spawner()
    bound = [sys.executable, "-I", "-S", str(_BOUND_TO_STARTER), str(os.getpid()), *command]
    return _spawner.spawn(bound, folder, log, lock)


def _start(command: list[str], folder: Path, log: IO[bytes], lock: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=(lock,),
    )
