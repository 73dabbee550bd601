"""The MCP clients whose files are known: the places of their servers, and the forms of a server.

A client's methods change the text of its file. They raise `ValueError` for a text that is not in the client's format.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recallog_agents import jsonc

KEY = "RECALLOG_KEY"
"""The variable from which a client takes the key of a server over HTTP, so that no file contains the key."""
ENVIRONMENT = "RECALLOG_"
"""The prefix of our variables. Other variables in the environment of a server belong to the user."""

_INPUT = "recallog-key"
_COMMANDS = frozenset({"recallog", "recallog_service"})
"""Words that start a server: the command, or its module with `python -m`."""
_VARIABLES = ("env", "environment")
"""The fields in which clients have the environment of a server."""
Entry = Mapping[str, Any]
"""A server in the form of a client."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server for a client: a command that the client starts, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    url: str | None = None


@dataclass(frozen=True)
class Client(ABC):
    """One client."""

    name: str
    title: str
    next: str
    """What the user has to do next."""
    of_user: str
    """Its file for all projects, in the folder of the user."""
    of_project: str
    """Its file for one project, in the folder of the project."""
    project: str = "."
    """The reference to the folder of the open project in its configuration."""

    def file(self, *, here: bool) -> Path:
        """Its file for all projects, or for the project in the working directory."""
        return Path(self.of_project) if here else Path(located(self.of_user))

    @abstractmethod
    def entry(self, server: Server) -> Entry:
        """A server in the form of this client."""

    @abstractmethod
    def servers(self, text: str) -> Mapping[str, Entry]:
        """The servers in a text, by name."""

    @abstractmethod
    def insert(self, text: str, name: str, entry: Entry) -> str:
        """The text with a server added that it does not have."""

    @abstractmethod
    def update(self, text: str, name: str, entry: Entry) -> str:
        """The text with other fields of a server that it has. Additions of the user to the server are kept."""

    @abstractmethod
    def remove(self, text: str, name: str, earlier: str = "") -> str:
        """The text without a server. If a list is then empty, it is kept if an `earlier` text has it."""

    @abstractmethod
    def rest(self, text: str, name: str) -> object:
        """Everything in a text except a server. An edit must not change it."""


def located(path: str) -> str:
    """A path in the user's folder. Variables can move the folder of a client: for Codex, `$CODEX_HOME`."""
    for variable, start, moved in _MOVED:
        if path.startswith(start) and os.environ.get(variable):
            return os.environ[variable] + moved + path.removeprefix(start)
    return str(Path(path).expanduser())


_MOVED = (
    ("CLAUDE_CONFIG_DIR", "~/.claude.json", "/.claude.json"),
    ("CLAUDE_CONFIG_DIR", "~/.claude/", "/"),
    ("CODEX_HOME", "~/.codex/", "/"),
    ("XDG_CONFIG_HOME", "~/.config/", "/"),
)
"""Variables, the paths that they replace, and the rest of the paths after their values."""


def is_ours(entry: object) -> bool:
    """Whether a server belongs to Recallog, even if the user has changed it since, or wrote it by hand."""
    if not isinstance(entry, dict):
        return False
    if "url" in entry or "httpUrl" in entry:
        key = str(entry.get("headers", "")) + str(entry.get("bearer_token_env_var", ""))
        return KEY in key or _INPUT in key
    words = [word for name in ("command", "args") for word in _listed(entry.get(name))]
    names = [re.split(r"[/\\]", word)[-1].removesuffix(".exe") for word in words if isinstance(word, str)]
    return "mcp" in names and not _COMMANDS.isdisjoint(names)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _updated(present: Entry, entry: Entry) -> Entry:
    """The entry, with the user's additions to the present one: fields, variables and headers."""
    own = {"type", "command", "args", *_VARIABLES, "url", "httpUrl", "headers", "bearer_token_env_var"}
    found = {name: value for name, value in present.items() if name in entry or name not in own} | dict(entry)
    for place in _VARIABLES:
        variables = present.get(place)
        if isinstance(variables, dict) and "command" in entry:
            kept = {name: value for name, value in variables.items() if not name.startswith(ENVIRONMENT)}
            if kept:
                found[place] = kept | dict(entry.get(place, {}))
    if isinstance(present.get("headers"), dict) and "headers" in entry:
        found["headers"] = present["headers"] | entry["headers"]
    return found


@dataclass(frozen=True)
class _JsonClient(Client):
    """A client with JSON files."""

    container: str = "mcpServers"
    """The member that contains the servers."""
    key: str = ""
    """The reference to the key in its file."""
    typed: tuple[str, ...] = ("stdio", "http")
    """The types that its entries name."""
    address: str = "url"

    def entry(self, server: Server) -> Entry:
        if server.url is not None:
            kind = {"type": "http"} if "http" in self.typed else {}
            return kind | {self.address: server.url, "headers": {"Authorization": f"Bearer {self.key}"}}
        kind = {"type": "stdio"} if "stdio" in self.typed else {}
        found = kind | {"command": server.command, "args": list(server.args)}
        return found | ({"env": dict(server.environment)} if server.environment else {})

    def servers(self, text: str) -> Mapping[str, Entry]:
        found = jsonc.at(_object(text), [self.container])
        if found is None:
            return {}
        if not isinstance(found.value, dict):
            raise ValueError(f"{self.container} should be an object")
        return found.value

    def insert(self, text: str, name: str, entry: Entry) -> str:
        text = jsonc.put(text if text.strip() else "{}\n", [self.container, name], entry)
        return self._with_input(text) if self._needs_input(entry) else text

    def update(self, text: str, name: str, entry: Entry) -> str:
        present = self.servers(text)[name]
        if not isinstance(present, dict):
            return jsonc.put(text, [self.container, name], entry)
        changed = _updated(present, entry)
        for field in present.keys() - changed.keys():
            text = jsonc.remove(text, [self.container, name, field])
        for field, value in changed.items():
            text = jsonc.put(text, [self.container, name, field], value)
        return self._with_input(text) if self._needs_input(entry) else text

    def remove(self, text: str, name: str, earlier: str = "") -> str:
        text = jsonc.remove(text, [self.container, name])
        was_there = bool(earlier.strip()) and self.container in _object(earlier).value
        if not self.servers(text) and not was_there:
            text = jsonc.remove(text, [self.container])
        return self._without_input(text)

    def rest(self, text: str, name: str) -> object:
        if not text.strip():
            return {}
        whole = dict(_object(text).value)
        servers = {each: entry for each, entry in self.servers(text).items() if each != name}
        inputs = [each for each in _inputs(whole) if not _is_our_input(each)]
        rest = whole | {self.container: servers, "inputs": inputs}
        return {each: value for each, value in rest.items() if value or each not in (self.container, "inputs")}

    def _needs_input(self, entry: Entry) -> bool:
        return f"${{input:{_INPUT}}}" in str(entry.get("headers"))

    def _with_input(self, text: str) -> str:
        """The text with the input for the key, which VS Code requests once and stores."""
        if any(_is_our_input(each) for each in _inputs(_object(text).value)):
            return text
        asked = {"type": "promptString", "id": _INPUT, "description": "Key of Recallog", "password": True}
        return jsonc.append(text, ["inputs"], asked)

    def _without_input(self, text: str) -> str:
        """The text without that input, unless a server needs it."""
        inputs = _inputs(_object(text).value)
        found = [number for number, each in enumerate(inputs) if _is_our_input(each)]
        if not found or f"${{input:{_INPUT}}}" in text:
            return text
        return jsonc.remove(text, ["inputs"], found[0]) if len(inputs) > 1 else jsonc.remove(text, ["inputs"])


def _object(text: str) -> jsonc.Value:
    found = jsonc.parse(text)
    if not isinstance(found.value, dict):
        raise ValueError("the file should contain a JSON object")
    return found


def _inputs(whole: Mapping[str, Any]) -> list[Any]:
    found = whole.get("inputs", [])
    if not isinstance(found, list):
        raise ValueError("inputs should be an array")
    return found


def _is_our_input(each: object) -> bool:
    return isinstance(each, dict) and each.get("id") == _INPUT


@dataclass(frozen=True)
class _OpenCode(_JsonClient):
    """OpenCode, whose file may be called .json or .jsonc."""

    def file(self, *, here: bool) -> Path:
        file = super().file(here=here)
        with_comments = file.with_suffix(".jsonc")
        return with_comments if with_comments.exists() and not file.exists() else file

    def entry(self, server: Server) -> Entry:
        if server.url is not None:
            return {"type": "remote", "url": server.url, "headers": {"Authorization": f"Bearer {self.key}"}}
        found = {"type": "local", "command": [server.command, *server.args]}
        return found | ({"environment": dict(server.environment)} if server.environment else {})


@dataclass(frozen=True)
class _Codex(Client):
    """Codex, with TOML files."""

    def entry(self, server: Server) -> Entry:
        if server.url is not None:
            return {"url": server.url, "bearer_token_env_var": KEY}
        found = {"command": server.command, "args": list(server.args)}
        return found | ({"env": dict(server.environment)} if server.environment else {})

    def servers(self, text: str) -> Mapping[str, Entry]:
        found = _toml(text).unwrap().get(_SERVERS, {})
        if not isinstance(found, dict):
            raise ValueError(f"{_SERVERS} should be a table")
        return found

    def insert(self, text: str, name: str, entry: Entry) -> str:
        from tomlkit.items import InlineTable

        document = _toml(text)
        if isinstance(document.get(_SERVERS), InlineTable):
            document[_SERVERS][name] = _inline(entry)
            return str(document.as_string())
        # A table at the end is valid with any other form of the servers.
        before = text if not text or text.endswith("\n") else f"{text}\n"
        blank = "\n" if before.strip() else ""
        return f"{before}{blank}[{_SERVERS}.{name}]\n{_table(entry).as_string()}"

    def update(self, text: str, name: str, entry: Entry) -> str:
        document, present = _toml(text), self.servers(text)[name]
        table = document[_SERVERS][name]
        changed, fields = _updated(present, entry), _table(entry)
        for field in present.keys() - changed.keys():
            del table[field]
        for field, value in changed.items():
            if present.get(field) != value:
                table[field] = fields.get(field, value) if entry.get(field) == value else value
        return str(document.as_string())

    def remove(self, text: str, name: str, earlier: str = "") -> str:
        document = _toml(text)
        servers = document[_SERVERS]
        del servers[name]
        if not servers and _SERVERS not in _toml(earlier):
            del document[_SERVERS]
        return str(document.as_string())

    def rest(self, text: str, name: str) -> object:
        whole = _toml(text).unwrap()
        servers = {each: entry for each, entry in self.servers(text).items() if each != name}
        return {each: value for each, value in whole.items() if each != _SERVERS} | {_SERVERS: servers}


_SERVERS = "mcp_servers"


def _toml(text: str) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(str(error)) from None


def _table(entry: Entry) -> Any:
    """A table of TOML, with its variables in one line."""
    import tomlkit

    table = tomlkit.table()
    for field, value in entry.items():
        table.append(field, _inline(value) if isinstance(value, dict) else value)
    return table


def _inline(entry: Entry) -> Any:
    """The same table in one line."""
    import tomlkit

    table = tomlkit.inline_table()
    for field, value in entry.items():
        table.append(field, _inline(value) if isinstance(value, dict) else value)
    return table


_WORKSPACE = "${workspaceFolder}"

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        _JsonClient(
            "claude-code",
            "Claude Code",
            "start Claude Code; /hooks and /mcp list what was installed",
            of_user="~/.claude.json",
            of_project=".mcp.json",
            key=f"${{{KEY}}}",
        ),
        _Codex(
            "codex",
            "Codex",
            "start Codex and trust the hooks, with /hooks; /mcp lists the server",
            of_user="~/.codex/config.toml",
            of_project=".codex/config.toml",
        ),
        _JsonClient(
            "cursor",
            "Cursor",
            "start Cursor and switch the server on in its settings, under MCP",
            of_user="~/.cursor/mcp.json",
            of_project=".cursor/mcp.json",
            project=_WORKSPACE,
            key=f"${{env:{KEY}}}",
            typed=("stdio",),
        ),
        _JsonClient(
            "gemini-cli",
            "Gemini CLI",
            "start Gemini CLI; /hooks and /mcp list what was installed",
            of_user="~/.gemini/settings.json",
            of_project=".gemini/settings.json",
            key=f"${KEY}",
            typed=(),
            address="httpUrl",
        ),
        _OpenCode(
            "opencode",
            "OpenCode",
            "start OpenCode",
            of_user="~/.config/opencode/opencode.json",
            of_project="opencode.json",
            container="mcp",
            key=f"{{env:{KEY}}}",
        ),
        _JsonClient(
            "vscode",
            "VS Code",
            "open this folder in VS Code and start the server: MCP: List Servers",
            of_user="",
            of_project=".vscode/mcp.json",
            project=_WORKSPACE,
            container="servers",
            key=f"${{input:{_INPUT}}}",
        ),
    )
}
"""The clients by name."""
