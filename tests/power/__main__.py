"""`make power`: the command; see the docstring of the package."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from power.campaign import Outcome, failures, run
from power.recording import new_folder, record, what_is_missing

console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def main(
    trials: Annotated[int, typer.Option("--trials", "-n", min=1, help="Number of power failures.")] = 100,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier run, to repeat it with its --base.")] = None,
    one: Annotated[int | None, typer.Option("--trial", min=0, help="Only this trial.")] = None,
    base: Annotated[Path | None, typer.Option(help="The recording of an earlier run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Record what a program does to a folder, cut the power at random moments of that, and recover.

    After each failure the disk has what was synced, and a random part of the rest. No acknowledged event may be
    missing, the views and the index must recover, and verify must find nothing. The exit code is 0 then, else 1.
    """
    if missing := what_is_missing():
        console.print(f"error: {missing}", style="red", markup=False)
        raise typer.Exit(2)
    seed = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    folder = new_folder()
    console.print(f"seed: {seed}", markup=False)
    recording = record(base or folder / "base")
    console.print(f"{len(recording.entries):,} records, {len(recording.said(len(recording.entries)))} acknowledgements")
    wanted = [each for each in failures(recording, seed, trials) if one in (None, each.number)]
    outcomes = run(recording, wanted, seed, folder, _show)
    found = [each for each in outcomes if each.problems]
    if as_json:
        print(json.dumps({"seed": seed, "trials": len(outcomes), "findings": [asdict(each) for each in found]}))
    else:
        print(f"{len(outcomes):,} power failures, {len(found):,} with findings")
    if found:
        console.print(f"make power ARGS='--seed {seed} --base {base or folder / 'base'} --trial N' repeats trial N")
    else:
        shutil.rmtree(folder)
    raise typer.Exit(1 if found else 0)


def _show(outcome: Outcome) -> None:
    for problem in outcome.problems:
        console.print(f"{outcome.failure.describe()}: {problem}", style="red", markup=False)


if __name__ == "__main__":
    typer.run(main)
