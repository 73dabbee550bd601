"""Executes a campaign: starts workers and producers, kills and pauses processes, restarts them, waits for the end."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import redis as redis_client
from deploy.local import LocalKafka, LocalRedis, LocalServer, LocalServerError

from chaos import appends, history, reader
from chaos.campaign import KAFKA, MODEL, REDIS, Action, ActionKind, Campaign
from chaos.clocks import Clock, JumpingKafka, JumpingRedis
from chaos.copies import Copies
from chaos.full_disk import fill_disk, free_disk
from chaos.latencies import Faults, TopicTail
from chaos.monitor import HealthMonitor, HealthSamples
from chaos.processes import Model, Task, Worker, module
from chaos.producer import Pace, pace_of
from chaos.rebuilds import Rebuilds

TOPIC = "recallog.events"
TICK_SECONDS = 0.1
END_SECONDS_MAX = 300.0
"""How long producers and rebuilds may run after the last action."""
_STEADY_FRACTION = 0.4
"""The fraction of the events until an action that is published steadily; the others are published in a burst."""
_BURST_SECONDS = 0.6
_AFTER_FULL_SECONDS = 3.0
"""A server whose disk was full may end this much later."""
_FINDINGS_MAX = 20
"""After so many the run ends."""
OWN = {"RECALLOG_PROJECTIONS": "support.own_promises:Promises"}
"""The projection of a user that all programs know."""
_REACTORS = ("--reactors", "support.own_promises:Keeping")
CALL_TIMEOUT_SECONDS = (2, 30, 5)
"""The timeout of calls to the broker, by producer in turn. The shorter it is, the more outcomes are unknown."""


@dataclass(slots=True)
class Counts:
    """The actions so far, and their outcomes."""

    done: Counter[tuple[ActionKind, str]] = field(default_factory=Counter)
    """By kind of action and kind of target: worker, redis, kafka, producer, appender, model."""
    both_down: int = 0
    tally: history.Tally = field(default_factory=history.Tally)
    findings: list[str] = field(default_factory=list)

    @property
    def service_kills(self) -> int:
        """Kills of workers, Redis and the broker."""
        return sum(self.done["kill", kind] for kind in ("worker", REDIS, KAFKA))


class Conductor:
    """Owns all processes except the broker, Redis and the model, which it also kills and restarts."""

    def __init__(
        self,
        campaign: Campaign,
        folder: Path,
        kafka: LocalKafka,
        redis: LocalRedis,
        model: Model,
        show: Callable[[Counts, HealthSamples], None],
        shim: Path | None,
    ) -> None:
        self.campaign = campaign
        self.counts = Counts()
        ledger = f"kafka://{kafka.bootstrap}/{TOPIC}?partitions={campaign.partitions}&replication=1"
        self.settings = {"RECALLOG_LEDGER": ledger, "RECALLOG_VIEWS": redis.url, **OWN}
        of_workers = {
            **self.settings,
            "RECALLOG_MODEL": f"http://{model.address}?timeout_seconds=5#small",
        }
        self._clocks = _clocks_of(campaign, folder, kafka, redis, shim)
        self.workers = {
            name: Worker(folder / name, {**of_workers, **_environment(self._clocks.get(name))}, *_REACTORS)
            for name in campaign.worker_names
        }
        self.faults = Faults()
        self.tail = TopicTail(kafka.bootstrap, TOPIC, campaign.partitions)
        self.copies = Copies(folder, self.settings, self.counts.findings, random.Random(f"{campaign.seed} copies"))
        self._redis = redis
        self.kafka = kafka
        self.rebuilds = Rebuilds(folder, self.settings, self.counts.findings)
        self.monitor = HealthMonitor(self.workers)
        self._servers: Mapping[str, LocalServer] = {**self.workers, REDIS: redis, KAFKA: kafka, MODEL: model}
        self.folder = folder
        self._journal = history.Writer(folder / "journal.jsonl")
        self._show = show
        self._pace = Pace(pace_of(folder))
        names = (*campaign.producer_names, reader.READER, *campaign.appender_names)
        self._tails = [history.Tail(history.path_of(folder, name)) for name in names]
        self._began = time.monotonic()
        self._appender_lives: Counter[str] = Counter()
        self._reader: Task | None = None
        self._readers = 0
        self._starts: Mapping[str, Callable[[str], None]] = {
            **dict.fromkeys(campaign.producer_names, self._produce),
            **dict.fromkeys(campaign.appender_names, self._append),
        }
        """By the name of a producer or an appender: what starts it, again too."""
        self._tasks: dict[str, Task] = {}
        self._down: dict[str, Future[None]] = {}
        """The processes that are down or paused. The future is done when the process runs again."""
        self._pool = ThreadPoolExecutor(len(self._servers) + campaign.producers + campaign.appenders, "bring-back")
        self._stopping = threading.Event()
        self._ending = False

    def __enter__(self) -> "Conductor":
        try:
            for starting in [self._pool.submit(worker.start) for worker in self.workers.values()]:
                starting.result()
            self.monitor.start()
            self.tail.start()
        except BaseException:  # Ctrl-C too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._kill_all()
        self._pool.shutdown()
        self._kill_all()  # those that a thread of the pool has started since
        self.monitor.stop()
        self.tail.stop()

    def _kill_all(self) -> None:
        for task in self._tasks.values():
            task.kill()
        self.copies.kill()
        if self._reader is not None:
            self._reader.kill()
        self.rebuilds.kill_all()
        for worker in self.workers.values():
            worker.kill()

    def run(self) -> None:
        """Execute all actions, until all events are published and all processes run. Raises `LocalServerError`."""
        for name, start in self._starts.items():
            start(name)
        self._start_reader()
        actions = self.campaign.actions()
        share, rng = 1 / len(actions), random.Random(f"{self.campaign.seed} bursts")
        for number, action in enumerate(actions):
            self._wait(action.after_seconds, number * share, (number + _STEADY_FRACTION) * share)
            if self._is_over():
                break
            names = " and ".join(action.targets)
            self._until(f"{names} to run again", lambda targets=action.targets: not self._down.keys() & set(targets))  # type: ignore[misc]
            # A burst of events, so that the action interrupts work in progress.
            self._pace.write((number + 1) * share)
            time.sleep(rng.uniform(0.0, _BURST_SECONDS))
            self._do(action)
        self._pace.write(1.0)
        self._while_time_is_left()
        self._until("the killed processes to run again", lambda: not self._down)
        self._until("the producers to end", lambda: self._have_ended(self.campaign.producer_names))
        self._ending = True
        self._until("the copy to end", lambda: not self.copies.running)
        self.rebuilds.let_finish()
        self._until("the rebuilds to finish", lambda: not self.rebuilds.running)
        appends.stop_of(self.folder).touch()
        self._until("the appenders to end", lambda: self._have_ended(self.campaign.appender_names))
        reader.stop_of(self.folder).touch()
        self._until("the reader to end", lambda: self._reader is None or self._reader.code is not None)

    def _do(self, action: Action) -> None:
        if action.kind == "rebuild":
            self._journal.note("rebuild", seconds=round(action.seconds, 2))
            self.rebuilds.start(action.seconds)
        for name in action.targets:
            if not self._can_do(action, name):
                continue
            self.counts.done[action.kind, name.partition("-")[0]] += 1
            self._journal.note(action.kind, who=name, seconds=round(action.seconds, 2))
            self.faults.begin()
            bring_back = self._disturb(action, name)
            self._bring_back_later(name, action.seconds, bring_back)
        self.counts.both_down += len(self._down.keys() & self.workers.keys()) > 1

    def _can_do(self, action: Action, name: str) -> bool:
        """Whether a target still runs, or has a clock of its own."""
        if action.kind == "jump":
            return name in self._clocks
        return name not in self._tasks or self._tasks[name].code is None

    def _disturb(self, action: Action, name: str) -> Callable[[], object] | None:
        """Do an action to one process. Returns what ends it; None if it is over at once."""
        if action.kind == "wipe":
            with redis_client.Redis.from_url(self._redis.url) as client:
                client.flushall()
            return None
        if action.kind == "jump":
            self._clocks[name].jump(action.seconds)
            return None
        if name in self._starts:
            self._tasks[name].kill()
            return partial(self._starts[name], name)
        server = self._servers[name]
        if action.kind == "fill":
            return self._fill(server)
        if action.kind in ("pause", "stop"):
            server.pause()
            return server.resume
        (server.stop if action.kind == "hand over" else server.kill)()
        return server.start

    def _fill(self, server: LocalServer) -> Callable[[], object]:
        pid = server.pid
        fill_disk(pid)

        def free() -> None:
            free_disk(pid)
            self._stopping.wait(_AFTER_FULL_SECONDS)
            if not server.running:
                server.start()

        return free

    def _is_over(self) -> bool:
        limit = self.campaign.seconds
        return limit is not None and time.monotonic() - self._began > limit

    def _while_time_is_left(self) -> None:
        """Go on without actions until the time of the run is over."""
        while self.campaign.seconds is not None and not self._is_over():
            self.tick()

    def _bring_back_later(self, name: str, seconds: float, bring_back: Callable[[], object] | None) -> None:
        """End a fault that has begun, now or after some seconds."""
        if bring_back is None:
            self.faults.end()
            return

        def work() -> None:
            if not self._stopping.wait(seconds):
                began = time.monotonic()
                bring_back()
                self.faults.end()
                self._journal.note("up", who=name, after=round(time.monotonic() - began, 2))

        self._down[name] = self._pool.submit(work)

    def _produce(self, name: str) -> None:
        campaign = self.campaign
        number = campaign.producer_names.index(name)
        timeout = CALL_TIMEOUT_SECONDS[number % len(CALL_TIMEOUT_SECONDS)]
        ledger = f"{self.settings['RECALLOG_LEDGER']}&timeout_seconds={timeout}"
        settings = {**self.settings, "RECALLOG_LEDGER": ledger, "RECALLOG_AFTER_WAIT_SECONDS": "3"}
        sizes = ("seed", "events", "spaces", "producers", "concurrency")
        options = [word for size in sizes for word in (f"--{size}", getattr(campaign, size))]
        command = module("chaos.producer", name, self.folder, *options)
        self._tasks[name] = Task(command, self.folder, self.folder / f"{name}.log", settings)

    def _append(self, name: str) -> None:
        options = ("--began", self._began, "--life", self._appender_lives[name])
        self._appender_lives[name] += 1
        settings = {**self.settings, "RECALLOG_AFTER_WAIT_SECONDS": "3"}
        settings["RECALLOG_LEDGER"] += f"&timeout_seconds={CALL_TIMEOUT_SECONDS[0]}"
        command = module("chaos.appends", name, self.folder, *options)
        self._tasks[name] = Task(command, self.folder, self.folder / f"{name}.log", settings)

    def _start_reader(self) -> None:
        sizes = ("seed", "events", "spaces")
        options = [word for size in sizes for word in (f"--{size}", getattr(self.campaign, size))]
        command = module("chaos.reader", self.folder, *options, "--life", self._readers)
        self._readers += 1
        self._reader = Task(command, self.folder, self.folder / "reader.log", self.settings)

    def _have_ended(self, names: Sequence[str]) -> bool:
        return all(self._tasks[name].code == 0 for name in names)

    def _wait(self, seconds: float, share: float, then: float) -> None:
        """Wait for `seconds`, while the fraction of events to publish grows from `share` to `then`."""
        began = time.monotonic()
        while (past := time.monotonic() - began) < seconds and not self._is_over():
            self._pace.write(share + (then - share) * past / seconds)
            self.tick()

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + END_SECONDS_MAX
        while not done():
            if time.monotonic() > deadline:
                self.counts.findings.append(f"timeout after {END_SECONDS_MAX:g} s, waiting for {what}")
                return
            self.tick()

    def tick(self) -> None:
        """Wait for a moment, then update the state of all processes and the counts."""
        time.sleep(TICK_SECONDS)
        for name in [name for name, restart in self._down.items() if restart.done()]:
            self._down.pop(name).result()
        self._restart_ended()
        self.rebuilds.update()
        self.copies.update(start=not self._ending)
        for tail in self._tails:
            for line in tail.lines():
                self.counts.tally.add(line)
                if line["what"] == history.QUESTION:
                    self._check_answer(line)
                elif line.get("right") is False:
                    self.counts.findings.append(f"a producer does not find what it has published: {line}")
        self._show(self.counts, self.monitor.samples)

    def _check_answer(self, line: Mapping[str, Any]) -> None:
        if line.get("right") is False:
            self.counts.findings.append(f"a question was answered wrong: {line}")
        longest = reader.seconds_max(line["question"])
        if line["seconds"] > longest:
            self.counts.findings.append(f"a question took longer than {longest:g} s: {line}")

    def _restart_ended(self) -> None:
        """Restart processes that ended without being killed; each is a finding."""
        for name, server in self._servers.items():
            if name not in self._down and not server.running:
                self.counts.findings.append(f"{name} ended unexpectedly: see {server.log}")
                self.faults.begin()
                self._bring_back_later(name, 0.0, server.start)
        if self._reader is not None and self._reader.code not in (None, 0):
            self.counts.findings.append(f"the reader ended with {self._reader.code}: see {self._reader.log}")
            self._start_reader()
        for name, task in list(self._tasks.items()):
            if name not in self._down and task.code not in (None, 0):
                self.counts.findings.append(f"{name} ended with {task.code}: see {task.log}")
                if len(self.counts.findings) > _FINDINGS_MAX:
                    raise LocalServerError("producers or appenders end repeatedly")
                self.faults.begin()
                self._bring_back_later(name, 1.0, partial(self._starts[name], name))


def _clocks_of(
    campaign: Campaign, folder: Path, kafka: LocalKafka, redis: LocalRedis, shim: Path | None
) -> Mapping[str, Clock]:
    """The clocks that can jump: those of workers, and of servers that run with one."""
    if shim is None:
        return {}
    clocks = {}
    for name in campaign.worker_names:
        (folder / name).mkdir(exist_ok=True)
        clocks[name] = Clock(folder / name, shim)
    for name, server in ((REDIS, redis), (KAFKA, kafka)):
        if isinstance(server, JumpingRedis | JumpingKafka) and server.clock is not None:
            clocks[name] = server.clock
    return clocks


def _environment(clock: Clock | None) -> Mapping[str, str]:
    return {} if clock is None else clock.environment
