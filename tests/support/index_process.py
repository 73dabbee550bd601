"""The process that serves indexes, as tests see it: who it is, and other programs that use it."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from recallog import layout
from recallog.index.messages import ServiceAddress
from recallog.settings import Settings
from support.cli import environment_of
from support.waiting import WAIT_SECONDS

DEADLINE_SECONDS = 20.0
"""On a busy machine a process may be kept from running for longer than the default."""

_ASKER = """
import asyncio, json, sys
from pathlib import Path
from recallog import Memory
from recallog.settings import Settings

async def main():
    async with Memory.open(Settings(home=Path(sys.argv[1]), index="embedded")) as memory:
        for line in sys.stdin:
            question = json.loads(line)
            if question is None:
                break
            answer = await memory.recall("village", "baker", question, wait_index=True)
            print(answer.model_dump_json(), flush=True)

asyncio.run(main())
"""


def settings(home: Path, **more: Any) -> Settings:
    return Settings(home=home, index="embedded", deadline_seconds=DEADLINE_SECONDS, **more)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for by its parent is a zombie, and does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def exists(pid: int) -> bool:
    """Whether the system still knows the process, as a zombie too."""
    return Path(f"/proc/{pid}").exists()


def wait_until(holds: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < give_up, f"{what}: not within {WAIT_SECONDS:g} s"
        time.sleep(0.02)


def address(home: Path) -> ServiceAddress:
    return msgspec.json.decode((home / layout.INDEX_ADDRESS).read_bytes(), type=ServiceAddress)


def is_listening(home: Path) -> bool:
    """Whether the address file of the folder names a process that is alive."""
    try:
        return is_alive(address(home).pid)
    except (FileNotFoundError, NotADirectoryError):
        return False


def serving_pid(home: Path) -> int:
    """The service's process, once it listens."""
    wait_until(lambda: is_listening(home), "a service listens")
    return address(home).pid


def ended(pid: int) -> None:
    wait_until(lambda: not is_alive(pid), f"process {pid} ends")


class Asker:
    """Another process that queries a folder."""

    def __init__(self, home: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ASKER, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment_of(RECALLOG_INDEX_IDLE_SECONDS="0", RECALLOG_DEADLINE_SECONDS=str(DEADLINE_SECONDS)),
        )

    def say(self, question: str | None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, question: str) -> Any:
        self.say(question)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End the process normally."""
        if self.process.poll() is None:
            self.say(None)
            assert self.process.wait(WAIT_SECONDS) == 0
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
