"""Python processes that tests start and kill."""

import subprocess
import sys

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
