"""`mcp`: serves a memory to the models of an MCP client."""

import sys
from contextlib import suppress

import typer

from recallog_schemas import extras
from recallog_schemas.errors import IndexUnavailable
from recallog_service.access.grants import Grant, Verb
from recallog_service.cli import mcp_clients, terminal
from recallog_service.cli.mcp_clients import Agent, ReadOnly, Space, name_of
from recallog_service.cli.terminal import Home

_group = typer.Typer(help="Serve a memory to an MCP client on standard input and output.", invoke_without_command=True)

_VERBS = frozenset({Verb.READ, Verb.PUBLISH, Verb.FORGET})


def register(app: typer.Typer) -> None:
    mcp_clients.register(_group)
    app.add_typer(_group, name="mcp")


@_group.callback(epilog="Example: recallog mcp --space village --agent baker")
def mcp_command(
    context: typer.Context, space: Space = None, agent: Agent = None, read_only: ReadOnly = False, home: Home = None
) -> None:
    """Serve a memory to an MCP client on standard input and output.

    The model is one agent in one space: it sees what this agent may see, and
    publishes as this agent. No tool takes a space or an agent. `recallog mcp install`
    makes a client start this command.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from recallog_service import logs
        from recallog_service.mcp.transports import serve_stdio
    except ModuleNotFoundError as error:
        terminal.fail(extras.missing(error, "mcp"))

    logs.to_stderr("warning")

    async def work() -> None:
        in_space, as_agent = name_of("--space", space), name_of("--agent", agent)
        if sys.stdin.isatty():
            terminal.note("waiting for an MCP client on standard input; recallog mcp install lets a client start it")
        verbs = frozenset({Verb.READ}) if read_only else _VERBS
        with terminal.opened(home, missing="create") as (memory, _):
            async with memory:
                with suppress(IndexUnavailable):  # until it can be started, words are compared
                    await memory.start_index()
                grant = Grant(spaces=(in_space,), agent=as_agent, verbs=verbs)
                await serve_stdio(memory, grant, in_space, as_agent)

    terminal.run_until_stopped(work)
