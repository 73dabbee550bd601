"""`copy`: appends the events of one ledger to another."""

from contextlib import aclosing
from typing import Annotated

import typer

from recallog import Settings
from recallog.composition import ledger_at, target_of_copy
from recallog_projections.patience import patient
from recallog_schemas.errors import InvalidArgument
from recallog_schemas.sealing import Policy
from recallog_schemas.views import CopyReport
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Json
from recallog_streams import migration

Seal = Annotated[Policy | None, typer.Option(help="Which events the target encrypts. Default: RECALLOG_SEAL.")]
LedgerAddress = Annotated[str, typer.Argument(help="A folder, or kafka://host:9092/topic.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Copy new events as they are published, until Ctrl-C.")]
Switch = Annotated[bool, typer.Option("--switch", help="When it has caught up, close the source, and copy the rest.")]


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
    reports: list[CopyReport] = []

    def show(report: CopyReport) -> None:
        reports.append(report)
        if as_json:
            terminal.print_json(report)
            return
        for problem in report.problems:
            terminal.note(problem.format())
        terminal.print_lines(report.summary)

    async def work() -> None:
        settings = Settings.valid()
        if (folder := terminal.folder_without_ledger(settings.model_copy(update={"ledger": source}))) is not None:
            raise InvalidArgument(f"there is no memory in {folder}; name its folder", path="SOURCE", rule="missing")
        origin = ledger_at(source, settings)
        try:
            with patient():
                destination = await target_of_copy(target, seal)
                try:
                    with terminal.bar("copying") as advance:
                        if not (follow or switch):
                            return show(await migration.copy(origin, destination, advance))
                        following = migration.follow(origin, destination, switch=switch, progress=advance)
                        async with aclosing(following):
                            async for report in following:
                                show(report)
                finally:
                    await destination.close()
        finally:
            await origin.close()

    (terminal.run_until_stopped if follow else terminal.run)(work, as_json=as_json)
    raise typer.Exit(0 if all(report.ok for report in reports) else 1)
