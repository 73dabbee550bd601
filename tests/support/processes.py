"""Python processes that tests start and kill."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from support.cli import environment_of

Process = subprocess.Popen[str]

LIMIT_SECONDS = 120
"""How long a process may take to end."""


def start(*arguments: object) -> Process:
    """A Python process whose output can be read."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment_of())


def begun(program: str, *arguments: object) -> Process:
    """A process of a program that has printed its first line: "begins"."""
    process = start("-c", program, *arguments)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    return process


def ended(process: Process) -> int:
    """Wait until a process has ended. -> its exit code, -9 if it was killed; its output is not read"""
    assert process.stdout is not None
    process.stdout.close()
    return process.wait(LIMIT_SECONDS)


# The workers of a rebuild, and kills of both.


def workers_of(parent: int) -> list[int]:
    """The worker processes that the process with this id has started for a rebuild."""
    try:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [int(each) for each in children if is_worker(int(each))]


def is_worker(process: int) -> bool:
    """Whether a process with this id folds for another one."""
    try:
        return b"recallog_streams.parallel.worker" in Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_end(workers: Sequence[int]) -> None:
    """Wait until workers have ended, as they do without their parent."""
    until = time.monotonic() + LIMIT_SECONDS / 2
    while any(map(is_worker, workers)):
        assert time.monotonic() < until, "a worker has outlived its parent"
        time.sleep(0.01)


def kill_rebuilds(begin: Callable[[], Process], chance: random.Random, *, kills: int, tries: int, lines: int) -> None:
    """Kill rebuilds with -9, `kills` of them, after up to `lines` lines of progress; sometimes a worker instead.

    A rebuild prints its progress, and at last "done".
    """
    killed = 0
    for _ in range(tries):
        if killed >= kills:
            break
        process = begin()
        assert process.stdout is not None
        for _ in range(chance.randrange(1, lines)):
            process.stdout.readline()
        workers = workers_of(process.pid)
        if workers and chance.random() < 0.4:
            os.kill(chance.choice(workers), signal.SIGKILL)
            assert "done\n" in process.stdout.readlines()  # it goes on without its workers
            assert ended(process) == 0
        else:
            process.kill()
            killed += ended(process) == -signal.SIGKILL
        wait_for_end(workers)
    assert killed >= kills, "most kills come too late"
