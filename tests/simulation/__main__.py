"""`make simulate`: many seeds of the simulations, on all cores."""

import os
import sys
import time
from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from simulation.campaign import Failure, results
from simulation.worlds import command, kind_of, simulate

_LINE_SECONDS = 10.0
_SHOWN_MAX = 5
"""Failing seeds that are shown with their tracebacks."""

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 2_400,
    first: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Repeat one seed, in this process.")] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")] = None,
) -> None:
    """Simulate failing storage, dying processes and concurrent readers, and compare every answer with an oracle.

    The exit code is 0 if all seeds pass, else 1.
    """
    if seed is not None:
        console.print(f"seed {seed}: {kind_of(seed)}")
        simulate(seed)
        console.print("passed")
        return
    failures: list[Failure] = []
    began = time.monotonic()
    with Show(seeds) as show:
        for done, failed in results(first, seeds, processes or os.cpu_count() or 1):
            failures += failed
            for failure in failed:
                show.line(f"seed {failure.seed} ({kind_of(failure.seed)}): {failure.error}")
            show.advance(done, len(failures))
    for failure in sorted(failures)[:_SHOWN_MAX]:
        console.print(failure.trace, markup=False)
    kinds = Counter(kind_of(each) for each in range(first, first + seeds))
    worlds = ", ".join(f"{count:,} of {kind}" for kind, count in kinds.items())
    seconds = time.monotonic() - began
    verdict = f"{len(failures):,} failed" if failures else "all passed"
    print(
        f"seeds {first} to {first + seeds - 1} ({worlds}): {verdict}; {seconds:,.0f} s, {seeds / seconds:.1f} a second"
    )
    for failure in sorted(failures):
        print(f"  {command(failure.seed)}")
    raise typer.Exit(1 if failures else 0)


class Show:
    """Progress: a bar with rate and time left on a terminal; otherwise a line every ten seconds."""

    def __init__(self, seeds: int) -> None:
        self._seeds = seeds
        self._done = 0
        self._began = self._next_line = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:.1f}/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("seeds", total=seeds, rate=0.0)

    def __enter__(self) -> "Show":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def line(self, text: str) -> None:
        """Print a line on stderr."""
        console.print(text, markup=False)

    def advance(self, seeds: int, failures: int) -> None:
        """Show that so many more seeds are done, and how many of all have failed."""
        self._done += seeds
        now = time.monotonic()
        rate = self._done / max(0.001, now - self._began)
        failed = f", {failures:,} failed" if failures else ""
        self._bar.update(self._task, completed=self._done, rate=rate, description=f"seeds{failed}")
        if not console.is_terminal and now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            left = (self._seeds - self._done) / rate
            self.line(f"{self._done:,}/{self._seeds:,} seeds{failed}, {rate:.1f}/s, {left:,.0f} s left")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is part of what a seed repeats
        os.execve(
            sys.executable, [sys.executable, "-m", "simulation", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"}
        )
    typer.run(main)
