"""`mcp`: serves a memory to the models of an MCP client, and prints the configuration of one."""

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from recallog_schemas import extras
from recallog_schemas.errors import IndexUnavailable, InvalidArgument
from recallog_schemas.validation import NOT_A_NAME, is_name
from recallog_service.access.grants import Grant, Verb
from recallog_service.cli import terminal
from recallog_service.cli.terminal import Home

_group = typer.Typer(help="Serve a memory to an MCP client on standard input and output.", invoke_without_command=True)

Space = Annotated[str | None, typer.Option(help="The space that the model works in.")]
Agent = Annotated[str | None, typer.Option(help="The agent that the model is.")]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="Offer only the tools that change nothing.")]

_VERBS = frozenset({Verb.READ, Verb.PUBLISH, Verb.FORGET})
_ENVIRONMENT = "RECALLOG_"
_HOME = "RECALLOG_HOME"
_KEY = "${RECALLOG_KEY}"


def register(app: typer.Typer) -> None:
    app.add_typer(_group, name="mcp")


@_group.callback(epilog="Example: recallog mcp --space village --agent baker")
def mcp_command(
    context: typer.Context, space: Space = None, agent: Agent = None, read_only: ReadOnly = False, home: Home = None
) -> None:
    """Serve a memory to an MCP client on standard input and output.

    The model is one agent in one space: it sees what this agent may see, and
    publishes as this agent. No tool takes a space or an agent. `recallog mcp install`
    prints the configuration with which a client starts this command.
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
        in_space, as_agent = _name("--space", space), _name("--agent", agent)
        if sys.stdin.isatty():
            terminal.note("waiting for an MCP client on standard input; recallog mcp install prints its configuration")
        verbs = frozenset({Verb.READ}) if read_only else _VERBS
        with terminal.opened(home, missing="create") as (memory, _):
            async with memory:
                with suppress(IndexUnavailable):  # until it can be started, words are compared
                    await memory.start_index()
                grant = Grant(spaces=(in_space,), agent=as_agent, verbs=verbs)
                await serve_stdio(memory, grant, in_space, as_agent)

    terminal.run_until_stopped(work)


@_group.command("install", epilog="Example: recallog mcp install --space village --agent baker > .mcp.json")
def install_command(
    space: Space = None,
    agent: Agent = None,
    read_only: ReadOnly = False,
    url: Annotated[
        str | None, typer.Option(help="Address of `recallog serve`, for example http://127.0.0.1:8765.")
    ] = None,
    home: Home = None,
) -> None:
    """Print the configuration that MCP clients read, with one server, `recallog`.

    It is the JSON of `.mcp.json` and of most clients' settings. Without --url
    the client starts `recallog mcp` with the settings of this environment. With
    --url it uses a server over HTTP, and sends the key that is in its own variable
    RECALLOG_KEY; name the space or the agent if the key allows several.
    """

    async def work() -> dict[str, Any]:
        if url is not None:
            if not url.startswith(("http://", "https://")) or url.rstrip("/").endswith("/mcp"):
                message = "--url: should be the address of a server without a path, for example http://127.0.0.1:8765"
                raise InvalidArgument(message, path="--url", rule="url")
            if read_only:
                message = "--read-only: cannot be combined with --url; give the client a key with --verb read alone"
                raise InvalidArgument(message, path="--read-only", rule="extra_forbidden")
            named = {"space": space and _name("--space", space), "agent": agent and _name("--agent", agent)}
            query = urlencode({name: value for name, value in named.items() if value}, safe="/@")
            address = f"{url.rstrip('/')}/mcp" + (f"?{query}" if query else "")
            return {"type": "http", "url": address, "headers": {"Authorization": f"Bearer {_KEY}"}}
        found = terminal.settings(home)
        arguments = ["mcp", "--space", _name("--space", space), "--agent", _name("--agent", agent)]
        if read_only:
            arguments.append("--read-only")
        if found.ledger is None:
            arguments += ["--home", str(found.home.absolute())]
        environment = {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(_ENVIRONMENT) and name != _HOME and not name.endswith("_KEY")
        }
        return {"command": _command(), "args": arguments} | ({"env": environment} if environment else {})

    server = terminal.run(work)
    terminal.print_exactly(json.dumps({"mcpServers": {"recallog": server}}, indent=2, ensure_ascii=False))


def _command() -> str:
    """The path of the installed command: clients start it without this shell's PATH."""
    beside = Path(sys.executable).with_name("recallog")
    return str(beside) if beside.exists() else shutil.which("recallog") or "recallog"


def _name(option: str, value: str | None) -> str:
    if value is None:
        raise InvalidArgument(f"{option}: is required", path=option, rule="missing")
    if not is_name(value):
        raise InvalidArgument(f"{option}: {value!r} {NOT_A_NAME}", path=option, rule="string_pattern_mismatch")
    return value
