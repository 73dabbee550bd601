"""Draws moments of power failures, and what the disk has then, and checks each."""

import asyncio
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from power.recording import MEMORY, Recording
from power.recovery import problems, values_of
from power.workload import opened

CHANCES = (0.0, 0.0, 0.1, 0.5, 0.9, 1.0)
"""How likely each change that was not synced is on the disk. With 1 the folder is as after kill -9."""


@dataclass(frozen=True)
class Failure:
    """A power failure after the first `moment` records."""

    number: int
    moment: int
    chance: float

    def describe(self) -> str:
        return f"trial {self.number}: after record {self.moment:,}, with {self.chance:.0%} of what was not synced"


@dataclass(frozen=True)
class Outcome:
    """What was found after a failure."""

    failure: Failure
    problems: Sequence[str]


def failures(recording: Recording, seed: int, count: int) -> list[Failure]:
    """The failures of a run, by moment. Every second one is right after an acknowledgement."""
    rng = random.Random(seed)
    acknowledged = recording.acknowledgements()
    drawn = []
    for number in range(count):
        moment = rng.choice(acknowledged) if number % 2 else rng.randint(1, len(recording.entries))
        drawn.append(Failure(number, moment, rng.choice(CHANCES)))
    return sorted(drawn, key=lambda each: each.moment)


def run(
    recording: Recording, wanted: Sequence[Failure], seed: int, folder: Path, ended: Callable[[Outcome], None]
) -> list[Outcome]:
    """Check each failure. The folder of one with problems stays in `folder`, by its number."""
    return asyncio.run(_run(recording, wanted, seed, folder, ended))


async def _run(
    recording: Recording, wanted: Sequence[Failure], seed: int, folder: Path, ended: Callable[[Outcome], None]
) -> list[Outcome]:
    last = folder / "end"
    shutil.copytree(recording.home, last)
    async with opened(last) as memory:
        records = await values_of(memory)
    outcomes = []
    for failure, target in _written(recording, wanted, seed, folder):
        said, later = recording.said(failure.moment), recording.said(len(recording.entries))
        changes = [each["keys"] for each in later if "keys" in each]
        done = sum("keys" in each for each in said)
        found = await problems(target / MEMORY, records, said, changes[done] if done < len(changes) else None)
        outcomes.append(Outcome(failure, found))
        ended(outcomes[-1])
        if not found:
            shutil.rmtree(target)
    return outcomes


def _written(
    recording: Recording, wanted: Sequence[Failure], seed: int, folder: Path
) -> Iterator[tuple[Failure, Path]]:
    """Each failure with a folder that has what the disk has then. A copy of it stays as it was."""
    disk, applied = recording.disk(), 0
    for failure in wanted:
        for entry in recording.entries[applied : failure.moment]:
            disk.apply(entry)
        applied = failure.moment
        target = folder / str(failure.number)
        disk.write(target, random.Random(f"{seed} {failure.number}"), failure.chance)
        yield failure, target
