"""Carries a campaign out: starts workers and producers, strikes, brings back what was struck, waits for the end."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local import LocalKafka, LocalRedis, LocalServer, LocalServerError

from chaos import history
from chaos.campaign import KAFKA, REDIS, Action, Campaign
from chaos.processes import Task, Worker, module
from chaos.producer import Pace, history_of, pace_of
from chaos.rebuilds import Rebuilds
from chaos.watching import Seen, Watch

TOPIC = "recallog.events"
TICK_SECONDS = 0.1
END_SECONDS_MAX = 300.0
"""How long producers may go on after the last action, and rebuilds."""
_CALM = 0.4
"""How much of what may be said until an action comes before it, little by little; the rest comes in a rush."""
_RUSH_SECONDS = 0.6
PATIENCE_SECONDS = (2, 30, 5)
"""How long a call of each producer waits for the broker: the shorter, the more outcomes are unknown."""


@dataclass(slots=True)
class Tolls:
    """What was done, and what came of it."""

    kills: Counter[str] = field(default_factory=Counter)
    """By kind: worker, redis, kafka, producer."""
    both_down: int = 0
    pauses: int = 0
    tally: history.Tally = field(default_factory=history.Tally)
    findings: list[str] = field(default_factory=list)

    @property
    def struck(self) -> int:
        """Kills of workers, Redis and the broker."""
        return sum(count for kind, count in self.kills.items() if kind != "producer")


class Conductor:
    """Owns all processes but the broker and Redis, which it strikes and brings back too."""

    def __init__(
        self,
        campaign: Campaign,
        folder: Path,
        kafka: LocalKafka,
        redis: LocalRedis,
        show: Callable[[Tolls, Seen], None],
    ) -> None:
        self.campaign = campaign
        self.tolls = Tolls()
        ledger = f"kafka://{kafka.bootstrap}/{TOPIC}?partitions={campaign.partitions}&replication=1"
        self.settings = {"RECALLOG_LEDGER": ledger, "RECALLOG_VIEWS": redis.url}
        self.workers = {name: Worker(folder / name, self.settings) for name in campaign.worker_names}
        self.rebuilds = Rebuilds(folder, self.settings, self.tolls.findings)
        self.watch = Watch(self.workers)
        self._servers: Mapping[str, LocalServer] = {**self.workers, REDIS: redis, KAFKA: kafka}
        self._folder = folder
        self._journal = history.Writer(folder / "journal.jsonl")
        self._show = show
        self._pace = Pace(pace_of(folder))
        self._tails = [history.Tail(history_of(folder, name)) for name in campaign.producer_names]
        self._producers: dict[str, Task] = {}
        self._away: dict[str, Future[None]] = {}
        """Who is down or frozen, until its future is done."""
        self._pool = ThreadPoolExecutor(len(self._servers) + campaign.producers, "bring-back")
        self._stopping = threading.Event()

    def __enter__(self) -> "Conductor":
        try:
            for starting in [self._pool.submit(worker.start) for worker in self.workers.values()]:
                starting.result()
            self.watch.start()
        except BaseException:  # Ctrl-C too
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._kill_all()
        self._pool.shutdown()
        self._kill_all()  # what a thread was just about to start
        self.watch.stop()

    def _kill_all(self) -> None:
        for task in self._producers.values():
            task.kill()
        self.rebuilds.kill_all()
        for worker in self.workers.values():
            worker.kill()

    def carry_out(self) -> None:
        """Do it all; returns when everything is said and everybody is back. Raises `LocalServerError`."""
        for name in self.campaign.producer_names:
            self._produce(name)
        actions = self.campaign.actions()
        share, chance = 1 / len(actions), random.Random(f"{self.campaign.seed} bursts")
        for number, action in enumerate(actions):
            self._wait(action.after_seconds, number * share, (number + _CALM) * share)
            struck = " and ".join(action.whom)
            self._until(f"{struck} to be back", lambda whom=action.whom: not self._away.keys() & set(whom))  # type: ignore[misc]
            # A rush of events, so that the blow meets somebody who is in the middle of something.
            self._pace.write((number + 1) * share)
            time.sleep(chance.uniform(0.0, _RUSH_SECONDS))
            self._do(action)
        self._pace.write(1.0)
        self._until("the processes that were struck to be back", lambda: not self._away)
        self._until("the producers to end", self._all_said)
        self.rebuilds.let_end()
        self._until("the rebuilds to end", lambda: not self.rebuilds.running)

    def _do(self, action: Action) -> None:
        if action.deed == "rebuild":
            self._journal.note("rebuild", seconds=round(action.seconds, 2))
            self.rebuilds.start(action.seconds)
            return
        for name in action.whom:
            if action.deed == "pause":
                self._servers[name].pause()
                self.tolls.pauses += 1
                self._later(name, action.seconds, self._servers[name].resume)
            elif name in self._servers:
                self._servers[name].kill()
                self.tolls.kills[name.partition("-")[0]] += 1
                self._later(name, action.seconds, self._servers[name].start)
            elif self._producers[name].code is None:
                self._producers[name].kill()
                self.tolls.kills["producer"] += 1
                self._later(name, action.seconds, lambda name=name: self._produce(name))  # type: ignore[misc]
        self.tolls.both_down += len(self._away.keys() & self.workers.keys()) > 1

    def _later(self, name: str, seconds: float, bring_back: Callable[[], object]) -> None:
        self._journal.note("away", who=name, seconds=round(seconds, 2))

        def work() -> None:
            if not self._stopping.wait(seconds):
                began = time.monotonic()
                bring_back()
                self._journal.note("back", who=name, after=round(time.monotonic() - began, 2))

        self._away[name] = self._pool.submit(work)

    def _produce(self, name: str) -> None:
        campaign = self.campaign
        number = campaign.producer_names.index(name)
        patience = PATIENCE_SECONDS[number % len(PATIENCE_SECONDS)]
        ledger = f"{self.settings['RECALLOG_LEDGER']}&timeout_seconds={patience}"
        settings = {**self.settings, "RECALLOG_LEDGER": ledger, "RECALLOG_AFTER_WAIT_SECONDS": "3"}
        sizes = ("seed", "events", "spaces", "producers", "voices")
        options = [word for size in sizes for word in (f"--{size}", getattr(campaign, size))]
        command = module("chaos.producer", name, self._folder, *options)
        self._producers[name] = Task(command, self._folder, self._folder / f"{name}.log", settings)

    def _all_said(self) -> bool:
        return all(task.code == 0 for task in self._producers.values())

    def _wait(self, seconds: float, share: float, then: float) -> None:
        """Let things go on for so long; what may be said grows from one share of all to the other."""
        began = time.monotonic()
        while (past := time.monotonic() - began) < seconds:
            self._pace.write(share + (then - share) * past / seconds)
            self.tick()

    def _until(self, what: str, done: Callable[[], bool]) -> None:
        give_up = time.monotonic() + END_SECONDS_MAX
        while not done():
            if time.monotonic() > give_up:
                self.tolls.findings.append(f"waited for {what} for {END_SECONDS_MAX:g} s, in vain")
                return
            self.tick()

    def tick(self) -> None:
        """A moment passes: see who is back, who has fallen, and what was acknowledged."""
        time.sleep(TICK_SECONDS)
        for name in [name for name, coming_back in self._away.items() if coming_back.done()]:
            self._away.pop(name).result()
        self._notice_the_fallen()
        self.rebuilds.look()
        for tail in self._tails:
            for line in tail.lines():
                self.tolls.tally.add(line)
                if line.get("right") is False:
                    self.tolls.findings.append(f"a producer does not find what it has published: {line}")
        self._show(self.tolls, self.watch.seen)

    def _notice_the_fallen(self) -> None:
        """Whoever ended without being struck: that is a finding, and they are started again."""
        for name, server in self._servers.items():
            if name not in self._away and not server.running:
                self.tolls.findings.append(f"{name} ended by itself: see {server.log}")
                self._later(name, 0.0, server.start)
        for name, task in list(self._producers.items()):
            if name not in self._away and task.code not in (None, 0):
                self.tolls.findings.append(f"{name} ended with {task.code}: see {task.log}")
                if len(self.tolls.findings) > 20:
                    raise LocalServerError("producers end again and again")
                self._later(name, 1.0, lambda name=name: self._produce(name))  # type: ignore[misc]
