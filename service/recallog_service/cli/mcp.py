"""`mcp`: serves a memory to the models of an MCP client. An installed package adds `install` and `uninstall`."""

import sys
from contextlib import suppress
from typing import Annotated

import typer

from recallog_projections import plugins
from recallog_schemas import codec, extras
from recallog_schemas.errors import IndexUnavailable, InvalidArgument, SettingsError
from recallog_service.access.grants import Grant, Verb
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home

Space = Annotated[str | None, typer.Option(help="The space that the model works in.")]
Agent = Annotated[str | None, typer.Option(help="The agent that the model is.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")]

_group = typer.Typer(help="Serve a memory to an MCP client on standard input and output.", invoke_without_command=True)

_VERBS = frozenset({Verb.READ, Verb.PUBLISH, Verb.FORGET})


def register(app: typer.Typer) -> None:
    installed = plugins.load_all(plugins.MCP_COMMANDS)
    for register_commands in installed:
        register_commands(_group)
    if not installed:
        for name in ("install", "uninstall"):
            _group.command(name, hidden=True, context_settings={"ignore_unknown_options": True})(_not_installed)
    app.add_typer(_group, name="mcp")


def _not_installed(arguments: Annotated[list[str] | None, typer.Argument()] = None) -> None:
    """Changes the configuration of a client."""
    terminal.fail(
        SettingsError(
            "recallog mcp install and uninstall are commands of recallog-agents. "
            "Install it: pip install ./adapters/recallog-agents in a clone of Recallog"
        )
    )


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


def name_of(option: str, value: str | None) -> str:
    """The name of a space or an agent that an option gives, in NFC. Raises `InvalidArgument`."""
    if value is None:
        raise InvalidArgument(f"{option}: is required", path=option, rule="missing")
    return codec.checked_name(value, option)
