"""Blocks of malformed inputs: how they are made from a seed, judged, and narrowed down to the input of a finding."""

import base64
import json
import random
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.mutations import mutated
from fuzz.targets import TARGETS, Target

INPUTS = 100
"""Inputs of a block."""
INPUT_SECONDS = 2.0
"""CPU that one input may take. The slowest ones, of 300 KB, take a fifth of it."""
_BLOCK_SECONDS = 60.0
"""CPU after which a block is interrupted: then one of its inputs would not end."""
_DRAWS = 8


class TooSlow(BaseException):
    """The input took more CPU than it may. No `except Exception` of a reader hides it."""


@dataclass(frozen=True)
class Failure:
    """A finding."""

    target: str
    block: str
    error: str
    trace: str
    inputs: Sequence[bytes]
    """One input, or those of the block if none fails alone."""

    def save(self, folder: Path) -> Path:
        """Write it down, with its inputs in Base64."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.target}-{self.block.replace(':', '-')}.json"
        inputs = [base64.b64encode(data).decode() for data in self.inputs]
        path.write_text(json.dumps({"target": self.target, "block": self.block, "error": self.error, "inputs": inputs}))
        return path

    def describe(self) -> str:
        shown = repr(self.inputs[0][:300]) if len(self.inputs) == 1 else f"{len(self.inputs)} inputs together"
        return f"{self.target}: {self.error}\n  {shown}\n  make fuzz BLOCK={self.block}"


@dataclass
class Counts:
    """What was done."""

    inputs: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    """CPU, by target."""
    slowest: dict[str, float] = field(default_factory=dict)
    """CPU of the slowest block, by target."""


def block(name: str) -> tuple[Target, list[bytes]]:
    """The target and the inputs of a block; `name` is `<seed>:<number>`."""
    rng = random.Random(name)
    (target,) = rng.choices(TARGETS, [each.weight for each in TARGETS])
    seeds = target.seeds(rng)
    return target, [mutated(rng, rng.choice(seeds), seeds) for _ in range(INPUTS)]


def run(names: Iterator[str], counts: Counts, found: Callable[[Failure], None], judged: Callable[[int], None]) -> None:
    """Judge blocks; `found` is called with each finding and `judged` with the number of inputs that are done."""
    for name in names:
        target, inputs = block(name)
        began = time.process_time()
        failure = _failure(target, inputs, name, _BLOCK_SECONDS)
        took = time.process_time() - began
        if failure is not None or took > INPUT_SECONDS:
            # A target draws how it reads an input: another draw may be the one that fails.
            alone = (_failure(target, [data], name, INPUT_SECONDS, draw) for data in inputs for draw in range(_DRAWS))
            narrowed = next(filter(None, alone), failure)
            if narrowed is not None:
                found(narrowed)
        counts.inputs[target.name] += len(inputs)
        counts.seconds[target.name] += took  # type: ignore[assignment]
        counts.slowest[target.name] = max(took, counts.slowest.get(target.name, 0.0))
        judged(len(inputs))


def _failure(
    target: Target, inputs: Sequence[bytes], name: str, seconds: float, draw: int | None = None
) -> Failure | None:
    try:
        with _at_most(seconds):
            target.judge(inputs, random.Random(name if draw is None else f"{name}/{draw}"))
    except (Exception, TooSlow) as error:  # noqa: BLE001  # whatever a reader raises is a finding
        error_text = f"{type(error).__name__}: {str(error)[:300]}"
        return Failure(target.name, name, error_text, traceback.format_exc(limit=-8), inputs)
    return None


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` after so much CPU."""

    def stop(*_: object) -> None:
        raise TooSlow(f"more than {seconds:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
