"""`copy`: appends the events of one ledger to another."""

from typing import Annotated

import typer

from recallog import Settings
from recallog.composition import ledger_at, target_of_copy
from recallog_projections.patience import patient
from recallog_schemas.sealing import Policy
from recallog_schemas.views import CopyReport
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Json
from recallog_streams.migration import copy

Seal = Annotated[Policy | None, typer.Option(help="Which events the target encrypts. Default: RECALLOG_SEAL.")]
LedgerAddress = Annotated[str, typer.Argument(help="A folder, or kafka://host:9092/topic.")]


def register(app: typer.Typer) -> None:
    panel, epilog = panels.OPERATE, "Example: recallog copy ./memory kafka://127.0.0.1:9092/recallog.events"
    app.command("copy", epilog=epilog, rich_help_panel=panel)(copy_command)


def copy_command(source: LedgerAddress, target: LedgerAddress, seal: Seal = None, as_json: Json = False) -> None:
    """Append every event of one ledger to another, for example from a folder to a cluster. Events keep their ids.

    It can be interrupted and run again. The views of the target are updated by its
    workers, or in a folder by the next query.
    """

    async def work() -> CopyReport:
        settings = Settings.valid()
        origin = ledger_at(source, settings)
        try:
            with patient():
                destination = await target_of_copy(target, seal)
                try:
                    with terminal.bar("copying") as advance:
                        return await copy(origin, destination, advance)
                finally:
                    await destination.close()
        finally:
            await origin.close()

    report = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(report)
    else:
        for problem in report.problems:
            terminal.note(problem.format())
        terminal.print_lines(f"copied {report.copied:,} of {report.records:,} records")
    raise typer.Exit(0 if report.ok else 1)
