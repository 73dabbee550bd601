"""`mcp install` and `mcp uninstall`: put a memory into the configuration of an MCP client, and take it out."""

import importlib.util
import json
import os
import re
import shutil
import stat
import sys
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from recallog import InvalidArgument, RecallogError, Remote
from recallog_agents import files
from recallog_agents.clients import CLIENTS, ENVIRONMENT, KEY, Client, Server
from recallog_agents.files import Change
from recallog_service.cli import terminal, unknown_names
from recallog_service.cli.mcp import Agent, ReadOnly, Space, name_of
from recallog_service.cli.terminal import Home, Json

ClientName = Enum("ClientName", {name: name for name in CLIENTS}, type=str)  # type: ignore[misc]  # its members are known
File = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="Another file of the client.",
        show_default="that of this folder; Codex: ~/.codex/config.toml",
    ),
]
ServerName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="How the client names the server; one for each memory.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change without writing it.")]

_HOME = "RECALLOG_HOME"
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def register(group: typer.Typer) -> None:
    """Add the commands to the group `mcp`."""
    group.command("install", epilog="Example: recallog mcp install --client claude-code --space village --agent baker")(
        install_command
    )
    group.command("uninstall", epilog="Example: recallog mcp uninstall --client claude-code")(uninstall_command)


def install_command(
    client: Annotated[
        ClientName | None, typer.Option(help="The client whose file is changed; without it, nothing is.")
    ] = None,
    space: Space = None,
    agent: Agent = None,
    read_only: ReadOnly = False,
    url: Annotated[
        str | None, typer.Option(help="Address of `recallog serve`, for example http://127.0.0.1:8765.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="The space has no events yet.")] = False,
    file: File = None,
    name: ServerName = "recallog",
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Let an MCP client use this memory: put a server into its configuration.

    The server is merged into the file of the client: other servers, comments
    and settings stay. The change is shown, and written after a question; what
    was there is kept in a backup beside the file. A second run updates the
    server, or changes nothing.

    Without --url the client starts `recallog mcp` with the settings of this
    environment. With --url it uses a server over HTTP, and sends the key that
    is in its own variable RECALLOG_KEY; name the space or the agent if the key
    allows several. A space of which no event is known is refused, with the
    nearest name; --new says that it is right.

    Without --client the configuration that most clients read is printed, for a
    client that is not among these.
    """

    async def prepared() -> tuple[Server, Change | None]:
        _refuse_a_file(None if client is None else file or CLIENTS[client.value].file())
        _check_name(name)
        server = _server(space, agent, read_only, url, home)
        change = None if client is None else _change(client, file, name, server)
        for remark in await _checked(space, agent, url, home, new=new):
            terminal.note(remark)
        return server, change

    server, change = terminal.run(prepared, as_json=as_json)
    _warn(server)
    if change is None or client is None:
        printed = CLIENTS["claude-code"]
        text = printed.insert("", name, printed.entry(server))
        if as_json:
            terminal.print_json_text(json.dumps(json.loads(text)))
        else:
            terminal.print_exactly(text.rstrip())
        terminal.note(f"nothing was written; --client {'|'.join(CLIENTS)} puts it into the file of a client")
        return
    _apply(change, CLIENTS[client.value], name, yes, dry_run, as_json, done="installed")


def uninstall_command(
    client: Annotated[ClientName, typer.Option(help="The client whose file is changed.")],
    file: File = None,
    name: ServerName = "recallog",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take out what `recallog mcp install` has put into the configuration of a client.

    If nothing else has changed since, the file is byte by byte as it was
    before, and one that did not exist is removed. Otherwise only the server is
    taken out. The memory stays.
    """

    async def prepared() -> Change:
        _refuse_a_file(file or CLIENTS[client.value].file())
        _check_name(name)
        return files.uninstall(CLIENTS[client.value], file or CLIENTS[client.value].file(), name)

    change = terminal.run(prepared, as_json=as_json)
    _apply(change, CLIENTS[client.value], name, yes, dry_run, as_json, done="uninstalled")


def _change(client: "ClientName", file: Path | None, name: str, server: Server) -> Change:
    found = CLIENTS[client.value]
    return files.install(found, file or found.file(), name, server)


def _apply(change: Change, client: Client, name: str, yes: bool, dry_run: bool, as_json: bool, *, done: str) -> None:
    """Show the change, ask, and write it. The exit code is 0 if the file is as requested, or if it was only shown."""
    if not as_json:
        for line in change.diff():
            terminal.print_lines(line, _STYLES.get(line[:1], ""))
    written, backup = False, None
    if change.is_needed and not dry_run:
        written = yes or _is_confirmed(change, as_json)

        async def write() -> Path | None:
            return change.write() if written else None

        backup = terminal.run(write, as_json=as_json)
    if as_json:
        terminal.print_json(
            {
                "client": client.name,
                "file": str(change.path.absolute()),
                "name": name,
                "changed": written,
                "needed": change.is_needed,
                "backup": None if backup is None else str(backup),
                "diff": "\n".join(change.diff()),
            }
        )
    elif not change.is_needed:
        there = "has this server already" if done == "installed" else f"has no server {name}"
        terminal.print_lines(f"{change.path} {there}; nothing was written")
    elif written:
        kept = "" if backup is None else f"; what was there before is in {backup}"
        terminal.print_lines(f"{done} {name} in {change.path}{kept}")
        if done == "installed":
            terminal.note(client.next)
    else:
        terminal.print_lines("nothing was written")
    raise typer.Exit(0 if written or dry_run or not change.is_needed else 1)


def _is_confirmed(change: Change, as_json: bool) -> bool:
    """What the user answers. Where nobody can, the command ends."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        message = f"{change.path} was not changed: nobody can be asked without a terminal; say --yes to write it"
        terminal.fail(InvalidArgument(message, path="--yes", rule="missing"), as_json=as_json)
    what = "Remove" if change.after is None else "Write"
    return typer.confirm(f"{what} {change.path}?", err=True)


def _refuse_a_file(changed: Path | None) -> None:
    """Refuse to print into the file that is to be changed; without one, into any file.

    The shell has emptied it before the command began, with the servers in it.
    """
    with suppress(OSError, ValueError, AttributeError):
        printed = os.fstat(sys.stdout.fileno())
        if stat.S_ISREG(printed.st_mode) and (changed is None or os.path.samestat(printed, changed.stat())):
            message = (
                "the configuration is not printed into a file, which the shell empties first, with all other servers "
                f"in it. If it had some, restore it. --client {'|'.join(CLIENTS)} merges the server into a client's "
                "file, and --file names another one"
                if changed is None
                else f"the output goes into {changed}, which the shell has emptied. If it had other servers, restore "
                "it; then run the command without `>`"
            )
            raise InvalidArgument(message, path="--client", rule="missing")


def _server(space: str | None, agent: str | None, read_only: bool, url: str | None, home: Path | None) -> Server:
    if url is not None:
        if not url.startswith(("http://", "https://")) or url.rstrip("/").endswith("/mcp"):
            message = "--url: should be the address of a server without a path, for example http://127.0.0.1:8765"
            raise InvalidArgument(message, path="--url", rule="url")
        if read_only:
            message = "--read-only: cannot be combined with --url; give the client a key with --verb read alone"
            raise InvalidArgument(message, path="--read-only", rule="extra_forbidden")
        named = {"space": space and name_of("--space", space), "agent": agent and name_of("--agent", agent)}
        query = urlencode({name: value for name, value in named.items() if value}, safe="/@")
        return Server(url=f"{url.rstrip('/')}/mcp" + (f"?{query}" if query else ""))
    found = terminal.settings(home)
    arguments = ["mcp", "--space", name_of("--space", space), "--agent", name_of("--agent", agent)]
    if read_only:
        arguments.append("--read-only")
    if found.ledger is None:
        arguments += ["--home", str(found.home.absolute())]
    environment = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(ENVIRONMENT) and name != _HOME and not name.endswith("_KEY")
    }
    return Server(command=_command(), args=tuple(arguments), environment=environment)


def _command() -> str:
    """The path of the installed command: clients start it without this shell's PATH."""
    beside = Path(sys.executable).with_name("recallog")
    return str(beside) if beside.exists() else shutil.which("recallog") or "recallog"


async def _checked(space: str | None, agent: str | None, url: str | None, home: Path | None, *, new: bool) -> list[str]:
    """Remarks about the names. Raises `InvalidArgument` if a memory has events, but none in the space."""
    if space is None:
        return []

    async def unknown_in(memory: Any) -> tuple[str | None, bool]:
        """What is unknown, and whether that is the space."""
        unknown = await unknown_names.unknown_name(memory, {"space": space, "agent": agent})
        is_space = unknown is not None and not (await memory.agents(space)).known and bool(await memory.spaces())
        return unknown, is_space

    try:
        if url is not None:
            async with Remote(url, key=os.environ.get(KEY)) as remote:
                unknown, is_space = await unknown_in(remote)
        else:
            with terminal.opened(home) as (memory, _):
                async with memory:
                    unknown, is_space = await unknown_in(memory)
    except RecallogError as error:
        return [f"the names were not checked: {error}"]
    if unknown is None or new:
        return []
    if is_space:
        end = "" if unknown.endswith("?") else "."
        raise InvalidArgument(f"{unknown}{end} If the space is new, say --new", path="--space", rule="unknown")
    return [unknown]


def _warn(server: Server) -> None:
    """Say what may keep the client from using the server, or others from reading its file."""
    if server.url is None and importlib.util.find_spec("mcp") is None:
        terminal.note("the client cannot start the server yet: pip install '.[mcp]' in a clone of Recallog")
    if any(re.search("://[^/@]*:[^/@]+@", value) for value in (server.environment or {}).values()):
        terminal.note("the configuration has an address with a password: do not share the file")


def _check_name(name: str) -> None:
    if not _SERVER_NAME.fullmatch(name):
        message = f"--name: {name!r} is not a name of a server: letters, digits, _ and -, at most 64"
        raise InvalidArgument(message, path="--name", rule="string_pattern_mismatch")
