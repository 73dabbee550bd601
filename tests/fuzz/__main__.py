"""`make fuzz`: the command; see the docstring of the package."""

import os
import resource
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from fuzz.campaign import INPUTS, Counts, Failure, megabytes, run
from support.progress import RunProgress, console

_FOLDER = Path("build/fuzz")
_MEMORY_BYTES = 8 << 30
"""Address space of the process: an input that needs more raises `MemoryError`."""
_SHOWN_MAX = 20


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
    with RunProgress(blocks * INPUTS if block is None else INPUTS, "inputs", "findings") as show:

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


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is part of what a seed repeats
        os.execve(sys.executable, [sys.executable, "-m", "fuzz", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"})
    typer.run(main)
