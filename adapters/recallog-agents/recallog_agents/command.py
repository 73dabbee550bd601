"""`install` and `uninstall`: put a memory into the configuration of a coding agent, and take it out. `hook`: what an
agent runs at its events."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from recallog import InvalidArgument, RecallogError, Remote, Settings
from recallog_agents import files, hook, noted
from recallog_agents.clients import CLIENTS, ENVIRONMENT, KEY, Client, Server
from recallog_agents.files import Change, HooksPart, Part, ServerPart
from recallog_agents.hook_files import HOOKS
from recallog_schemas import extras
from recallog_service.cli import terminal, unknown_names
from recallog_service.cli.mcp import Agent, ReadOnly, Space, name_of
from recallog_service.cli.terminal import Json

AgentName = Enum("AgentName", {name: name for name in CLIENTS}, type=str)  # type: ignore[misc]  # its members are known


class Only(StrEnum):
    """A part of an installation."""

    hooks = "hooks"
    mcp = "mcp"


AgentArgument = Annotated[AgentName, typer.Argument(metavar="AGENT", help=f"The agent: {', '.join(CLIENTS)}.")]
OnlyOption = Annotated[
    Only | None, typer.Option("--only", help="Only the hooks, or only the MCP server.", show_default="both")
]
Here = Annotated[
    bool, typer.Option("--here", help="For the project in this folder, instead of for all projects of the user.")
]
File = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Another file of the agent; needs --only.", show_default="the agent's"),
]
ServerName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="How the agent names the MCP server; one for each memory.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the change without writing it.")]
Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="RECALLOG_HOME", help="Folder of the memory.", show_default="~/.recallog"),
]
HomeOfSpace = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="RECALLOG_HOME",
        help="Folder of the memory.",
        show_default="~/.recallog; with --space .recallog",
    ),
]

_HOME = "RECALLOG_HOME"
_SCRUB, _SCRUBBED = "RECALLOG_SCRUB", "secrets,emails,phones,cards"
"""The data that is replaced in texts, unless the environment has another value."""
_SERVER_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def register_install(app: typer.Typer) -> None:
    """Add the command `install`."""
    app.command("install", epilog="Example: recallog install claude-code")(install_command)


def register_uninstall(app: typer.Typer) -> None:
    """Add the command `uninstall`."""
    app.command("uninstall", epilog="Example: recallog uninstall claude-code")(uninstall_command)


def register_hook(app: typer.Typer) -> None:
    """Add the command `hook`."""
    app.command("hook", epilog="Example: recallog hook claude-code < event.json")(hook_command)


def hook_command(agent: AgentArgument, home: Home = None) -> None:
    """Run the hook of a coding agent, with the JSON of one of its events on standard input.

    What was said is captured, and the answer is what the memory recalls. This is for
    trying a hook out: agents run `recallog-hook`, which does the same and starts faster.
    """
    hook.run([agent.value, "--home", str(_home(home))])


def install_command(
    agent_name: Annotated[
        AgentName | None,
        typer.Argument(metavar="AGENT", help=f"{', '.join(CLIENTS)}. Without it, an MCP configuration is printed."),
    ] = None,
    only: OnlyOption = None,
    here: Here = False,
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
    home: HomeOfSpace = None,
    as_json: Json = False,
) -> None:
    """Let a coding agent remember: put hooks and an MCP server into its configuration.

    The hooks capture what is said and done in each project, and recall it at the
    start of a session and at each prompt. The MCP server gives the model tools.
    Both are merged into the files of the agent: other hooks, servers, comments
    and settings stay. The change is shown, and written after a question; what
    was there is kept in a backup beside the file. A second run updates what was
    installed, or changes nothing.

    Each project has a space of its own in the memory, which all agents share.
    Secrets, mail addresses, and numbers of phones and cards are taken out of
    texts, unless RECALLOG_SCRUB says otherwise.

    --space and --url are for an MCP server alone (--only mcp). With --url the
    agent uses a server over HTTP, and sends the key that is in its own variable
    RECALLOG_KEY; name the space or the agent if the key allows several. A space
    without events is refused, and the message has the nearest name; with --new
    it is accepted.
    """
    client = None if agent_name is None else CLIENTS[agent_name.value]
    home = _home(home, space)

    async def prepared() -> tuple[Server | None, list[Change]]:
        parts = _parts(client, only, here, file)
        _refuse_a_file([path for path, _ in parts] or None)
        _check_options(client, only, space, url, name)
        server = None
        if client is None or only is not Only.hooks:
            server = _server(client, space, agent, read_only, url, home)
        changes = [] if client is None else _changes(client, parts, name, server, home)
        for remark in await _checked(space, agent, url, home, new=new):
            terminal.note(remark)
        return server, changes

    server, changes = terminal.run(prepared, as_json=as_json)
    if server is not None:
        _warn(server)
    if client is None:
        _print_configuration(server, as_json)
        return
    done = _apply(changes, client, name, yes, dry_run, as_json, done="installed")
    for path in _files_of_hooks(client, only, here, file) if done else ():
        noted.install(home, path, _environment())
    if not as_json and done and any(change.is_needed for change in changes):
        terminal.note(client.next)
    raise typer.Exit(0 if done or dry_run else 1)


def uninstall_command(
    agent_name: AgentArgument,
    only: OnlyOption = None,
    here: Here = False,
    file: File = None,
    name: ServerName = "recallog",
    yes: Yes = False,
    dry_run: DryRun = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Take out what `recallog install` has put into the configuration of an agent.

    If nothing else has changed since, each file is byte by byte as it was
    before, and one that did not exist is removed. Otherwise only the hooks and
    the server are taken out. The memory stays.
    """
    client = CLIENTS[agent_name.value]

    async def prepared() -> list[Change]:
        parts = _parts(client, only, here, file)
        _refuse_a_file([path for path, _ in parts])
        _check_name(name)
        return [files.uninstall(path, [_part(client, kind, name) for kind in kinds]) for path, kinds in parts]

    changes = terminal.run(prepared, as_json=as_json)
    done = _apply(changes, client, name, yes, dry_run, as_json, done="uninstalled")
    for path in _files_of_hooks(client, only, here, file) if done else ():
        noted.uninstall(_home(home), path)
    raise typer.Exit(0 if done or dry_run else 1)


def _home(home: Path | None, space: str | None = None) -> Path:
    """The folder of the memory: the folder for all projects or, for a space that is named, the folder of other
    commands."""
    return (home or (Path() if space else Path.home()) / ".recallog").absolute()


def _parts(client: Client | None, only: Only | None, here: bool, file: Path | None) -> list[tuple[Path, list[Only]]]:
    """The files of an agent, each with the parts of an installation that it holds. Raises `InvalidArgument`."""
    if client is None:
        return []
    if file is not None and only is None:
        raise InvalidArgument("--file: needs --only hooks or --only mcp", path="--file", rule="missing")
    wanted = [only] if only else [Only.hooks, Only.mcp]
    if client.name not in HOOKS:
        if only is Only.hooks:
            raise InvalidArgument(f"--only: {client.title} has no hooks", path="--only", rule="value")
        wanted = [Only.mcp]
    found: dict[Path, list[Only]] = {}
    for kind in wanted:
        place = HOOKS[client.name] if kind is Only.hooks else client
        if not here and not place.of_user and file is None:
            raise InvalidArgument(f"--here: {client.title} is installed for a project", path="--here", rule="missing")
        found.setdefault(file or place.file(here=here), []).append(kind)
    return list(found.items())


def _files_of_hooks(client: Client, only: Only | None, here: bool, file: Path | None) -> list[Path]:
    return [path for path, kinds in _parts(client, only, here, file) if Only.hooks in kinds]


def _part(client: Client, kind: Only, name: str, server: Server | None = None, hooks: Any = None) -> Part:
    if kind is Only.hooks:
        return HooksPart(client.title, HOOKS[client.name], hooks)
    return ServerPart(client, name, None if server is None else client.entry(server))


def _changes(
    client: Client, parts: Sequence[tuple[Path, list[Only]]], name: str, server: Server | None, home: Path
) -> list[Change]:
    hooks = None
    if client.name in HOOKS:
        words = [*_hook_command(), client.name, "--home", str(home)]
        quoted = subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
        hooks = HOOKS[client.name].hooks(words, quoted)
    return [files.install(path, [_part(client, kind, name, server, hooks) for kind in kinds]) for path, kinds in parts]


def _print_configuration(server: Server | None, as_json: bool) -> None:
    printed = CLIENTS["claude-code"]
    text = "" if server is None else printed.insert("", "recallog", printed.entry(server))
    if as_json:
        terminal.print_json_text(json.dumps(json.loads(text)))
    else:
        terminal.print_exactly(text.rstrip())
    terminal.note(f"nothing was written; recallog install {'|'.join(CLIENTS)} puts it into the files of an agent")


def _apply(
    changes: Sequence[Change], client: Client, name: str, yes: bool, dry_run: bool, as_json: bool, *, done: str
) -> bool:
    """Show the changes, ask, and write them. Returns whether the files are as requested."""
    needed = [change for change in changes if change.is_needed]
    if not as_json:
        for change in needed:
            for line in change.diff():
                terminal.print_lines(line, _STYLES.get(line[:1], ""))
    written, backups = False, dict[Path, Path | None]()
    if needed and not dry_run:
        written = yes or _is_confirmed(needed, as_json)

        async def write() -> None:
            for change in needed:
                change.check()
            for change in needed:
                backups[change.path] = change.write()

        if written:
            terminal.run(write, as_json=as_json)
    if as_json:
        _print_changes(changes, client, name, written, backups)
        return written or not needed
    for change in changes:
        if not change.is_needed:
            there = "has it already" if done == "installed" else "has nothing of Recallog"
            terminal.print_lines(f"{change.path} {there}; nothing was written")
        elif written:
            backup = backups.get(change.path)
            kept = "" if backup is None else f"; what was there before is in {backup}"
            terminal.print_lines(f"{done} in {change.path}{kept}")
    if needed and not written:
        terminal.print_lines("nothing was written")
    return written or not needed


def _print_changes(
    changes: Sequence[Change], client: Client, name: str, written: bool, backups: dict[Path, Path | None]
) -> None:
    listed = [
        {
            "file": str(change.path.absolute()),
            "changed": written and change.is_needed,
            "needed": change.is_needed,
            "backup": str(backup) if (backup := backups.get(change.path)) else None,
            "diff": "\n".join(change.diff()),
        }
        for change in changes
    ]
    terminal.print_json({"agent": client.name, "name": name, "files": listed})


def _is_confirmed(changes: Sequence[Change], as_json: bool) -> bool:
    """The answer of the user. Without a terminal, the command ends."""
    named = " and ".join(str(change.path) for change in changes)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        message = f"nothing was written to {named}: without a terminal nobody can confirm it; use --yes to write it"
        terminal.fail(InvalidArgument(message, path="--yes", rule="missing"), as_json=as_json)
    what = "Remove" if all(change.after is None for change in changes) else "Write"
    return typer.confirm(f"{what} {named}?", err=True)


def _refuse_a_file(changed: Sequence[Path] | None) -> None:
    """Refuse to print into a file that the command changes; if it changes none, into any file.

    The shell has emptied the file, and the servers in it, before the command began.
    """
    with suppress(OSError, ValueError, AttributeError):
        printed = os.fstat(sys.stdout.fileno())
        if not stat.S_ISREG(printed.st_mode):
            return
        if changed is None:
            message = (
                "the configuration is not printed into a file, which the shell empties first, with all other servers "
                f"in it. If it had some, restore it. recallog install {'|'.join(CLIENTS)} merges the server into an "
                "agent's file, and --file names another one"
            )
            raise InvalidArgument(message, path="AGENT", rule="missing")
        for path in filter(Path.exists, changed):
            if os.path.samestat(printed, path.stat()):
                message = (
                    f"the output goes into {path}, which the shell has emptied. If it had other servers, restore "
                    "it; then run the command without `>`"
                )
                raise InvalidArgument(message, path="--file", rule="missing")


def _check_options(client: Client | None, only: Only | None, space: str | None, url: str | None, name: str) -> None:
    _check_name(name)
    with_hooks = client is not None and only is not Only.mcp and client.name in HOOKS
    for option, value in (("--space", space), ("--url", url)):
        if with_hooks and value is not None:
            message = f"{option}: is for an MCP server only; use --only mcp. Hooks use a space for each project"
            raise InvalidArgument(message, path=option, rule="extra_forbidden")


def _server(
    client: Client | None, space: str | None, agent: str | None, read_only: bool, url: str | None, home: Path
) -> Server:
    if url is not None:
        if not url.startswith(("http://", "https://")) or url.rstrip("/").endswith("/mcp"):
            message = "--url: should be the address of a server without a path, for example http://127.0.0.1:8765"
            raise InvalidArgument(message, path="--url", rule="url")
        if read_only:
            message = "--read-only: cannot be combined with --url; give the client a key with --verb read only"
            raise InvalidArgument(message, path="--read-only", rule="extra_forbidden")
        named = {"space": space and name_of("--space", space), "agent": agent and name_of("--agent", agent)}
        query = urlencode({name: value for name, value in named.items() if value}, safe="/@")
        return Server(url=f"{url.rstrip('/')}/mcp" + (f"?{query}" if query else ""))
    where = ["--project", "." if client is None else client.project]
    if space is not None:
        where = ["--space", name_of("--space", space)]
    named_agent = agent if agent is not None or client is None else client.name
    arguments = ["mcp", *where, "--agent", name_of("--agent", named_agent)]
    if read_only:
        arguments.append("--read-only")
    if Settings.valid(home=home).ledger is None:
        arguments += ["--home", str(home)]
    return Server(command=_command("recallog"), args=tuple(arguments), environment=_environment())


def _environment() -> dict[str, str]:
    """The settings of this environment that a server and hooks get, without keys."""
    return {_SCRUB: _SCRUBBED} | {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(ENVIRONMENT) and name != _HOME and not name.endswith("_KEY")
    }


def _command(name: str) -> str:
    """The path of an installed command, since agents start it without the PATH of this shell."""
    beside = Path(sys.executable).with_name(name + (".exe" if os.name == "nt" else ""))
    return str(beside) if beside.exists() else shutil.which(name) or name


def _hook_command() -> list[str]:
    found = _command("recallog-hook")
    return [found] if Path(found).exists() else [sys.executable, "-m", "recallog_agents.hook"]


async def _checked(space: str | None, agent: str | None, url: str | None, home: Path, *, new: bool) -> list[str]:
    """Remarks about the names. Raises `InvalidArgument` if a memory has events, but none in the space."""
    if space is None:
        return []

    async def unknown_in(memory: Any) -> tuple[str | None, bool]:
        """The name that is unknown, and whether it is the space."""
        unknown = await unknown_names.unknown_name(memory, {"space": space, "agent": agent})
        is_space = unknown is not None and not (await memory.agents(space)).known and bool(await memory.spaces())
        return unknown, is_space

    try:
        if url is not None:
            async with Remote(url, key=os.environ.get(KEY)) as remote:
                unknown, is_space = await unknown_in(remote)
        else:
            with terminal.open_memory(home) as (memory, _):
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
    """Warn about reasons why the client may not be able to use the server, or why others may read its file."""
    if server.url is None and importlib.util.find_spec("mcp") is None:
        terminal.note(
            f"the client cannot start the server yet: {extras.missing(ModuleNotFoundError(name='mcp'), 'mcp')}"
        )
    if any(re.search("://[^/@]*:[^/@]+@", value) for value in (server.environment or {}).values()):
        terminal.note("the configuration has an address with a password: do not share the file")


def _check_name(name: str) -> None:
    if not _SERVER_NAME.fullmatch(name):
        message = f"--name: {name!r} is not a name of a server: letters, digits, _ and -, at most 64"
        raise InvalidArgument(message, path="--name", rule="string_pattern_mismatch")
