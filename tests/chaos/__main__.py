"""`make chaos`: see the package's text."""

import shutil
import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from deploy.local import LocalKafka, LocalRedis, LocalServerError

from chaos.campaign import Campaign
from chaos.report import Report, Show, console
from chaos.run import new_seed, run

_EVENTS_OF_A_SPACE_MAX = 1_900
"""Logs keep the newest 2,000: up to here every view can be compared whole."""


def main(
    seed: Annotated[int | None, typer.Option(help="Make the choices of an earlier run again.")] = None,
    kills: Annotated[int, typer.Option(min=1, help="kill -9 of workers, Redis and the broker.")] = 100,
    events: Annotated[int, typer.Option(min=1)] = 200_000,
    spaces: Annotated[int, typer.Option(min=2)] = 200,
    workers: Annotated[int, typer.Option(min=1, max=8)] = 3,
    gap: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="Between two blows, on average.")] = 8.0,
    quick: Annotated[bool, typer.Option("--quick", help="A minute, as in CI; sizes are fixed.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep logs, histories and data though all is well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Kill -9 of everything, and a checker that finds out whether anything was lost, doubled, reordered or miscounted.

    Starts a Kafka and a Redis of its own on 127.0.0.1. Ends with 0 where everything is as promised, else with 1.
    """
    if events > spaces * _EVENTS_OF_A_SPACE_MAX:
        raise typer.BadParameter(f"at most {_EVENTS_OF_A_SPACE_MAX:,} events in a space: ask for more spaces")
    seed = new_seed() if seed is None else seed
    console.print(f"seed: {seed}")
    campaign = Campaign(seed, kills, events, spaces, workers=workers, gap_seconds=gap)
    if quick:
        campaign = Campaign.quick(seed)
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
    (report.print_json if as_json else report.print)()
    if report.clean and not keep:
        shutil.rmtree(folder)
    raise typer.Exit(0 if report.clean else 1)


def _run(campaign: Campaign, folder: Path) -> Report:
    with ExitStack() as running:
        kafka, redis = LocalKafka(folder / "kafka"), LocalRedis(folder / "redis", fsync="always")
        for server in (kafka, redis):
            running.callback(server.kill)  # nobody needs their data in order
            server.start()
        return run(campaign, folder, kafka, redis, running.enter_context(Show(campaign)))


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    typer.run(main)
