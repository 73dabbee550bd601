"""Commands for the published schemas."""

from pathlib import Path
from typing import Annotated

import typer

from recallog_schemas import export
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Json

app = typer.Typer(help="The JSON Schemas of events, payloads and views.", no_args_is_help=True)


@app.command("export", epilog="Example: recallog schema export --output schemas/json")
def export_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("schemas/json"),
    as_json: Json = False,
) -> None:
    """Write the JSON Schemas, one file each."""
    written = export.write(output)
    if as_json:
        terminal.print_json({"written": [str(path) for path in written]})
    else:
        terminal.out.print(f"{len(written)} schemas written to {output}")
