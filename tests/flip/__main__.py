"""`make flip`: the command; see the docstring of the package."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flip import run as running
from flip import trial
from flip.judge import Verdict
from flip.report import Report, Show, console

RESULT = Path(__file__).parents[2] / "build" / "flip.json"
_MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one: each call of the ledger syncs its file."""


def main(
    trials: Annotated[int, typer.Option("--trials", "-n", min=1, help="Number of trials.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier run, to repeat it.")] = None,
    one: Annotated[int | None, typer.Option("--trial", min=0, help="Only this trial, with all its answers.")] = None,
    base: Annotated[Path | None, typer.Option(help="The folders of an earlier run, to damage the same bytes.")] = None,
    only: Annotated[str, typer.Option("--file", metavar="PATH", help="Only files whose path begins so: views.db")] = "",
    processes: Annotated[int, typer.Option(min=1, help="Trials at the same time.")] = 3,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folders of all trials.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Damage files of a folder at random, then call every operation.

    Each answer must be right, or an error of Recallog that names the file and what to do. The exit code is 0 without
    findings, else 1. Writes build/flip.json too, unless it prints JSON.
    """
    seed = int.from_bytes(os.urandom(4), "big") if seed is None else seed
    console.print(f"seed: {seed}", markup=False)
    folder = Path(tempfile.mkdtemp(prefix="recallog-flip-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    began = time.monotonic()
    whole, expected = running.prepare(base or folder / "base")
    numbers = range(trials) if one is None else [one]
    plans = (trial.plan(seed, number, whole, only) for number in numbers)
    with Show(len(numbers)) as show:
        found = running.run(plans, whole, expected, folder / "trials", processes=processes, keep=keep, ended=show.ended)
    report = Report(seed, only, whole.root, found, time.monotonic() - began)
    if as_json:
        print(report.to_json())
    else:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(report.to_json())
        out = Console(highlight=False, soft_wrap=True, emoji=False)
        if one is not None:
            _print_trial(found[0], out)
        report.print(out)
    if report.clean and not keep and base is None:
        shutil.rmtree(folder)
    raise typer.Exit(0 if report.clean else 1)


def _print_trial(shown: running.Trial, out: Console) -> None:
    """The damage, and each answer that is not simply right."""
    out.print(shown.plan.describe(), markup=False)
    for outcome in shown.outcomes:
        if outcome.verdict is not Verdict.RIGHT or outcome.seconds > 1:
            what = f"{outcome.stage}: {outcome.question}: {outcome.seconds:.1f} s"
            out.print(f"  {what}: {outcome.verdict}: {outcome.detail}", markup=False)
    out.print(f"  {shown.seconds:.1f} s, {len(shown.outcomes)} calls\n{shown.output}", markup=False)


if __name__ == "__main__":
    typer.run(main)
