"""`copy`: appends the events of one ledger to another."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import typer

from recallog import Settings
from recallog.composition import ledger_at, target_of_copy
from recallog_projections.patience import patient
from recallog_schemas.sealing import Policy
from recallog_schemas.views import CopyReport
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Json
from recallog_streams import migration
from recallog_streams.ledgers.ledger import Ledger
from recallog_streams.progress import Progress

Seal = Annotated[Policy | None, typer.Option(help="Which events the target encrypts. Default: RECALLOG_SEAL.")]
LedgerAddress = Annotated[str, typer.Argument(help="A folder, or kafka://host:9092/topic.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Copy new events as they are published, until Ctrl-C.")]
Switch = Annotated[bool, typer.Option("--switch", help="Then close the source, and copy its last events.")]


def register(app: typer.Typer) -> None:
    epilog = (
        "Example: recallog copy ./memory kafka://127.0.0.1:9092/recallog.events\n\n"
        "More partitions: recallog copy \"$RECALLOG_LEDGER\" 'kafka://127.0.0.1/recallog.64?partitions=64' --switch"
    )
    app.command("copy", epilog=epilog, rich_help_panel=panels.OPERATE)(copy_command)


def copy_command(
    source: LedgerAddress,
    target: LedgerAddress,
    seal: Seal = None,
    follow: Follow = False,
    switch: Switch = False,
    as_json: Json = False,
) -> None:
    """Append every event of one ledger to another, for example from a folder to a cluster. Events keep their ids.

    It can be interrupted and run again. The views of the target are updated by its
    workers, or in a folder by the next query. With --follow and --switch, producers
    publish to the source meanwhile, and an interrupted copy continues where it was.
    With --switch, the source refuses events when the target has caught up, and names
    the target to its producers. The target then has all events.
    """
    is_whole = True

    async def work() -> None:
        nonlocal is_whole
        settings = Settings.valid()
        origin = ledger_at(source, settings)
        try:
            with patient():
                destination = await target_of_copy(target, seal)
                try:
                    with terminal.bar("copying") as advance:
                        async with aclosing(_reports(origin, destination, follow, switch, advance)) as reports:
                            async for report in reports:
                                is_whole = report.ok
                                _print(report, as_json=as_json)
                finally:
                    await destination.close()
        finally:
            await origin.close()

    (terminal.run_until_stopped if follow and not switch else terminal.run)(work, as_json=as_json)
    raise typer.Exit(0 if is_whole else 1)


async def _reports(
    source: Ledger, target: Ledger, follow: bool, switch: bool, progress: Progress
) -> AsyncGenerator[CopyReport]:
    if not (follow or switch):
        yield await migration.copy(source, target, progress)
        return
    async with aclosing(migration.follow(source, target, switch=switch, progress=progress)) as reports:
        async for report in reports:
            yield report


def _print(report: CopyReport, *, as_json: bool) -> None:
    if as_json:
        terminal.print_json(report)
        return
    for problem in report.problems:
        terminal.note(problem.format())
    terminal.print_lines(report.summary)
