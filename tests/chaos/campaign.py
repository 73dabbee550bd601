"""What happens, in which order and when: all of it decided by the seed before anything starts."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

REDIS = "redis"
KAFKA = "kafka"
SESSION_SECONDS = 10.0
"""How long a worker may be silent before the group gives its partitions to others."""

_LONG_SECONDS = 15.0

Deed = Literal["kill", "pause", "rebuild"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that is done to the cluster."""

    after_seconds: float
    """Since the one before."""
    deed: Deed
    whom: tuple[str, ...] = ()
    """Names of processes; two of them are struck at the same moment."""
    seconds: float = 0.0
    """How long they stay down, or frozen; the life of a rebuild, 0 where it may go on to its end."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The size of a run."""

    seed: int
    kills: int = 100
    """kill -9 of workers, Redis and the broker; those of producers and rebuilds come on top."""
    events: int = 200_000
    spaces: int = 200
    pauses: int = 10
    """SIGSTOP of a worker for longer than its group waits."""
    workers: int = 3
    producers: int = 2
    voices: int = 4
    """Calls that each producer has under way at a time."""
    gap_seconds: float = 8.0
    """Between two actions, on average."""
    down_seconds_max: float = 8.0
    partitions: int = 8
    thorough: bool = True
    """Some workers stay away for longer than their group waits; and when all is over, a rebuild must change nothing."""

    @classmethod
    def quick(cls, seed: int) -> "Campaign":
        """About a minute, for CI."""
        return cls(
            seed,
            pauses=1,
            kills=8,
            events=10_000,
            spaces=40,
            voices=2,
            gap_seconds=2.0,
            down_seconds_max=2.5,
            thorough=False,
        )

    @property
    def worker_names(self) -> list[str]:
        return [f"worker-{number}" for number in range(1, self.workers + 1)]

    @property
    def producer_names(self) -> list[str]:
        return [f"producer-{number}" for number in range(1, self.producers + 1)]

    @property
    def space_names(self) -> list[str]:
        return [f"space-{number:03}" for number in range(self.spaces)]

    def events_of(self, space: str) -> int:
        """How many events are said in `space`."""
        each, rest = divmod(self.events, self.spaces)
        return each + (self.space_names.index(space) < rest)

    def spaces_of(self, producer: str) -> list[str]:
        """A space has one producer: else there would be no order to speak of."""
        return self.space_names[self.producer_names.index(producer) :: self.producers]

    def actions(self) -> list[Action]:
        """All that will be done."""
        chance = random.Random(f"{self.seed} actions")
        actions = [Action(self._gap(chance), "kill", whom, self._down(chance, whom)) for whom in self._victims(chance)]
        # Not among the last ones, which all would wait for them.
        latest = max(2, len(actions) - round(_LONG_SECONDS / self.gap_seconds))
        for deed in self._other_deeds(chance):
            actions.insert(chance.randrange(1, latest), deed)
        return actions

    def _victims(self, chance: random.Random) -> Iterator[tuple[str, ...]]:
        """Whom each strike hits. Of ten kills five hit workers, and each service gets two at least; then ten more."""
        left = self.kills
        while left > 0:
            two = tuple(chance.sample(self.worker_names, min(2, self.workers)))
            services = [(REDIS, KAFKA)] if chance.random() < 0.3 else [(REDIS,), (KAFKA,)]
            one, other, third = ((chance.choice(self.worker_names),) for _ in range(3))
            strikes = []
            for whom in (two, *services, one, (REDIS,), (KAFKA,), other, third, (chance.choice((REDIS, KAFKA)),)):
                strikes.append(whom[:left])
                left -= len(strikes[-1])
            strikes = [whom for whom in strikes if whom]
            chance.shuffle(strikes)
            yield from strikes

    def _other_deeds(self, chance: random.Random) -> Iterator[Action]:
        for _ in range(self.pauses):
            seconds = SESSION_SECONDS + chance.uniform(1.5, 5.0)
            yield Action(self._gap(chance), "pause", (chance.choice(self.worker_names),), seconds)
        for _ in range(max(1, self.kills // 15)):
            yield Action(self._gap(chance), "kill", (chance.choice(self.producer_names),), self._down(chance, ()))
        for number in range(max(2, self.kills // 5)):
            yield Action(self._gap(chance), "rebuild", (), chance.uniform(1.5, 9.0) if number % 2 == 0 else 0.0)

    def _gap(self, chance: random.Random) -> float:
        """Now and then hardly any, so that troubles meet."""
        return chance.uniform(0, 0.4) if chance.random() < 0.15 else chance.uniform(0.4, 1.95) * self.gap_seconds

    def _down(self, chance: random.Random, whom: tuple[str, ...]) -> float:
        long = self.thorough and chance.random() < 0.3 and all(name in self.worker_names for name in whom)
        if long and len(whom) == 1:
            return SESSION_SECONDS + chance.uniform(0.5, 3.0)
        return chance.uniform(0.8 if len(whom) > 1 else 0.1, self.down_seconds_max)
