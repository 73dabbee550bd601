"""`workspace`: imports and exports the documents of an agent, and searches in them."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from recallog import Memory
from recallog_schemas.docstrings import paragraphs
from recallog_schemas.models.workspace.views import WorkspaceExport, WorkspaceImport
from recallog_service.cli import derived, panels, terminal, unknown_names
from recallog_service.cli.terminal import Home, Json

NAME = "workspace"

_group = typer.Typer(cls=panels.PanelGroup, help=paragraphs(Memory.facades["workspace"])[0], no_args_is_help=True)

Space = Annotated[str, typer.Argument(help="Name of the space.")]
Agent = Annotated[str, typer.Argument(help="Name of the agent whose workspace it is.")]
Folder = Annotated[Path | None, typer.Argument(help="A folder; default: RECALLOG_WORKSPACE.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Overwrite the target even if it has changed since the last run.")
]


def register(app: typer.Typer) -> None:
    derived.add(_group, NAME)
    app.add_typer(_group, name=NAME, rich_help_panel=panels.KEEP)


@_group.command(
    "import", epilog="Example: recallog workspace import village baker ./workspace", rich_help_panel=panels.KEEP
)
def import_command(
    space: Space,
    agent: Agent,
    folder: Folder = None,
    overwrite: Overwrite = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Put the files of a folder into the workspace of an agent. Unchanged texts do not add events.

    Files that are hidden, symbolic links, not in UTF-8 or larger than 64 KiB are left out and listed, and so are those
    whose document has changed since. The exit code is 1 if a file was left out that is not hidden.
    """

    async def put(memory: Memory) -> WorkspaceImport:
        return await memory.workspace.import_folder(space, agent, folder, overwrite=overwrite)

    _run(put, home, as_json, missing="create")


@_group.command(
    "export", epilog="Example: recallog workspace export village baker ./workspace", rich_help_panel=panels.KEEP
)
def export_command(
    space: Space,
    agent: Agent,
    folder: Folder = None,
    overwrite: Overwrite = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Write the documents of an agent's workspace to a folder, without changing a byte.

    Documents whose key is not a safe path below the folder, and documents whose file has changed since, are
    left out and listed. The exit code is 1 if a document was left out.
    """

    async def export(memory: Memory) -> WorkspaceExport:
        done = await memory.workspace.export_folder(space, agent, folder, overwrite=overwrite)
        if not done.known:
            await unknown_names.refuse_unknown(memory, {"space": space, "agent": agent})
        return done

    _run(export, home, as_json, missing="refuse")


def _run(
    work: Callable[[Memory], Awaitable[WorkspaceImport | WorkspaceExport]],
    home: Path | None,
    as_json: bool,
    *,
    missing: Literal["create", "refuse"],
) -> None:
    async def whole() -> WorkspaceImport | WorkspaceExport:
        with terminal.open_memory(home, missing=missing) as (memory, _):
            async with memory:
                return await work(memory)

    done = terminal.run(whole, as_json=as_json)
    if as_json:
        terminal.print_json(done)
    else:
        terminal.print_lines(done.format())
    raise typer.Exit(0 if done.ok else 1)
