"""Seeds on several cores: blocks of seeds run in processes of their own, and failures are collected."""

import logging
import signal
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from types import FrameType
from typing import NamedTuple

from simulation.worlds import simulate

_BLOCK = 10
"""Seeds that a process runs before it reports."""
_SECONDS_MAX = 120
"""Real seconds after which a seed counts as hanging."""


class Failure(NamedTuple):
    """A seed whose world failed."""

    seed: int
    error: str
    """Its last line."""
    trace: str


def results(first: int, seeds: int, processes: int, world: str = "") -> Iterator[tuple[int, list[Failure]]]:
    """The number of seeds and the failures of each block, as they are done."""
    blocks = (range(start, min(start + _BLOCK, first + seeds)) for start in range(first, first + seeds, _BLOCK))
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_begin) as pool:
        running: dict[Future[list[Failure]], int] = {}
        try:
            while True:
                for block in islice(blocks, 2 * processes - len(running)):
                    running[pool.submit(_run, block, world)] = len(block)
                if not running:
                    return
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(ended), ended.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _begin() -> None:
    logging.getLogger("recallog").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _hangs)


def _hangs(_signal: int, _frame: FrameType | None) -> None:
    raise AssertionError(f"it has not ended after {_SECONDS_MAX} s")


def _run(block: range, world: str) -> list[Failure]:
    failures = []
    for seed in block:
        signal.alarm(_SECONDS_MAX)
        try:
            simulate(seed, world)
        except BaseException as error:  # noqa: BLE001 - the report shows it
            trace = "".join(traceback.format_exception(error))
            failures.append(Failure(seed, f"{type(error).__name__}: {error}".splitlines()[0], trace))
        finally:
            signal.alarm(0)
    return failures
