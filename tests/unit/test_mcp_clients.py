"""The configuration of an MCP client: a server is put in and taken out, and all else stays as its user wrote it."""

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from recallog_agents import files, jsonc
from recallog_agents.clients import CLIENTS, Server
from recallog_agents.files import Change, ServerPart
from recallog_schemas.errors import RecallogError
from support.cli import recallog, spawn
from support.events import event, publish_in
from support.terminal import Terminal, on_a_terminal

STARTED = Server(command="/bin/recallog", args=("mcp", "--space", "village"), environment={"RECALLOG_INDEX": "off"})
CONNECTED = Server(url="https://memory.example/mcp")

JSON_FILES = {
    "empty": "",
    "an empty object": "{}\n",
    "no servers yet": '{\n  "theme": "dark"\n}\n',
    "another server": '{\n  "SERVERS": {\n    "other": {\n      "command": "x"\n    }\n  }\n}\n',
    "tabs and CRLF": '{\r\n\t"SERVERS": {\r\n\t\t"other": {"command": "x"} // mine\r\n\t},\r\n\t"z": 1\r\n}\r\n',
    "comments and commas at the end": (
        '// head\n{\n  "SERVERS": {\n    "other": {"command": "x"}, // mine\n    /* end */\n  },\n}\n// tail'
    ),
    "one line": '{"SERVERS":{"other":{"command":"x"}},"z":[1,2]}',
    "an empty list of servers": '{\n    "SERVERS": {},\n    "z": "ü"\n}',
    "a comment instead of servers": '{\n    "SERVERS": {\n        // none yet\n    }\n}\n',
    "a mark at the beginning": '\ufeff{\n  "z": 1\n}\n',
    "another question": '{\n  "inputs": [\n    {"type": "promptString", "id": "mine"}\n  ],\n  "SERVERS": {}\n}\n',
}
TOML_FILES = {
    "empty": "",
    "settings and comments": '# mine\nmodel = "x"  # the best\n\n[tui]\ntheme = "dark"\n# end\n',
    "another server": '[mcp_servers.other]\ncommand = "x"\nargs = ["a",\n  "b", # second\n]\n\n[tui]\ntheme = "dark"\n',
    "servers apart": '[mcp_servers.a]\ncommand = "x"\n\n[tui]\nx = 1\n\n[mcp_servers.b]\nurl = "https://y"\n',
    "a table of servers": '[mcp_servers]\n\n[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nK = "v"\n',
    "an inline table": 'mcp_servers = { a = { command = "x" } }\nmodel = "y"\n',
    "dotted names": 'mcp_servers.a.command = "x"\nmodel = "y"\n',
    "CRLF": '# mine\r\nmodel = "x"\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    "no line end": 'model = "x"',
}


def put_in(client: Any, path: Path, name: str, server: Server) -> Change:
    return files.install(path, [ServerPart(client, name, client.entry(server))])


def take_out(client: Any, path: Path, name: str) -> Change:
    return files.uninstall(path, [ServerPart(client, name)])


def cases() -> list[Any]:
    found = []
    for client in CLIENTS.values():
        texts = TOML_FILES if client.name == "codex" else JSON_FILES
        container = getattr(client, "container", "")
        for name, text in texts.items():
            found.append(pytest.param(client, text.replace("SERVERS", container).encode(), id=f"{client.name}, {name}"))
    return found


def parsed(path: Path) -> Any:
    text = path.read_bytes().decode("utf-8-sig")
    return tomllib.loads(text) if path.suffix == ".toml" else jsonc.parse(text).value


def file_of(client: Any, folder: Path, content: bytes) -> Path:
    path = folder / ("config.toml" if client.name == "codex" else "mcp.json")
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("server", [STARTED, CONNECTED], ids=["started", "connected"])
@pytest.mark.parametrize(("client", "content"), cases())
def test_what_install_puts_in_uninstall_takes_out_byte_by_byte(
    tmp_path: Path, client: Any, content: bytes, server: Server
) -> None:
    path = file_of(client, tmp_path, content)
    backup = put_in(client, path, "recallog", server).write()
    assert backup is not None
    assert backup.read_bytes() == content
    assert client.servers(path.read_bytes().decode("utf-8-sig"))["recallog"] == client.entry(server)
    take_out(client, path, "recallog").write()
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (content, [path])


@pytest.mark.parametrize(("client", "content"), cases())
def test_what_the_user_changes_afterwards_stays(tmp_path: Path, client: Any, content: bytes) -> None:
    path = file_of(client, tmp_path, content)
    put_in(client, path, "recallog", CONNECTED).write()
    other = client.insert(path.read_bytes().decode("utf-8-sig"), "later", {"command": "y"})
    path.write_bytes(other.encode())
    expected = client.rest(other, "recallog")
    take_out(client, path, "recallog").write()
    after = path.read_bytes().decode("utf-8-sig")
    assert "recallog" not in after
    assert client.rest(after, "recallog") == expected


@pytest.mark.parametrize(("client", "content"), cases())
def test_all_lines_that_were_there_stay_in_their_order(tmp_path: Path, client: Any, content: bytes) -> None:
    if b"\n" not in content.strip():
        pytest.skip("the file has no lines of its own")
    path = file_of(client, tmp_path, content)
    diff = put_in(client, path, "recallog", STARTED).diff()[2:]
    gone = [line[1:].strip() for line in diff if line.startswith("-")]
    # A comma may be added after the last element, and an empty list is opened.
    assert all(line.rstrip(",").endswith(('"}', "}", "{}", "// mine", "1", '"dark"', '"ü"', "]", "")) for line in gone)
    assert len(gone) <= 1


def test_a_second_run_changes_nothing_and_another_server_is_updated_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    client = CLIENTS["claude-code"]
    put_in(client, path, "recallog", STARTED).write()
    assert not put_in(client, path, "recallog", STARTED).is_needed
    text = (
        path.read_text().replace('"args"', '"timeout": 9, // mine\n      "args"').replace('"off"', '"off", "MINE": "1"')
    )
    path.write_text(text)
    assert not put_in(client, path, "recallog", STARTED).is_needed
    put_in(client, path, "recallog", Server(command="/bin/other", environment={"RECALLOG_HOME": "/m"})).write()
    found = parsed(path)["mcpServers"]["recallog"]
    assert (found["command"], found["args"], found["timeout"]) == ("/bin/other", [], 9)
    assert found["env"] == {"MINE": "1", "RECALLOG_HOME": "/m"}
    assert "// mine" in path.read_text()


def test_codex_keeps_what_its_user_added_to_the_server(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    client = CLIENTS["codex"]
    put_in(client, path, "recallog", STARTED).write()
    path.write_text(path.read_text() + "startup_timeout_sec = 20 # mine\n")
    put_in(client, path, "recallog", CONNECTED).write()
    assert parsed(path)["mcp_servers"]["recallog"] == {
        "url": "https://memory.example/mcp",
        "bearer_token_env_var": "RECALLOG_KEY",
        "startup_timeout_sec": 20,
    }
    assert "# mine" in path.read_text()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("claude-code", b'{"mcpServers": {', "line 1, column 17"),
        ("claude-code", b'{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: expected a comma or }"),
        ("claude-code", b"[]", "the file should contain a JSON object"),
        ("cursor", b'{"mcpServers": []}', "mcpServers should be an object"),
        ("vscode", b'{"servers": {}, "servers": {}}', "is there twice"),
        ("vscode", b'{"inputs": 1}', "inputs should be an array"),
        ("claude-code", "{ü}".encode("latin-1"), "utf-8"),
        ("claude-code", b"[" * 5000, "at most 100 levels"),
        ("codex", b"model = ", "line 1"),
        ("codex", b"mcp_servers = 1\n", "mcp_servers should be a table"),
        ("codex", b"[a]\nx = 1\n[a]\nx = 2\n", "config.toml"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    path = file_of(CLIENTS[name], tmp_path, content)
    with pytest.raises(RecallogError, match="Correct it, or move it away") as raised:
        put_in(CLIENTS[name], path, "recallog", CONNECTED)
    assert says in str(raised.value)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (content, [path])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("claude-code", b'{"mcpServers": {"recallog": {"command": "other", "args": ["mcp"]}}}'),
        ("cursor", b'{"mcpServers": {"recallog": {"url": "https://other.example/mcp"}}}'),
        ("vscode", b'{"servers": {"recallog": "disabled"}}'),
        ("vscode", b'{"servers": {"recallog": {}}}'),
        ("codex", b'[mcp_servers.recallog]\ncommand = "npx"\nargs = ["-y", "other"]\n'),
        ("codex", b"[mcp_servers]\nrecallog = 1\n"),
    ],
)
def test_a_server_of_another_program_with_this_name_is_neither_replaced_nor_taken_out(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = file_of(CLIENTS[name], tmp_path, content)
    with pytest.raises(RecallogError, match="--name selects another name"):
        put_in(CLIENTS[name], path, "recallog", STARTED)
    with pytest.raises(RecallogError, match="is not one of Recallog"):
        take_out(CLIENTS[name], path, "recallog")
    put_in(CLIENTS[name], path, "village", STARTED).write()
    take_out(CLIENTS[name], path, "village").write()
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "/home/ann/.venv/bin/recallog", "args": ["mcp", "--space", "v"]},
        {"command": "C:\\Python\\Scripts\\recallog.exe", "args": ["mcp"]},
        {"command": "python3", "args": ["-m", "recallog_service", "mcp"]},
        {"command": "docker", "args": ["run", "-i", "recallog", "mcp"], "env": {"X": "1"}},
        {"url": "https://memory.example/mcp", "headers": {"Authorization": "Bearer ${RECALLOG_KEY}"}},
    ],
)
def test_a_server_of_recallog_that_was_written_by_hand_is_updated(tmp_path: Path, entry: Any) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"recallog": entry}}))
    put_in(CLIENTS["cursor"], path, "recallog", STARTED).write()
    assert parsed(path)["mcpServers"]["recallog"]["args"] == list(STARTED.args)


def test_a_symbolic_link_stays_one_and_permissions_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "real.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o640)
    link = tmp_path / ".mcp.json"
    link.symlink_to("dotfiles/real.json")
    backup = put_in(CLIENTS["claude-code"], link, "recallog", STARTED).write()
    assert link.is_symlink()
    assert "recallog" in real.read_text()
    assert backup is not None
    assert [stat.S_IMODE(path.stat().st_mode) for path in (real, backup)] == [0o640, 0o640]


def test_a_file_that_has_changed_since_it_was_shown_is_not_overwritten(tmp_path: Path) -> None:
    path = file_of(CLIENTS["cursor"], tmp_path, b"{}\n")
    change = put_in(CLIENTS["cursor"], path, "recallog", STARTED)
    path.write_bytes(b'{"mine": 1}\n')
    with pytest.raises(RecallogError, match="has changed meanwhile"):
        change.write()
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b'{"mine": 1}\n'


def test_each_backup_has_a_name_of_its_own(tmp_path: Path) -> None:
    path, client = tmp_path / "mcp.json", CLIENTS["cursor"]
    path.write_bytes(b"{}")
    backups = {put_in(client, path, "recallog", Server(f"/{n}/recallog", ("mcp",))).write() for n in range(12)}
    assert len(backups) == 12
    take_out(client, path, "recallog").write()
    assert path.read_bytes() == b"{}"
    assert put_in(client, path, "recallog", STARTED).write() not in backups


# The commands.


@pytest.fixture
def home(tmp_path: Path) -> Path:
    publish_in(tmp_path / "home", event(agent="baker"))
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def install(home: Path, *more: object, client: str = "claude-code", space: str = "village") -> Any:
    names = ("--space", space, "--agent", "baker", "--home", home)
    return recallog("install", client, "--only", "mcp", "--here", *names, *more)


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ("claude-code", ".mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("codex", ".codex/config.toml"),
        ("gemini-cli", ".gemini/settings.json"),
        ("opencode", "opencode.json"),
    ],
)
def test_each_client_has_its_file_and_it_is_gone_after_uninstall(
    home: Path, project: Path, client: str, place: str
) -> None:
    done = install(home, "--yes", client=client)
    assert done.code == 0, done
    assert f"installed in {place}" in done.out
    server = CLIENTS[client].servers((project / place).read_text())["recallog"]
    arguments = server["command"][1:] if client == "opencode" else server["args"]
    assert arguments == ["mcp", "--space", "village", "--agent", "baker", "--home", str(home)]
    assert recallog("uninstall", client, "--only", "mcp", "--here", "--yes").code == 0
    assert list(project.iterdir()) == []


def test_other_servers_stay(home: Path, project: Path) -> None:
    (project / ".mcp.json").write_text('{"mcpServers": {"github": {"command": "gh"}}}')
    assert install(home, "--yes").code == 0
    assert list(parsed(project / ".mcp.json")["mcpServers"]) == ["github", "recallog"]
    assert list(parsed(project / ".mcp.json.before-recallog-1")["mcpServers"]) == ["github"]


def test_the_change_is_shown_and_nothing_is_written_without_a_yes(home: Path, project: Path) -> None:
    for options, code in (((), 2), (("--dry-run",), 0)):
        done = install(home, *options)
        assert done.code == code
        assert '+    "recallog": {' in done.out
    assert list(project.iterdir()) == []


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks(home: Path, project: Path, answer: str, code: int) -> None:
    words = ["install", "cursor", "--only", "mcp", "--here", "--space", "village", "--agent", "baker", "--home", home]
    done = on_a_terminal(*words, typed=f"{answer}\n".encode(), cwd=project)
    assert done.code == code, done
    assert "Write .cursor/mcp.json? [y/N]" in done.shown
    assert (project / ".cursor" / "mcp.json").exists() == (code == 0)


def test_as_json_it_says_what_was_changed(home: Path, project: Path) -> None:
    first, second = (install(home, "--yes", "--json").json["files"][0] for _ in range(2))
    assert (first["changed"], first["needed"], first["backup"]) == (True, True, None)
    assert first["file"] == str(project / ".mcp.json")
    assert (second["changed"], second["needed"], second["diff"]) == (False, False, "")


def test_a_misspelt_space_is_refused_with_the_nearest_name(home: Path, project: Path) -> None:
    done = install(home, "--yes", space="vilage")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'village'? If the space is new, say --new" in done.err
    assert list(project.iterdir()) == []
    assert install(home, "--yes", "--new", space="vilage").code == 0


def test_a_misspelt_agent_and_a_memory_that_is_missing_are_remarks(home: Path, project: Path) -> None:
    done = install(home, "--agent", "bakr", "--yes", client="cursor")
    assert done.code == 0
    assert done.err.count("did you mean 'baker'?") == 1
    missing = install(project / "nowhere", "--yes")
    assert missing.code == 0
    assert "the names were not checked: there is no memory in" in missing.err
    assert not (project / "nowhere").exists()


def test_it_is_printed_where_nothing_can_be_lost_and_says_that_nothing_was_written(home: Path, project: Path) -> None:
    words = ["install", "--space", "village", "--agent", "baker", "--home", home]
    piped = spawn(*words, cwd=project)
    assert piped.code == 0
    assert json.loads(piped.out)["mcpServers"]["recallog"]["args"][0] == "mcp"
    assert "nothing was written; recallog install claude-code|codex|cursor" in piped.err
    with Terminal() as terminal, (project / ".mcp.json").open("w") as file:
        shown = terminal.run(*words, stdout=file)
    assert shown.code == 2
    assert "If it had some, restore it" in shown.written
    assert (project / ".mcp.json").read_bytes() == b""


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_the_output_is_not_written_into_the_file_that_is_to_be_changed(home: Path, project: Path, command: str) -> None:
    names = ("--space", "village", "--agent", "baker", "--home", home) if command == "install" else ()
    with Terminal() as terminal, (project / ".mcp.json").open("w") as file:
        words = (command, "claude-code", "--only", "mcp", "--here", *names, "--yes")
        shown = terminal.run(*words, stdout=file, cwd=project)
    assert shown.code == 2
    assert "which the shell has emptied" in shown.written
    assert (project / ".mcp.json").read_bytes() == b""


def test_a_password_in_the_environment_is_pointed_out(home: Path, project: Path) -> None:
    os_environment = {"RECALLOG_VIEWS": "redis://me:secret@127.0.0.1:1/0"}
    done = recallog("install", "--space", "v", "--agent", "b", "--home", home, **os_environment)
    assert "an address with a password: do not share the file" in done.err
    assert os.environ.get("RECALLOG_VIEWS") is None
