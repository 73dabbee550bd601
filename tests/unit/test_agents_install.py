"""`recallog install` and `uninstall`: hooks and a server in the files of coding agents, and nothing else changes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallog_agents import files, jsonc
from recallog_agents.clients import CLIENTS, Server
from recallog_agents.events import EVENTS
from recallog_agents.files import Change, HooksPart, Part, ServerPart
from recallog_agents.hook_files import HOOKS, JsonHooks
from recallog_schemas.errors import RecallogError
from support.cli import recallog
from support.terminal import on_a_terminal

WORDS = ["/bin/recallog-hook", "agent", "--home", "/m"]
SERVER = Server(command="/bin/recallog", args=("mcp", "--project", "."))
JSON_AGENTS = [name for name, file in HOOKS.items() if isinstance(file, JsonHooks)]
FOREIGN = {"type": "command", "command": "notify-send done"}


def parts(agent: str) -> list[Part]:
    hooks = HOOKS[agent].hooks(WORDS, " ".join(WORDS))
    return [HooksPart("Agent", HOOKS[agent], hooks), ServerPart(CLIENTS["gemini-cli"], "recallog", entry())]


def entry() -> Any:
    return CLIENTS["gemini-cli"].entry(SERVER)


def taken(agent: str) -> list[Part]:
    return [HooksPart("Agent", HOOKS[agent]), ServerPart(CLIENTS["gemini-cli"], "recallog")]


def put_in(agent: str, path: Path) -> Change:
    return files.install(path, parts(agent))


def take_out(agent: str, path: Path) -> Change:
    return files.uninstall(path, taken(agent))


def content(path: Path) -> Any:
    return jsonc.parse(path.read_bytes().decode("utf-8-sig")).value


@st.composite
def configurations(draw: st.DrawFn, agent: str) -> bytes:
    """A settings file as its user wrote it: with hooks and servers of others, comments, and any line ends."""
    names = st.sampled_from([*EVENTS[agent], "Notification", "mine"])
    hook: Any = {"matcher": "Bash", "hooks": [FOREIGN]} if HOOKS[agent].is_grouped else FOREIGN  # type: ignore[attr-defined]
    whole: dict[str, Any] = {"mine": 1}
    if draw(st.booleans()):
        whole["hooks"] = draw(st.dictionaries(names, st.lists(st.just(hook), max_size=2), max_size=3))
    if draw(st.booleans()):
        whole["mcpServers"] = draw(st.dictionaries(st.sampled_from(["a", "ü"]), st.just({"command": "x"}), max_size=2))
    whole |= draw(
        st.dictionaries(st.sampled_from(["z", "y"]), st.sampled_from([[], {}, [1, 2], "}", "// no"]), max_size=2)
    )
    text = json.dumps(whole, indent=draw(st.sampled_from([None, 2, 4, "\t"])), ensure_ascii=False)
    if draw(st.booleans()) and "\n" in text:
        text = text.replace("\n", " // mine, and not {\n", 1)
    text = draw(st.sampled_from(["", "// head\n", "\n"])) + text + draw(st.sampled_from(["", "\n", "\n/* tail */\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


@pytest.mark.parametrize("agent", JSON_AGENTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_install_puts_in_uninstall_takes_out_byte_by_byte(
    tmp_path_factory: pytest.TempPathFactory, agent: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("agent") / "settings.json"
    before = data.draw(configurations(agent))
    path.write_bytes(before)
    put_in(agent, path).write()
    assert set(HOOKS[agent].present(path.read_bytes().decode("utf-8-sig"))) == set(EVENTS[agent])  # type: ignore[call-overload]
    take_out(agent, path).write()
    assert (path.read_bytes(), len(list(path.parent.iterdir()))) == (before, 1)


@pytest.mark.parametrize("agent", JSON_AGENTS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_file_that_its_user_has_edited_since_keeps_the_edit_and_nothing_of_us(
    tmp_path_factory: pytest.TempPathFactory, agent: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("agent") / "settings.json"
    before = data.draw(configurations(agent))
    path.write_bytes(before)
    put_in(agent, path).write()
    path.write_bytes(path.read_bytes().replace(b'"mine": 1', b'"mine": "edited"'))
    take_out(agent, path).write()
    edited = before.replace(b'"mine": 1', b'"mine": "edited"')
    assert content(path) == jsonc.parse(edited.decode("utf-8-sig")).value
    assert not HOOKS[agent].present(path.read_bytes().decode("utf-8-sig"))


@pytest.mark.parametrize("agent", list(HOOKS))
def test_a_file_that_did_not_exist_is_gone_with_its_folders(tmp_path: Path, agent: str) -> None:
    path = tmp_path / "deep" / "folder" / "settings"
    hooks = HOOKS[agent].hooks(WORDS, " ".join(WORDS))
    (tmp_path / "other").write_text("")
    files.install(path, [HooksPart("Agent", HOOKS[agent], hooks)]).write()
    assert path.exists()
    files.uninstall(path, [HooksPart("Agent", HOOKS[agent])]).write()
    assert [each.name for each in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_a_second_run_changes_nothing_and_one_with_another_memory_moves_the_hooks(tmp_path: Path, agent: str) -> None:
    path = tmp_path / "settings.json"
    put_in(agent, path).write()
    assert not put_in(agent, path).is_needed
    moved = HOOKS[agent].hooks(["/bin/recallog-hook", "--home", "/n"], "/bin/recallog-hook --home /n")
    files.install(path, [HooksPart("Agent", HOOKS[agent], moved)]).write()
    assert path.read_text().count("/bin/recallog-hook --home /n") == len(EVENTS[agent])
    assert "--home /m" not in path.read_text()
    take_out(agent, path).write()
    assert not path.exists()


def test_a_hook_of_the_user_in_our_group_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    put_in("claude-code", path).write()
    text = jsonc.append(path.read_text(), ["hooks", "Stop", 0, "hooks"], FOREIGN)
    path.write_text(text)
    take_out("claude-code", path).write()
    assert content(path) == {"hooks": {"Stop": [{"hooks": [FOREIGN]}]}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"hooks": []}', "hooks should be an object"),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop should be an array"),
        ('{"hooks": {', "line 1"),
        ("[]", "the file should contain a JSON object"),
        ('{"hooks": {}, "hooks": {}}', "is there twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(RecallogError, match="Correct it, or move it away") as raised:
        put_in("claude-code", path)
    assert says in str(raised.value)
    assert (path.read_text(), list(tmp_path.iterdir())) == (text, [path])


def test_another_plugin_of_the_same_name_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "recallog.js"
    path.write_text("export const Mine = 1\n")
    with pytest.raises(RecallogError, match="it is another plugin"):
        files.install(path, [HooksPart("OpenCode", HOOKS["opencode"], "recallog-hook")])
    assert not files.uninstall(path, [HooksPart("OpenCode", HOOKS["opencode"])]).is_needed


# The commands.


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user, in which a project is the working directory."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "RECALLOG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def all_files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


PLACES = {
    "claude-code": (".claude/settings.json", ".claude.json"),
    "codex": (".codex/hooks.json", ".codex/config.toml"),
    "cursor": (".cursor/hooks.json", ".cursor/mcp.json"),
    "gemini-cli": (".gemini/settings.json",),
    "opencode": (".config/opencode/plugins/recallog.js", ".config/opencode/opencode.json"),
}


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("agent", list(PLACES))
def test_hooks_and_a_server_are_installed_together_and_nothing_is_left_of_them(
    user: Path, agent: str, scope: str
) -> None:
    here = ["--here"] if scope == "project" else []
    before = sorted(user.rglob("*"))
    assert recallog("install", agent, *here, "--yes").code == 0
    installed = all_files(user)
    noted = json.loads(installed.pop(".recallog/agents/installed.json"))
    assert noted["environment"]["RECALLOG_SCRUB"] == "secrets,emails,phones,cards"
    (with_hooks,) = noted["files"]
    assert str(Path(with_hooks).relative_to(user)) in installed
    if not here:
        assert sorted(installed) == sorted(PLACES[agent])
    assert len(installed) == len(PLACES[agent])
    assert recallog("uninstall", agent, *here, "--yes").code == 0
    assert sorted(user.rglob("*")) == before


def test_the_server_works_in_the_space_of_the_project_and_scrubs(user: Path) -> None:
    assert recallog("install", "claude-code", "--yes", RECALLOG_SCRUB="secrets").code == 0
    server = json.loads((user / ".claude.json").read_text())["mcpServers"]["recallog"]
    assert server["args"] == ["mcp", "--project", ".", "--agent", "claude-code", "--home", str(user / ".recallog")]
    assert server["env"]["RECALLOG_SCRUB"] == "secrets"


@pytest.mark.parametrize("option", [("--space", "v"), ("--url", "http://127.0.0.1:1")])
def test_a_space_or_an_address_is_for_a_server_alone(user: Path, option: tuple[str, str]) -> None:
    done = recallog("install", "codex", *option, "--yes")
    assert done.code == 2
    assert "use --only mcp" in done.err
    assert list(user.iterdir()) == [user / "project"]


@pytest.mark.parametrize("url", ["memory.example", "https://memory.example/mcp"])
def test_an_address_that_no_client_could_use_is_refused(user: Path, url: str) -> None:
    done = recallog("install", "codex", "--only", "mcp", "--url", url, "--yes")
    assert done.code == 2
    assert "--url: should be the address of a server without a path" in done.err
    assert list(user.iterdir()) == [user / "project"]


def test_one_of_both_can_be_installed_and_taken_out(user: Path) -> None:
    assert recallog("install", "claude-code", "--only", "hooks", "--yes").code == 0
    assert not (user / ".claude.json").exists()
    assert recallog("install", "claude-code", "--only", "mcp", "--yes").code == 0
    assert recallog("uninstall", "claude-code", "--only", "hooks", "--yes").code == 0
    assert not (user / ".claude").exists()
    assert (user / ".claude.json").exists()


def test_the_settings_of_hooks_stay_as_long_as_a_file_has_hooks(user: Path) -> None:
    for where in ((), ("--here",)):
        assert recallog("install", "codex", *where, "--yes", RECALLOG_SCRUB="secrets").code == 0
    assert recallog("uninstall", "codex", "--yes").code == 0
    noted = json.loads((user / ".recallog" / "agents" / "installed.json").read_text())
    assert noted["files"] == [str(user / "project" / ".codex" / "hooks.json")]
    assert noted["environment"]["RECALLOG_SCRUB"] == "secrets"


def test_nothing_is_written_if_one_of_the_files_is_read_only(user: Path) -> None:
    config = user / ".claude.json"
    config.write_text("{}\n")
    config.chmod(0o444)
    done = recallog("install", "claude-code", "--yes")
    assert done.code != 0
    assert "is read-only; nothing was written" in done.err
    assert (config.read_text(), (user / ".claude").exists()) == ("{}\n", False)


def test_symbolic_links_stay(user: Path) -> None:
    (user / "dotfiles").mkdir()
    real = user / "dotfiles" / "settings.json"
    real.write_bytes(b'{"a": 1}\r\n')
    (user / ".claude").mkdir()
    (user / ".claude" / "settings.json").symlink_to("../dotfiles/settings.json")
    assert recallog("install", "claude-code", "--yes").code == 0
    assert b"recallog-hook" in real.read_bytes() or b"recallog_agents.hook" in real.read_bytes()
    assert recallog("uninstall", "claude-code", "--yes").code == 0
    assert (user / ".claude" / "settings.json").is_symlink()
    assert real.read_bytes() == b'{"a": 1}\r\n'


def test_the_change_is_shown_and_nothing_is_written_without_a_yes(user: Path) -> None:
    for options, code in (((), 2), (("--dry-run",), 0)):
        done = recallog("install", "claude-code", *options)
        assert done.code == code
        assert '+    "UserPromptSubmit": [' in done.out
        assert '+    "recallog": {' in done.out
    assert list(user.iterdir()) == [user / "project"]


def test_on_a_terminal_it_asks_once_for_both_files(user: Path) -> None:
    done = on_a_terminal("install", "claude-code", typed=b"n\n", cwd=user / "project")
    assert done.code == 1
    assert f"Write {user}/.claude/settings.json and {user}/.claude.json? [y/N]" in done.shown.replace("\n", "")
    assert list(user.iterdir()) == [user / "project"]


def test_as_json_it_says_what_was_changed(user: Path) -> None:
    first, second = (recallog("install", "cursor", "--yes", "--json").json for _ in range(2))
    assert [each["changed"] for each in first["files"]] == [True, True]
    assert [each["file"] for each in first["files"]] == [str(user / each) for each in PLACES["cursor"]]
    assert [each["needed"] for each in second["files"]] == [False, False]


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_variable_moves_the_folder_of_an_agent(user: Path, monkeypatch: pytest.MonkeyPatch, agent: str) -> None:
    name, places = {
        "claude-code": ("CLAUDE_CONFIG_DIR", {"settings.json", ".claude.json"}),
        "codex": ("CODEX_HOME", {"hooks.json", "config.toml"}),
    }[agent]
    monkeypatch.setenv(name, str(user / "moved"))
    assert recallog("install", agent, "--yes").code == 0
    assert {each.name for each in (user / "moved").iterdir()} == places
    assert os.environ["HOME"] == str(user)


def test_an_agent_without_hooks_gets_a_server_for_the_project(user: Path) -> None:
    assert recallog("install", "vscode", "--yes").code == 2
    assert recallog("install", "vscode", "--here", "--yes").code == 0
    assert "${workspaceFolder}" in (user / "project" / ".vscode" / "mcp.json").read_text()
    assert recallog("install", "vscode", "--only", "hooks", "--here", "--yes").code == 2
