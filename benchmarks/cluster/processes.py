"""Processes that a benchmark starts. They end with the benchmark, and are stopped by their pids."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from deploy import local

STOP_SECONDS = 30.0
_ROOT = Path(__file__).parents[2]
_BOUND_TO_STARTER = Path(local.__file__).with_name("bound_to_starter.py")
_LINE_BYTES_MAX = 1024 * 1024
_TAIL_CHARS = 2_000


class ProcessFailed(RuntimeError):
    """A process ended unexpectedly or printed nothing in time. The text contains the end of its log."""


class Process:
    """A Python process whose standard error goes to `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._used_seconds = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def crashed(self) -> bool:
        return bool(self._process.returncode)

    async def line(self, timeout_seconds: float) -> str:
        """The next line that it prints. Raises `ProcessFailed` if there is none in time."""
        if self._process.stdout is None:
            raise self.failed("has no output")
        try:
            said = await asyncio.wait_for(self._process.stdout.readline(), timeout_seconds)
        except TimeoutError:
            raise self.failed(f"printed nothing for {timeout_seconds:g} s") from None
        if not said:
            raise self.failed("ended")
        return said.decode().strip()

    def go(self) -> None:
        """Send the line for which it waits."""
        if self._process.stdin is None:
            raise self.failed("has no input")
        self._process.stdin.write(b"go\n")

    async def ended(self, timeout_seconds: float) -> None:
        """Wait until it exits with 0. Raises `ProcessFailed`."""
        try:
            await asyncio.wait_for(self._process.communicate(), timeout_seconds)
        except TimeoutError:
            raise self.failed(f"still runs after {timeout_seconds:g} s") from None
        if self._process.returncode:
            raise self.failed(f"ended with exit code {self._process.returncode}")

    async def stop(self) -> None:
        """Send SIGTERM, and SIGKILL if it still runs after 30 seconds."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, TimeoutError):
                self._process.send_signal(how)
                await asyncio.wait_for(self._process.communicate(), STOP_SECONDS)
                return

    def resident_bytes(self) -> int:
        """Its resident memory. Linux only."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        except FileNotFoundError:
            raise self.failed("ended") from None
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """User and system time of it and its children; after its end, the last value that was read. Linux only."""
        with suppress(FileNotFoundError, ProcessLookupError):
            self._used_seconds = cpu_seconds(self.pid)
        return self._used_seconds

    def failed(self, what: str) -> ProcessFailed:
        tail = self._log.read_text(errors="replace")[-_TAIL_CHARS:]
        return ProcessFailed(f"{self._log.stem} {what}. The end of its log:\n{tail}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and its children. Linux only. Raises `FileNotFoundError` if one has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(cpu_seconds, map(int, children)))


@asynccontextmanager
async def running(module: str, *arguments: str, log: Path, settings: Mapping[str, str]) -> AsyncIterator[Process]:
    """Runs `python -m module arguments` with `settings` as its only RECALLOG_ variables, and stops it at the end."""
    command: Sequence[str] = [sys.executable, "-I", "-S", str(_BOUND_TO_STARTER), str(os.getpid()), sys.executable]
    outer = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
    with log.open("ab") as written:
        started = await asyncio.create_subprocess_exec(
            *command,
            *("-m", module, *arguments),
            cwd=_ROOT,
            env={**outer, **settings},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=written,
            limit=_LINE_BYTES_MAX,
        )
    process = Process(started, log)
    try:
        yield process
    finally:
        if process.running:
            await process.stop()
