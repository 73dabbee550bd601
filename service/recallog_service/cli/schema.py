"""Commands for the published schemas and the kinds of events."""

from pathlib import Path
from typing import Annotated

import typer

from recallog_schemas import export
from recallog_schemas.views import Catalogue, KindsView
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home, Json

app = typer.Typer(help="The JSON Schemas of events, payloads and views; the kinds of events.", no_args_is_help=True)


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


@app.command("kinds", epilog="Example: recallog schema kinds --space village")
def kinds_command(
    space: Annotated[
        str | None, typer.Option("--space", help="Also the kinds that this space declares, as it shares them.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """The kinds of events: importance, who sees them, their text and payload fields."""
    found: Catalogue | KindsView
    if space is None:
        found = Catalogue.of_this_version()
    else:
        of_space = space
        found = terminal.ask(lambda memory: memory.kinds(of_space), home, as_json=as_json)
    if as_json:
        terminal.print_json(found)
    else:
        columns = ("kind", "importance", "shared", "role", "version", "text", "payload fields", "from")
        rows = [
            (
                kind.name,
                f"{kind.importance:.2f}",
                "yes" if kind.shared else "",
                "bookkeeping" if kind.bookkeeping else kind.role,
                kind.schema_version,
                kind.text,
                " ".join(kind.fields),
                "space" if kind.declared else "catalogue",
            )
            for kind in found.kinds
        ]
        terminal.print_table(columns, rows)
