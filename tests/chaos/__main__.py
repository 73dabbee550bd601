"""`make chaos`: the command of the chaos run; see the docstring of the package."""

import json
import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from deploy.local import LocalServerError

from chaos.campaign import Campaign
from chaos.clocks import Clock, JumpingKafka, JumpingRedis, compile_shim
from chaos.report import Report, Show, console
from chaos.run import new_seed, run

RESULT = Path(__file__).parents[2] / "build" / "chaos.json"

_EVENTS_OF_A_SPACE_MAX = 1_900
"""Logs keep the newest 2,000 entries: with fewer events, every view can be compared completely."""


def main(
    seed: Annotated[int | None, typer.Option(help="Seed of an earlier run, to repeat its actions.")] = None,
    kills: Annotated[int, typer.Option(min=1, help="Number of kill -9 of workers, Redis and the broker.")] = 100,
    events: Annotated[int, typer.Option(min=1)] = 200_000,
    spaces: Annotated[int, typer.Option(min=2)] = 200,
    workers: Annotated[int, typer.Option(min=1, max=8)] = 3,
    gap: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Average time between two actions.")] = 8.0,
    seconds: Annotated[
        float | None, typer.Option("--time", min=60, help="Run for this time, with calm between.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run for a minute with fixed sizes, as in CI.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep logs, histories and data even without findings.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Kill processes of a cluster at random, then check that nothing was lost, doubled, reordered or miscounted.

    Starts its own Kafka and Redis on 127.0.0.1. The exit code is 0 without findings, else 1. Writes build/chaos.json
    too, unless it prints JSON.
    """
    if events > spaces * _EVENTS_OF_A_SPACE_MAX:
        raise typer.BadParameter(f"at most {_EVENTS_OF_A_SPACE_MAX:,} events per space: increase --spaces")
    seed = new_seed() if seed is None else seed
    console.print(f"seed: {seed}")
    campaign = Campaign(seed, kills, events, spaces, workers=workers, gap_seconds=gap)
    if quick:
        campaign = Campaign.quick(seed)
    elif seconds is not None:
        campaign = Campaign.lasting(seed, seconds)
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="recallog-chaos-"))
    try:
        report = _run(campaign, folder)
    except LocalServerError as error:
        console.print(f"error: {error}\nlogs: {folder}", style="red", markup=False)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        console.print(f"interrupted; logs: {folder}")
        raise typer.Exit(130) from None
    document = json.dumps(report.document(), indent=2)
    if as_json:
        print(document)
    else:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(document)
        report.print()
    if report.clean and not keep:
        shutil.rmtree(folder)
    raise typer.Exit(0 if report.clean else 1)


def _run(campaign: Campaign, folder: Path) -> Report:
    with ExitStack() as running:
        shim = compile_shim(folder)
        kafka, redis = JumpingKafka(folder / "kafka"), JumpingRedis(folder / "redis", fsync="always")
        for server in (kafka, redis):
            if shim is not None:
                server.folder.mkdir()
                server.clock = Clock(server.folder, shim)
            running.callback(server.kill)  # a clean stop is not needed
            server.start()
        return run(campaign, folder, kafka, redis, running.enter_context(Show(campaign)), shim)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    typer.run(main)
