"""`mcp`: serves a memory to the models of an MCP client."""

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from recallog_schemas import codec, extras
from recallog_schemas.errors import IndexUnavailable, InvalidArgument
from recallog_service.access.grants import Grant, Verb
from recallog_service.cli import panels, terminal
from recallog_service.cli.terminal import Home
from recallog_service.formats import space_of_project

Space = Annotated[str | None, typer.Option(help="The space that the model works in.")]
Agent = Annotated[str | None, typer.Option(help="The agent as which the model acts.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only tools that do not change anything.")]

_VERBS = frozenset({Verb.READ, Verb.PUBLISH, Verb.FORGET})


def register(app: typer.Typer) -> None:
    app.command("mcp", epilog="Example: recallog mcp --space village --agent baker", rich_help_panel=panels.SERVE)(
        mcp_command
    )


def mcp_command(
    space: Space = None,
    agent: Agent = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="The folder of a project that the model works on, instead of --space."),
    ] = None,
    read_only: ReadOnly = False,
    home: Home = None,
) -> None:
    """Serve a memory to an MCP client on standard input and output.

    The model is one agent in one space: it sees what this agent may see, and
    publishes as this agent. No tool takes a space or an agent. `recallog install`
    makes a client start this command.
    """
    from recallog_service import logs

    logs.to_stderr("warning")

    async def work() -> None:
        with extras.import_extra("mcp"):
            from recallog_service.mcp.transports import serve_stdio
        in_space = name_of("--space", space if project is None else space_of_project(str(Path(project).absolute())))
        as_agent = name_of("--agent", agent)
        if sys.stdin.isatty():
            terminal.note("waiting for an MCP client on standard input; recallog install lets a client start it")
        verbs = frozenset({Verb.READ}) if read_only else _VERBS
        with terminal.open_memory(home, missing="create") as (memory, _):
            async with memory:
                with suppress(IndexUnavailable):  # until the index is ready, recall compares words
                    await memory.start_index()
                grant = Grant(spaces=(in_space,), agent=as_agent, verbs=verbs)
                await serve_stdio(memory, grant, in_space, as_agent)

    terminal.run_until_stopped(work)


def name_of(option: str, value: str | None) -> str:
    """The name of a space or an agent that an option gives, in NFC. Raises `InvalidArgument`."""
    if value is None:
        raise InvalidArgument(f"{option}: is required", path=option, rule="missing")
    return codec.checked_name(value, option)
