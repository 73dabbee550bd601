"""Workers, producers and rebuilds as child processes, killed and paused by pid. They end with this process."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

from deploy.local import LocalServer
from deploy.local.ports import HOST
from deploy.local.spawning import spawn

REPOSITORY = Path(__file__).parents[2]
TESTS = Path(__file__).parents[1]

_ANSWER_SECONDS = 2.0
_COMMAND_SECONDS_MAX = 300.0


class Worker(LocalServer):
    """`recallog worker` on its own port. It counts as started once `/health` answers, with any status."""

    name: ClassVar[str] = "worker"

    def __init__(self, folder: Path, settings: Mapping[str, str], *options: str) -> None:
        super().__init__(folder)
        self._settings = settings
        self._options = options

    def _command(self) -> list[str]:
        program = [sys.executable, "-m", "recallog_service", "worker", "--port", str(self.ports["server"])]
        program += self._options
        return [*_with(self._settings), *program]

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        yield lambda: self.health() is not None

    def health(self) -> dict[str, Any] | None:
        """The answer of `/health`; None if there is no answer."""
        url = f"http://{HOST}:{self.ports['server']}/health"
        try:
            with urllib.request.urlopen(url, timeout=_ANSWER_SECONDS) as answer:
                return _document(answer)
        except urllib.error.HTTPError as error:  # 503: it runs and is not healthy
            with error:
                return _document(error)
        except OSError:
            return None


class Model(LocalServer):
    """The endpoint of a model, which the workers' reactors ask."""

    name: ClassVar[str] = "model"

    def _command(self) -> list[str]:
        return [*_with({}), *module("chaos.model", self.ports["server"])]

    @contextmanager
    def _prober(self) -> Iterator[Callable[[], bool]]:
        yield self._answers

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/", timeout=_ANSWER_SECONDS):
                return True
        except OSError:
            return False


def _document(answer: IO[bytes]) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.load(answer)
    except ValueError:
        return None
    return found


class Task:
    """A command that ends by itself unless it is killed. Its output goes to a file."""

    def __init__(self, command: Sequence[str], folder: Path, log: Path, settings: Mapping[str, str]) -> None:
        self.log = log
        self.killed = False
        with log.open("ab") as file:
            self._process: subprocess.Popen[bytes] = spawn(
                [*_with(settings), *command], folder, file, lock=file.fileno(), dies_with_starter=True
            )

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self, seconds: float) -> int:
        """Ask it to end (SIGTERM) and wait; its exit code. Raises `TimeoutExpired`."""
        self._process.terminate()
        return self.wait(seconds)

    def kill(self) -> None:
        """Kill it with SIGKILL. `killed` stays False if it had ended by itself."""
        self._process.kill()
        self.killed = self._process.wait() < 0

    def wait(self, seconds: float) -> int:
        """Wait for its end; its exit code. Raises `TimeoutExpired`."""
        return self._process.wait(seconds)


def error_of(log: Path) -> str:
    """The last error in the log; "" if there is none."""
    for line in reversed(log.read_text(errors="replace").splitlines()):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict) and "error" in document:
            return str(document["error"])
    return ""


class Failed(Exception):
    """The run cannot go on; the text is its last finding."""


def json_of(
    folder: Path, settings: Mapping[str, str], name: str, *arguments: str, codes: tuple[int, ...] = (0,)
) -> Any:
    """The JSON document that a `recallog` command prints."""
    patient = {**settings, "RECALLOG_DEADLINE_SECONDS": "30"}  # nothing is stopped any more, but the machine is busy
    task = Task(recallog(*arguments), folder, folder / f"{name}.log", patient)
    try:
        code = task.wait(_COMMAND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise Failed(f"recallog {arguments[0]} has not ended after {_COMMAND_SECONDS_MAX:g} s") from None
    finally:
        task.kill()
    output = task.log.read_text(errors="replace")
    if code not in codes:
        raise Failed(f"recallog {arguments[0]} ended with {code}: {output[-1000:]}")
    try:
        return json.loads(output.splitlines()[-1])  # lines of progress are before it where the command took long
    except (ValueError, IndexError):
        raise Failed(f"recallog {arguments[0]} printed no JSON: {output[-1000:]}") from None


def recallog(*arguments: str) -> list[str]:
    """The command line of `recallog`."""
    return [sys.executable, "-m", "recallog_service", *arguments]


def module(name: str, *arguments: object) -> list[str]:
    """The command line of a module of the tests."""
    return [sys.executable, "-m", name, *map(str, arguments)]


def _with(settings: Mapping[str, str]) -> list[str]:
    """The start of a command line with `settings` as its only RECALLOG_ variables."""
    path = os.pathsep.join([str(TESTS), str(REPOSITORY), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    others = [word for name in os.environ if name.startswith("RECALLOG_") for word in ("-u", name)]
    return ["env", *others, f"PYTHONPATH={path}", *(f"{name}={value}" for name, value in settings.items())]
