"""`make fuzz`: the command; see the docstring of the package."""

import os
import resource
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fuzz.campaign import INPUTS, Counts, Failure, megabytes, run

_FOLDER = Path("build/fuzz")
_LINE_SECONDS = 10.0
_MEMORY_BYTES = 8 << 30
"""Address space of the process: an input that needs more raises `MemoryError`."""
_SHOWN_MAX = 20

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def main(
    inputs: Annotated[int, typer.Option("--inputs", "-n", min=1, help="Number of inputs.")] = 100_000,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier run, to repeat it.")] = None,
    block: Annotated[str | None, typer.Option(help="Only one block, SEED:NUMBER, with the traceback.")] = None,
) -> None:
    """Give malformed inputs to everything that reads bytes or texts of others.

    Each answer must be right, or an error of Recallog. The exit code is 0 without findings, else 1.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, resource.RLIM_INFINITY))
    seed = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    blocks = -(-inputs // INPUTS)
    names = iter([block]) if block is not None else (f"{seed}:{number}" for number in range(blocks))
    if block is None:
        console.print(f"seed: {seed}", markup=False)
    counts, failures = Counts(), list[Failure]()
    began = time.monotonic()
    with Show(blocks * INPUTS if block is None else INPUTS) as show:

        def found(failure: Failure) -> None:
            failures.append(failure)
            if len(failures) <= _SHOWN_MAX:
                show.line(f"{failure.describe()}\n  saved to {failure.save(_FOLDER)}")
                if block is not None:
                    show.line(failure.trace)

        run(names, counts, found, lambda done: show.advance(done, len(failures)))
    for name, count in sorted(counts.inputs.items()):
        each = counts.seconds[name] / count * 1e6
        print(f"  {name:10} {count:9,} inputs, {each:7,.0f} us each, slowest block {counts.slowest[name]:.2f} s of CPU")
    total, seconds = sum(counts.inputs.values()), time.monotonic() - began
    print(
        f"seed {seed}: {total:,} inputs, {len(failures):,} findings; {seconds:,.0f} s, {total / seconds:,.0f} a "
        f"second, {megabytes():,.0f} MB at most"
    )
    raise typer.Exit(1 if failures else 0)


class Show:
    """Progress: a bar with rate and time left on a terminal; otherwise a line every ten seconds."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._began = self._next_line = time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]:,.0f}/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("inputs", total=total, rate=0.0)

    def __enter__(self) -> "Show":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def line(self, text: str) -> None:
        """Print a line on stderr."""
        console.print(text, markup=False)

    def advance(self, inputs: int, failures: int) -> None:
        """Show that so many more inputs are done, and how many findings there are."""
        self._done += inputs
        now = time.monotonic()
        rate = self._done / max(0.001, now - self._began)
        findings = f", {failures:,} findings" if failures else ""
        self._bar.update(self._task, completed=self._done, rate=rate, description=f"inputs{findings}")
        if not console.is_terminal and now >= self._next_line:
            self._next_line = now + _LINE_SECONDS
            left = (self._total - self._done) / rate
            self.line(f"{self._done:,}/{self._total:,} inputs{findings}, {rate:,.0f}/s, {left:,.0f} s left")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is part of what a seed repeats
        os.execve(sys.executable, [sys.executable, "-m", "fuzz", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"})
    typer.run(main)
