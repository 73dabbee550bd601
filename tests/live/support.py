"""Common parts of the live tests of workers: a topic and views for a test, worker processes, waiting."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import deploy.local
from deploy.local.ports import free_port

from recallog import Event, Memory, Settings
from recallog_schemas import Position
from recallog_schemas.errors import RecallogError

Result = TypeVar("Result")

PARTITIONS = 8
SECONDS = 60.0
"""How long anything may take on a busy machine before a test gives up."""
DEADLINE_SECONDS = 20.0
"""How long a question waits for a server that shares a busy machine with the other tests."""
REPOSITORY = Path(__file__).parents[2]
_BOUND = Path(deploy.local.__file__).with_name("bound_to_starter.py")
_TAIL_LINES = 40


def wait_until(condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> float:
    """Return how many seconds it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"waited in vain until {what}"
        time.sleep(0.02)
    took = time.monotonic() - began
    print(f"{took:.1f} s until {what}")  # shown where the test fails
    return took


class Worker:
    """A worker process, or another program that behaves like one (`program`: arguments for Python)."""

    def __init__(
        self,
        settings: Settings,
        folder: Path,
        program: Sequence[str] | None = None,
        only: str = "views",
        given: Mapping[str, str] | None = None,
        python: Path | str = sys.executable,
    ) -> None:
        self.port = free_port()
        self.log = folder / f"worker-{self.port}.log"
        command = [str(python), *(program or ("-m", "recallog_service", "worker"))]
        command += [] if program else ["--port", str(self.port), "--only", only]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RECALLOG_")}
        environment |= dict(given or {})
        environment |= {"RECALLOG_LEDGER": str(settings.ledger), "RECALLOG_VIEWS": str(settings.views)}
        environment |= {"RECALLOG_WORKER_PORT": str(self.port), "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"}
        with self.log.open("wb") as log:
            # It ends with the tests, however those end.
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_BOUND), str(os.getpid()), *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def health(self, path: str = "/health") -> dict[str, Any]:
        """The answer of /health with its `status`; empty if there is no answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as answer:
                return {"status": answer.status, **json.load(answer)}
        except urllib.error.HTTPError as error:
            with error:
                return {"status": error.code, **json.load(error)}
        except OSError:
            return {}

    def metrics(self) -> dict[str, float]:
        """The value of each series, by its name with labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=SECONDS) as answer:
            lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def partitions(self, state: str = "live") -> set[int]:
        return {each["partition"] for each in self.health().get("partitions", ()) if each["state"] == state}

    def problems(self) -> str:
        return " ".join(self.health().get("problems", ()))

    def wait_until(self, condition: Callable[[dict[str, Any]], Any], what: str, seconds: float = SECONDS) -> float:
        """Wait until `condition` holds for its health; the seconds that it took."""
        try:
            return wait_until(lambda: (health := self.health()) and condition(health), what, seconds)
        except AssertionError as error:
            tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
            raise AssertionError(f"{error}\n{json.dumps(self.health(), indent=1)}\n{tail}") from None

    def wait_until_live(self, count: int = PARTITIONS, seconds: float = SECONDS) -> float:
        """Wait until it is healthy and has `count` partitions, all of them live."""

        def live(health: dict[str, Any]) -> bool:
            states = [partition["state"] for partition in health["partitions"]]
            return health["healthy"] and states == ["live"] * count

        return self.wait_until(live, f"{count} partitions are live", seconds)

    def wait_until_red(self, because: str, seconds: float = SECONDS) -> float:
        """Wait until /health returns 503 with the reason `because`."""

        def red(health: dict[str, Any]) -> bool:
            return health["status"] == 503 and not health["healthy"] and because in " ".join(health["problems"])

        return self.wait_until(red, f"/health is red because {because!r}", seconds)

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)

    def terminate(self) -> int:
        """Send SIGTERM and wait; its exit code."""
        self.process.terminate()
        return self.process.wait(SECONDS)


class Cluster:
    """A topic and a Redis, the settings that name them, and the workers that were started for them."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        redis_url: str,
        folder: Path,
        *,
        partitions: int = PARTITIONS,
        options: str = "",
        python: Path | str = sys.executable,
    ) -> None:
        self.python = Path(python)
        """The interpreter of its workers."""
        self.bootstrap = bootstrap
        self.topic = topic
        self.partitions = partitions
        self.redis_url = redis_url
        self.folder = folder
        ledger = f"kafka://{bootstrap}/{topic}?partitions={partitions}&replication=1{options}"
        self.settings = Settings(
            ledger=ledger, views=redis_url, after_wait_seconds=SECONDS, deadline_seconds=DEADLINE_SECONDS
        )
        self.workers: list[Worker] = []

    def worker(self, program: Sequence[str] | None = None, *, only: str = "views", **environment: str) -> Worker:
        """A worker in the role of views, or in those that `only` names."""
        self.workers.append(Worker(self.settings, self.folder, program, only, environment, self.python))
        return self.workers[-1]

    def live_worker(self) -> Worker:
        """A worker that has all partitions, all of them live."""
        worker = self.worker()
        worker.wait_until_live(self.partitions)
        return worker

    def ask(self, question: Callable[[Memory], Awaitable[Result]], **changed: Any) -> Result:
        """The answer of a new memory with the settings of the cluster."""

        async def work() -> Result:
            async with Memory.open(self.settings.model_copy(update=changed)) as memory:
                return await question(memory)

        return asyncio.run(work())

    def publish(self, events: Sequence[Event]) -> list[Position]:
        """Publish, and wait until the views have processed the last event of each partition."""

        async def work(memory: Memory) -> list[Position]:
            published = await memory.publish_many(events)
            await memory.catch_up()
            return list(published)

        return self.ask(work)

    def publish_only(self, events: Sequence[Event]) -> list[Position]:
        """Publish without waiting for views."""
        return list(self.ask(lambda memory: memory.publish_many(events)))

    def assert_views_are_the_fold(self, records: int) -> None:
        """All views are complete, and equal to a new fold of `records` records."""

        async def work(memory: Memory) -> None:
            await memory.catch_up()
            report = await memory.admin.verify()
            assert [check.difference for check in report.tables if check.difference is not None] == []
            status = await memory.admin.status()
            assert status.records == records
            assert [(row.lag, row.checkpoint) for row in status.partitions if row.lag] == []

        self.ask(work)

    def refusal(self, question: Callable[[Memory], Awaitable[Any]], **changed: Any) -> RecallogError | None:
        """The error that a query raises; None if it is answered."""
        try:
            self.ask(question, **changed)
        except RecallogError as error:
            return error
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        for worker in self.workers:
            worker.kill()
