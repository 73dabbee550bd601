"""Runs a command on a pseudo-terminal, and says what its user then sees."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pyte

from support.cli import environment_of

COLUMNS, LINES = 120, 1500


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command wrote to a terminal."""

    code: int
    written: str
    """What it wrote, with control sequences."""
    shown: str
    """What is on the screen at the end."""
    piped: bytes
    """What it wrote to standard output, if that was a pipe."""
    cursor_is_hidden: bool


class Terminal:
    """A pseudo-terminal, on which one command runs."""

    def __enter__(self) -> Self:
        self._master, self._slave = pty.openpty()
        fcntl.ioctl(self._slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._master)

    def run(
        self,
        *arguments: object,
        typed: bytes = b"",
        stdout: int | IO[Any] | None = None,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        program: str | None = None,
    ) -> Shown:
        """Run a `recallog` command with this terminal as its streams; `program` is run by Python in its place.

        Of a `stdout` that is `subprocess.PIPE` the result has what was written there.
        """
        command = ["-m", "recallog_service"] if program is None else ["-c", program]
        process = subprocess.Popen(
            [sys.executable, *command, *map(str, arguments)],
            stdin=self._slave,
            stdout=self._slave if stdout is None else stdout,
            stderr=self._slave,
            cwd=cwd,
            env=environment_of(**{"TERM": "xterm-256color", "RECALLOG_INDEX": "off"} | dict(environment or {})),
        )
        os.close(self._slave)
        os.write(self._master, typed)
        piped: list[bytes] = []
        reader = threading.Thread(target=lambda: piped.append(process.stdout.read() if process.stdout else b""))
        reader.start()
        written = self._read()
        reader.join()
        code = process.wait(120)
        if process.stdout is not None:
            process.stdout.close()
        screen = pyte.Screen(COLUMNS, LINES)
        pyte.ByteStream(screen).feed(written)
        shown = "\n".join(line.rstrip() for line in screen.display).rstrip()
        return Shown(code, written.decode(errors="replace"), shown, piped[0], screen.cursor.hidden)

    def _read(self) -> bytes:
        written = b""
        while True:
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # Linux: the other side is closed
                return written
            if not piece:
                return written
            written += piece


def on_a_terminal(*arguments: object, **options: Any) -> Shown:
    """Run a command on a new terminal; `options` are those of `Terminal.run`."""
    with Terminal() as terminal:
        return terminal.run(*arguments, **options)
