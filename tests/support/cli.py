"""Runs the command line in this process, or in a new one where a test needs that."""

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from recallog import Memory
from recallog_service.cli import app
from support.events import run


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def recallog(*arguments: object, stdin: str | bytes | None = None, **environment: str) -> Result:
    """Run a command in this process, on a terminal wide enough that no path or option is broken across lines.

    A process that it starts to serve an index ends soon afterwards. A handler that it gives the log does not stay.
    """
    used = {"COLUMNS": "200", "RECALLOG_INDEX_IDLE_SECONDS": "5"} | environment
    with same_log():
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, env=used)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Result(result.exit_code, result.stdout, result.stderr)


@contextmanager
def same_log() -> Iterator[None]:
    """What a command sets the log to ends with it, as its process would: its handler writes to a stream of its own."""
    loggers = [logging.getLogger(name) for name in (None, "recallog", "httpx", "httpcore")]
    handlers, levels = loggers[0].handlers[:], [each.level for each in loggers]
    try:
        yield
    finally:
        loggers[0].handlers[:] = handlers
        for each, level in zip(loggers, levels, strict=True):
            each.setLevel(level)
        logging.captureWarnings(False)


def without_events(home: Path) -> None:
    """Create a memory without events in a folder: a program that only reads creates its files."""

    async def work() -> None:
        async with Memory.open(home) as memory:
            await memory.spaces()

    run(work())


def environment_of(**more: str) -> Mapping[str, str]:
    """The environment of this process without RECALLOG_ variables, and with `more`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
    return plain | more


# The command runs twice before, which imports all modules: other users may lack access to the interpreter.
_AS_NOBODY = """
import os, sys, tempfile
from typer.testing import CliRunner
from recallog_service.cli import app, main
import recallog_streams.parallel.catching_up  # only a memory with events needs it
*command, home = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    for other in (folder, "/dev/null"):
        CliRunner().invoke(app, [*command, other])
os.setgroups([]); os.setgid(65534); os.setuid(65534)
main()
"""


def spawn(
    *arguments: object, stdin: bytes = b"", cwd: Path | None = None, as_nobody: bool = False, **environment: str
) -> Result:
    """Run a command in a new process. `as_nobody` needs root, and the folder as the last argument."""
    command = ["-c", _AS_NOBODY] if as_nobody else ["-m", "recallog_service"]
    done = subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=environment_of(**environment),
        check=False,
        timeout=120,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


# Commands follow a word "--next--" each, so that the interpreter decodes their words as it does for one command.
_ONE_AFTER_ANOTHER = """
import itertools, os, sys
import recallog_service.cli.derived
from recallog_service.cli import main
folder, *words = sys.argv[1:]
commands = [list(each) for found, each in itertools.groupby(words, lambda word: word != "--next--") if found]
for number, command in enumerate(commands):
    child = os.fork()
    if not child:
        for stream in (1, 2):
            os.dup2(os.open(f"{folder}/{number}.{stream}", os.O_WRONLY | os.O_CREAT), stream)
        sys.argv[1:] = command
        sys.orig_argv[1:] = ["-m", "recallog_service", *command]  # a command may start itself again
        main()
        sys.exit()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(f"{folder}/{number}.code", "w") as file:
        file.write(str(code))
"""


def spawn_each(*commands: Sequence[object], **environment: str) -> list[tuple[int, bytes, bytes]]:
    """Run commands one after another, each in a new process. -> the exit code and what it wrote to stdout and stderr

    One interpreter starts with `environment`, imports the modules of commands, and forks for each command. That takes a
    third of the time of as many interpreters.
    """
    words = [str(word) for command in commands for word in ("--next--", *command)]
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-c", _ONE_AFTER_ANOTHER, folder]
        subprocess.run(
            [*program, *words], stdin=subprocess.DEVNULL, env=environment_of(**environment), check=True, timeout=120
        )
        written = [
            [Path(folder, f"{number}.{end}").read_bytes() for end in ("code", 1, 2)] for number in range(len(commands))
        ]
    return [(int(code), out, err) for code, out, err in written]
