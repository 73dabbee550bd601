"""`make soak`: the command; see the docstring of the package."""

import json
import shutil
import signal
import tempfile
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from soak.load import LEAKS
from soak.report import Show, console, print_outcome
from soak.run import Plan, Run

RESULT = Path(__file__).parents[2] / "build" / "soak.json"


def main(
    hours: Annotated[float, typer.Option(min=0.001, help="How long the load runs; a fraction is allowed.")] = 1.0,
    events: Annotated[float, typer.Option(min=0.1, help="What is written a second, at most.")] = 12.0,
    questions: Annotated[float, typer.Option(min=0.1, help="Questions a second, at most.")] = 3.0,
    leak: Annotated[str, typer.Option(help=f"What one process leaks on purpose: {', '.join(LEAKS)}.")] = "",
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder and the logs even without findings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Use one folder for hours as programs do, and find what grows.

    Processes write, ask, serve, follow a stream and index, while their memory, descriptors, threads and disk are
    sampled. At the end the folder is verified. The exit code is 0 without findings, else 1. Writes build/soak.json too,
    unless it prints JSON.
    """
    if leak not in ("", *LEAKS):
        raise typer.BadParameter(f"--leak: one of {', '.join(LEAKS)}")
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="recallog-soak-"))
    console.print(f"{hours:g} hours in {folder}", markup=False)
    RESULT.parent.mkdir(exist_ok=True)
    plan = Plan(hours, events, questions, leak)
    run = Run(plan, folder)
    try:
        outcome = run.execute(Show(plan.seconds, None if as_json else RESULT).sampled)
    except KeyboardInterrupt:
        console.print(f"interrupted; logs: {folder}", markup=False)
        raise typer.Exit(130) from None
    except RuntimeError as error:
        console.print(f"error: {error}\nlogs: {folder}", style="red", markup=False)
        raise typer.Exit(1) from None
    if as_json:
        print(json.dumps(outcome.document()))
    else:
        RESULT.write_text(json.dumps(outcome.document()))
        print_outcome(outcome, Console(highlight=False, soft_wrap=True, emoji=False))
    clean = not outcome.problems()
    if clean and not keep:
        shutil.rmtree(folder)
    else:
        console.print(f"the folder and the logs: {folder}", markup=False)
    raise typer.Exit(0 if clean else 1)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    typer.run(main)
