"""A run: starts the processes, samples them until the time is over, stops them, and verifies the folder."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deploy.local.ports import HOST, free_port

from chaos.processes import Task, module, recallog
from recallog import Memory, Settings, layout
from soak import trends
from soak.sampling import PARTS, Usage, disk_bytes, usage
from soak.story import FOLLOWED
from soak.trends import Trend

PROCESSES = ("writer", "reader", "server", "client", "index")
_BEGUN = 100
"""Actions of the writer after which the others begin."""
_START_SECONDS = 120
_STOP_SECONDS = 60
_COMMAND_SECONDS = 60.0
"""How often a command runs that opens the folder and closes it."""
_SAMPLES = 720
_IDLE_SECONDS = 5.0
"""So long the process of the index lives after the others have ended."""


@dataclass(frozen=True)
class Plan:
    """What a run does."""

    hours: float
    events: float = 12.0
    """Actions of the writer a second, at most."""
    questions: float = 3.0
    """Questions to the folder a second, at most; half as many to the server."""
    leak: str = ""
    """What the process that reads leaks on purpose."""

    @property
    def seconds(self) -> float:
        return self.hours * 3600

    @property
    def sample_seconds(self) -> float:
        return max(self.seconds / _SAMPLES, 0.5)


@dataclass(frozen=True)
class Sample:
    """All figures of one moment."""

    seconds: float
    events: int
    """The records of the ledger, as `status` counts them."""
    processes: Mapping[str, Usage]
    disk: Mapping[str, int]


@dataclass
class Outcome:
    """What a run has seen."""

    plan: Plan
    samples: list[Sample] = field(default_factory=list)
    reports: dict[str, Any] = field(default_factory=dict)
    """The counts and errors of each process of the load."""
    verified: str = ""
    findings: list[str] = field(default_factory=list)
    """What is wrong, apart from trends."""

    def judged(self) -> Sequence[Trend]:
        """The trends of all series after the warm-up."""
        samples = self.samples[trends.after_warm_up(len(self.samples)) :]
        if len(samples) < 4:
            return []
        times, events = [each.seconds for each in samples], [float(each.events) for each in samples]
        found = []
        for name in PROCESSES:
            used = [each.processes[name] for each in samples]
            more = trends.INDEX_BYTES_PER_EVENT * (events[-1] - events[0]) / (1 << 20) if name == "index" else 0.0
            memory = [each.memory_mb for each in used]
            found += [
                trends.growth(f"memory of {name}", times, memory, trends.MEMORY_MB + more, "MB"),
                _count(f"descriptors of {name}", times, [each.descriptors for each in used], trends.DESCRIPTORS),
                _count(f"threads of {name}", times, [each.threads for each in used], trends.THREADS),
            ]
        return found + [
            trends.per_event(f"disk of {part}", events, [float(each.disk[part]) for each in samples]) for part in PARTS
        ]

    def problems(self) -> list[str]:
        """Everything that is wrong, each in one line. Empty: the run was clean."""
        return self.findings + [f"{each.describe()}: it grows" for each in self.judged() if each.grows]

    def document(self) -> dict[str, Any]:
        """All figures, for programs."""
        return {
            "plan": asdict(self.plan),
            "clean": not self.problems(),
            "problems": self.problems(),
            "trends": [asdict(each) | {"grows": each.grows} for each in self.judged()],
            "verified": self.verified,
            "reports": self.reports,
            "samples": [asdict(each) for each in self.samples],
        }


def _count(series: str, times: Sequence[float], values: Sequence[int], limit: float) -> Trend:
    return trends.growth(series, times, [float(each) for each in values], limit, "more")


class Run:
    """The processes of a run, in a folder of its own."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.outcome = Outcome(plan)
        self._plan = plan
        self._folder = folder
        self._home = folder / "memory"
        self._settings = {"RECALLOG_HOME": str(self._home), "RECALLOG_INDEX_IDLE_SECONDS": f"{_IDLE_SECONDS:g}"}
        self._tasks: dict[str, Task] = {}

    def execute(self, sampled: Callable[[Outcome], None]) -> Outcome:
        """Run to the end of the plan. `sampled` is called after each sample."""
        with self._processes():
            self._sample_until_the_end(sampled)
            self._stop("writer")
            self._stop("reader")
            self._wait_for_the_stream()
            self._stop("client")
            self._stop("server")
        asyncio.run(self._verify())
        return self.outcome

    @contextmanager
    def _processes(self) -> Iterator[None]:
        port = free_port()
        url = f"http://{HOST}:{port}"
        with ExitStack() as running:
            running.callback(self._kill)
            self._load("writer", self._plan.events)
            self._until(lambda: self._counts("writer").get("actions", 0) >= _BEGUN, "the writer does not begin")
            self._start("server", recallog("serve", "--port", str(port), "--react", "--log-level", "warning"))
            self._until(lambda: _answers(f"{url}/readyz"), "the server does not start")
            self._load("reader", self._plan.questions, self._plan.leak)
            self._load("client", self._plan.questions / 2, url)
            self._until(lambda: self._index() is not None, "the process of the index does not start")
            self._until(lambda: self._events() > 0, "the reader does not begin")
            yield

    def _load(self, name: str, rate: float, *more: str) -> None:
        self._start(name, module(f"soak.{name}", self._report(name), rate, *more))

    def _start(self, name: str, command: Sequence[str]) -> None:
        self._tasks[name] = Task(command, self._folder, self._folder / f"{name}.log", self._settings)

    def _stop(self, name: str) -> None:
        code = self._tasks[name].end(_STOP_SECONDS)
        if code != 0:
            self.outcome.findings.append(f"{name} ended with exit code {code}: {self._log(name)}")
        if name != "server":
            self.outcome.reports[name] = report = self._counted(name)
            errors = report.get("counts", {}).get("errors", 0)
            if errors:
                self.outcome.findings.append(f"{name} had {errors:,} errors, first {report['errors'][0]}")

    def _kill(self) -> None:
        for task in self._tasks.values():
            task.kill()

    def _sample_until_the_end(self, sampled: Callable[[Outcome], None]) -> None:
        began = time.monotonic()
        command_at, first = began + _COMMAND_SECONDS, self._index()
        number = 0
        while (now := time.monotonic()) - began < self._plan.seconds:
            number += 1
            if not self._sample(now - began):
                return
            sampled(self.outcome)
            if now > command_at:
                command_at += _COMMAND_SECONDS
                self._command()
            time.sleep(max(began + number * self._plan.sample_seconds - time.monotonic(), 0))
        if self._index() != first:
            self.outcome.findings.append("the process of the index was started again")

    def _sample(self, seconds: float) -> bool:
        """Take a sample. False: a process has ended."""
        pids = {name: task.pid for name, task in self._tasks.items()} | {"index": self._index() or 0}
        used = {name: taken for name, pid in pids.items() if (taken := usage(pid)) is not None}
        ended = [name for name in PROCESSES if name not in used]
        if ended:
            self.outcome.findings += [f"{name} ended after {seconds:,.0f} s: {self._log(name)}" for name in ended]
            return False
        self.outcome.samples.append(Sample(seconds, self._events(), used, disk_bytes(self._home)))
        return True

    def _command(self) -> None:
        """A process that opens the folder, asks, and closes it."""
        task = Task(
            recallog("recall", FOLLOWED, "baker", "who owes flour?", "--json"),
            self._folder,
            self._folder / "command.log",
            self._settings,
        )
        if (code := task.wait(_STOP_SECONDS)) != 0:
            self.outcome.findings.append(f"a command ended with exit code {code}: {self._log('command')}")

    def _wait_for_the_stream(self) -> None:
        """The client has had each event of the space once."""
        expected = asyncio.run(self._followed())
        deadline = time.monotonic() + _STOP_SECONDS
        while (followed := self._counts("client").get("followed", 0)) != expected:
            if time.monotonic() > deadline:
                self.outcome.findings.append(f"the stream had {followed:,} events, the ledger has {expected:,}")
                return
            time.sleep(0.5)
            expected = asyncio.run(self._followed())  # reactors of the server may still write

    async def _followed(self) -> int:
        async with self._open() as memory:
            found = (await memory.space(FOLLOWED)).activity
        return 0 if found is None else found.events

    def _open(self) -> Memory:
        return Memory.open(Settings(home=self._home, index="embedded", index_idle_seconds=_IDLE_SECONDS))

    async def _verify(self) -> None:
        async with self._open() as memory:
            report = await memory.admin.verify()
        self.outcome.verified = report.format()
        self.outcome.findings += [f"verify: {each.problem}" for each in report.findings()]

    def _index(self) -> int | None:
        """The pid of the process that serves the index."""
        try:
            return int(json.loads((self._home / layout.INDEX_ADDRESS).read_text())["pid"])
        except FileNotFoundError:
            return None

    def _events(self) -> int:
        return int(self._counted("reader").get("events", 0))

    def _counts(self, name: str) -> Mapping[str, int]:
        counts: Mapping[str, int] = self._counted(name).get("counts", {})
        return counts

    def _counted(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._report(name).read_text())
        except FileNotFoundError:
            return {}
        return found

    def _report(self, name: str) -> Path:
        return self._folder / f"{name}.json"

    def _log(self, name: str) -> str:
        log = self._home / layout.INDEX_LOG if name == "index" else self._folder / f"{name}.log"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
        return lines[-1] if lines else "it said nothing"

    def _until(self, begun: Callable[[], bool], problem: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not begun():
            if time.monotonic() > deadline:
                logs = "; ".join(f"{name}: {self._log(name)}" for name in self._tasks)
                raise RuntimeError(f"{problem}: {logs}")
            time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False
