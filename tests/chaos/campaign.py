"""The actions of a chaos run and their times, determined by the seed before anything starts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

REDIS = "redis"
KAFKA = "kafka"
MODEL = "model"
SESSION_SECONDS = 10.0
"""The session timeout of the consumer group, after which a silent worker loses its partitions."""

_LONG_SECONDS = 15.0
_JUMP_SECONDS_MAX = 3600.0
_ROUND_SECONDS = 150.0
_ACTIONS_OF_A_ROUND = 7
_EVENTS_PER_SECOND = 12.0
_STOPPED_SECONDS = (2.5, 6.0)
"""Longer than a question waits for an answer."""

ActionKind = Literal["kill", "pause", "stop", "rebuild", "wipe", "fill", "jump", "hand over"]


@dataclass(frozen=True, slots=True)
class Action:
    """One action on the cluster."""

    after_seconds: float
    """Seconds since the previous action."""
    kind: ActionKind
    targets: tuple[str, ...] = ()
    """Names of processes; two of them are killed at the same moment."""
    seconds: float = 0.0
    """How long they stay down or paused, or their disk full; by how much their clock jumps; after which time a rebuild
    is killed, or 0 to let it finish."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The sizes of a run, and the actions that follow from them."""

    seed: int
    kills: int = 100
    """kill -9 of workers, Redis and the broker; those of producers, the model and rebuilds are additional."""
    events: int = 200_000
    spaces: int = 200
    pauses: int = 10
    """SIGSTOP of a worker for longer than the session timeout of its group."""
    stops: int = 12
    """SIGSTOP of a worker, of Redis and of the broker in turn, for some seconds."""
    wipes: int = 3
    """FLUSHALL of Redis, which loses all views."""
    fills: int = 6
    """A full disk of Redis and of the broker in turn, for some seconds."""
    jumps: int = 12
    """Jumps of the wall clock of a worker, of Redis and of the broker in turn, by up to an hour in both directions."""
    handovers: int = 6
    """SIGTERM of a worker, whose partitions others take over."""
    workers: int = 3
    producers: int = 2
    appenders: int = 2
    """Processes that append to lists and read them."""
    concurrency: int = 4
    """Concurrent calls of each producer."""
    gap_seconds: float = 8.0
    """Between two actions, on average."""
    down_seconds_max: float = 8.0
    partitions: int = 8
    calm_every: int = 0
    """After so many actions nothing happens for `calm_seconds`; 0 for no calm."""
    calm_seconds: float = 80.0
    """Triggers must be answered promptly from 30 s after the last fault on."""
    seconds: float | None = None
    """The actions end after this time, whether they are all done or not."""
    thorough: bool = True
    """Some workers stay down for longer than the session timeout, and a final rebuild must not change the views."""

    @classmethod
    def quick(cls, seed: int) -> "Campaign":
        """A run of about a minute, for CI."""
        return cls(
            seed,
            pauses=1,
            stops=3,
            wipes=1,
            fills=1,
            jumps=1,
            handovers=1,
            kills=6,
            events=5_000,
            appenders=1,
            spaces=40,
            concurrency=2,
            gap_seconds=2.0,
            down_seconds_max=2.5,
            thorough=False,
        )

    @classmethod
    def lasting(cls, seed: int, seconds: float) -> "Campaign":
        """A run of about `seconds`, at a modest rate of events, with calm between storms of actions."""
        rounds = max(1, round(seconds / _ROUND_SECONDS))
        return cls(
            seed,
            kills=3 * rounds,
            events=max(2_000, round(_EVENTS_PER_SECOND * seconds)),
            spaces=60,
            pauses=rounds // 4,
            stops=rounds // 2,
            wipes=max(1, rounds // 4),
            fills=max(2, rounds // 3),
            jumps=rounds // 2,
            handovers=max(1, rounds // 4),
            calm_every=_ACTIONS_OF_A_ROUND,
            seconds=seconds,
        )

    @property
    def worker_names(self) -> list[str]:
        return [f"worker-{number}" for number in range(1, self.workers + 1)]

    @property
    def producer_names(self) -> list[str]:
        return [f"producer-{number}" for number in range(1, self.producers + 1)]

    @property
    def appender_names(self) -> list[str]:
        return [f"appender-{number}" for number in range(1, self.appenders + 1)]

    @property
    def space_names(self) -> list[str]:
        return [f"space-{number:03}" for number in range(self.spaces)]

    def events_of(self, space: str) -> int:
        """The number of events of `space`."""
        each, rest = divmod(self.events, self.spaces)
        return each + (self.space_names.index(space) < rest)

    def spaces_of(self, producer: str) -> list[str]:
        """The spaces of a producer. Each space has one producer, so that the order of its events is defined."""
        return self.space_names[self.producer_names.index(producer) :: self.producers]

    def actions(self) -> list[Action]:
        """All actions in order."""
        rng = random.Random(f"{self.seed} actions")
        actions = [Action(self._gap(rng), "kill", targets, self._down(rng, targets)) for targets in self._victims(rng)]
        # Not among the last actions, since the run would wait for them at the end.
        latest = max(2, len(actions) - round(_LONG_SECONDS / self.gap_seconds))
        for action in self._other_actions(rng):
            actions.insert(rng.randrange(1, latest), action)
        if self.calm_every:
            for number in range(self.calm_every, len(actions), self.calm_every):
                after = self.calm_seconds + actions[number].after_seconds
                actions[number] = replace(actions[number], after_seconds=after)
        return actions

    def _victims(self, rng: random.Random) -> Iterator[tuple[str, ...]]:
        """The targets of each kill. Of every ten kills, five hit workers and at least two hit each service."""
        left = self.kills
        while left > 0:
            two = tuple(rng.sample(self.worker_names, min(2, self.workers)))
            services = [(REDIS, KAFKA)] if rng.random() < 0.3 else [(REDIS,), (KAFKA,)]
            one, other, third = ((rng.choice(self.worker_names),) for _ in range(3))
            strikes = []
            for targets in (two, *services, one, (REDIS,), (KAFKA,), other, third, (rng.choice((REDIS, KAFKA)),)):
                strikes.append(targets[:left])
                left -= len(strikes[-1])
            strikes = [targets for targets in strikes if targets]
            rng.shuffle(strikes)
            yield from strikes

    def _other_actions(self, rng: random.Random) -> Iterator[Action]:
        for _ in range(self.pauses):
            seconds = SESSION_SECONDS + rng.uniform(1.5, 5.0)
            yield Action(self._gap(rng), "pause", (rng.choice(self.worker_names),), seconds)
        for number in range(self.stops):
            target = (rng.choice(self.worker_names), REDIS, KAFKA)[number % 3]
            yield Action(self._gap(rng), "stop", (target,), rng.uniform(*_STOPPED_SECONDS))
        for _ in range(self.wipes):
            yield Action(self._gap(rng), "wipe", (REDIS,))
        for number in range(self.fills):
            yield Action(self._gap(rng), "fill", ((REDIS, KAFKA)[number % 2],), rng.uniform(*_STOPPED_SECONDS))
        for number in range(self.jumps):
            target = (rng.choice(self.worker_names), REDIS, KAFKA)[number % 3]
            yield Action(self._gap(rng), "jump", (target,), rng.uniform(-_JUMP_SECONDS_MAX, _JUMP_SECONDS_MAX))
        for _ in range(self.handovers):
            yield Action(self._gap(rng), "hand over", (rng.choice(self.worker_names),), self._down(rng, ()))
        for _ in range(max(1, self.kills // 15)):
            yield Action(self._gap(rng), "kill", (rng.choice(self.producer_names),), self._down(rng, ()))
        for _ in range(max(1, self.kills // 15)):
            yield Action(self._gap(rng), "kill", (rng.choice(self.appender_names),), self._down(rng, ()))
        for _ in range(max(2, self.kills // 8)):
            yield Action(self._gap(rng), "kill", (MODEL,), self._down(rng, (MODEL,)))
        for number in range(max(2, self.kills // 5)):
            yield Action(self._gap(rng), "rebuild", (), rng.uniform(1.5, 9.0) if number % 2 == 0 else 0.0)

    def _gap(self, rng: random.Random) -> float:
        """Seconds between two actions; sometimes almost none, so that failures overlap."""
        return rng.uniform(0, 0.4) if rng.random() < 0.15 else rng.uniform(0.4, 1.95) * self.gap_seconds

    def _down(self, rng: random.Random, targets: tuple[str, ...]) -> float:
        long = self.thorough and rng.random() < 0.3 and all(name in self.worker_names for name in targets)
        if long and len(targets) == 1:
            return SESSION_SECONDS + rng.uniform(0.5, 3.0)
        return rng.uniform(0.8 if len(targets) > 1 else 0.1, self.down_seconds_max)
