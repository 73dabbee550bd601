"""`schema`: exports the JSON Schemas and lists the kinds of events."""

from pathlib import Path
from typing import Annotated

import typer

from recallog import Memory
from recallog.operations import schemas
from recallog_schemas import export
from recallog_service.cli import derived, panels, terminal
from recallog_service.cli.terminal import Json

_group = typer.Typer(
    cls=panels.PanelGroup, help="Export the JSON Schemas, or list the kinds of events.", no_args_is_help=True
)


def register(app: typer.Typer) -> None:
    derived.add(_group, "schema")
    app.add_typer(_group, name="schema", rich_help_panel=panels.OPERATE)


@_group.command(
    "export", epilog="Example: recallog schema export --output schemas/json", rich_help_panel=panels.OPERATE
)
def export_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("schemas/json"),
    as_json: Json = False,
) -> None:
    """Write the JSON Schemas of events, payloads, answers and the arguments of operations, one file each."""
    written = export.write(output, schemas.documents(Memory))
    if as_json:
        terminal.print_json({"written": [str(path) for path in written]})
    else:
        terminal.print_lines(f"{len(written)} schemas written to {output}")
