"""`schema`: exports the JSON Schemas and lists the kinds of events."""

from pathlib import Path
from typing import Annotated

import typer

from recallog import Memory
from recallog_schemas import export
from recallog_schemas.views import Catalogue, KindsView
from recallog_service.cli import console, terminal
from recallog_service.cli.terminal import Home, Json

_group = typer.Typer(help="Export the JSON Schemas, or list the kinds of events.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="schema")


@_group.command("export", epilog="Example: recallog schema export --output schemas/json")
def export_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("schemas/json"),
    as_json: Json = False,
) -> None:
    """Write the JSON Schemas of events, payloads and views, one file each."""
    written = export.write(output)
    if as_json:
        terminal.print_json({"written": [str(path) for path in written]})
    else:
        console.out.print(f"{len(written)} schemas written to {output}")


@_group.command("kinds", epilog="Example: recallog schema kinds --space village")
def kinds_command(
    space: Annotated[
        str | None, typer.Option("--space", help="Only the kinds of this space, with its shared kinds.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """List all kinds, of the catalogue and declared ones: importance, visibility, text rule and payload fields."""

    async def kinds(memory: Memory) -> Catalogue | KindsView:
        if space is not None:
            return await memory.kinds(space)
        return Catalogue.of_this_version(await memory.declared_kinds())

    found = terminal.ask(kinds, home, as_json=as_json)
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
                f"space {kind.space}" if kind.space is not None else "catalogue",
            )
            for kind in found.kinds
        ]
        console.print_table(columns, rows)
