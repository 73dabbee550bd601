"""`make simulate`: many seeds of the simulations, on all cores."""

import os
import sys
import time
from collections import Counter
from typing import Annotated

import typer

from simulation.campaign import Failure, results
from simulation.worlds import command, kind_of, simulate
from support.progress import RunProgress, console

_SHOWN_MAX = 5
"""Failing seeds that are shown with their tracebacks."""


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds.")] = 2_400,
    first: Annotated[int, typer.Option(min=0, help="First seed.")] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Repeat one seed, in this process.")] = None,
    world: Annotated[str, typer.Option(help="Only worlds of this kind: erasures.")] = "",
    processes: Annotated[int | None, typer.Option(min=1, help="Number of processes. Default: one per core.")] = None,
) -> None:
    """Simulate failing storage, dying processes and concurrent readers, and compare every answer with an oracle.

    The exit code is 0 if all seeds pass, else 1.
    """
    if seed is not None:
        console.print(f"seed {seed}: {kind_of(seed, world)}")
        simulate(seed, world)
        console.print("passed")
        return
    failures: list[Failure] = []
    began = time.monotonic()
    with RunProgress(seeds, "seeds", "failed") as show:
        for done, failed in results(first, seeds, processes or os.cpu_count() or 1, world):
            failures += failed
            for failure in failed:
                show.line(f"seed {failure.seed} ({kind_of(failure.seed, world)}): {failure.error}")
            show.advance(done, len(failures))
    for failure in sorted(failures)[:_SHOWN_MAX]:
        console.print(failure.trace, markup=False)
    kinds = Counter(kind_of(each, world) for each in range(first, first + seeds))
    worlds = ", ".join(f"{count:,} of {kind}" for kind, count in kinds.items())
    seconds = time.monotonic() - began
    verdict = f"{len(failures):,} failed" if failures else "all passed"
    print(
        f"seeds {first} to {first + seeds - 1} ({worlds}): {verdict}; {seconds:,.0f} s, {seeds / seconds:.1f} a second"
    )
    for failure in sorted(failures):
        print(f"  {command(failure.seed, world)}")
    raise typer.Exit(1 if failures else 0)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is part of what a seed repeats
        os.execve(
            sys.executable, [sys.executable, "-m", "simulation", *sys.argv[1:]], os.environ | {"PYTHONHASHSEED": "0"}
        )
    typer.run(main)
