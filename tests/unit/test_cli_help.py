"""The help in panels, and what a misspelt command, option or choice was meant to be."""

import json
import re
from pathlib import Path

import pytest

from recallog_service.cli import installed, panels
from recallog_service.cli.app import SUMMARIES
from support.cli import recallog

COMMANDS = json.loads(SUMMARIES.read_text(encoding="utf-8"))
UNKNOWN = [
    (["timelin"], "Did you mean 'timeline'?"),
    (["nosuchcommandatall"], "No such command 'nosuchcommandatall'."),
    (["timeline", "v", "a", "--limt", "3"], "No such option --limt. Did you mean --limit?"),
    (["timeline", "v", "--agnet", "a"], "AGENT is an argument: give the value without an option."),
    (["timeline", "v", "a", "--zzz"], "No such option --zzz."),
    (["ingest", "x", "--formt", "text"], "No such option --formt. Did you mean --format?"),
    (["install", "claude-cod"], "Invalid value for 'AGENT': 'claude-cod' is not one of"),
    (["recall", "v", "a", "q", "--fusion", "weigthed"], "--fusion: should be 'weighted'"),
    (["recall", "v", "a", "q", "--fusion", "weigthed"], "not 'weigthed'; did you mean 'weighted'?"),
]  # fmt: skip


def listed(text: str) -> dict[str, list[str]]:
    """The commands in a help, by the titles of their panels."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("╭─ "):
            names = found.setdefault(line.split()[1], [])
        elif line.startswith("│ ") and line[2] != " ":
            names.append(line[2:].split()[0])
    return {title: names for title, names in found.items() if title != "Options"}


def test_the_help_lists_every_command_in_one_of_five_panels() -> None:
    shown = listed(recallog("--help").out)
    assert tuple(shown) == panels.PANELS
    by_panel = {name: title for title, names in shown.items() for name in names}
    assert len(by_panel) == sum(map(len, shown.values()))
    assert {name: by_panel[name] for name in COMMANDS} == {name: each["panel"] for name, each in COMMANDS.items()}


@pytest.mark.models("all")
def test_where_commands_are_listed() -> None:
    shown = listed(recallog("--help").out)
    assert {"publish", "ingest", "demo", "install"} <= set(shown["Start"])
    assert {"recall", "timeline", "context", "watch"} <= set(shown["Ask"])
    assert {"long-term", "conversation", "erase", "workspace"} <= set(shown["Keep"])
    assert {"status", "verify", "rebuild", "dead-letters", "schema"} <= set(shown["Operate"])
    assert {"serve", "mcp", "worker", "keys"} <= set(shown["Serve"])


def test_commands_of_one_package_have_summaries_of_their_own() -> None:
    summaries = {name: installed.summary_of(name) for name in ("hook", "install", "uninstall")}
    assert len(set(summaries.values())) == len(summaries)
    assert summaries["uninstall"] == "Undo `recallog install`."


@pytest.mark.models("long_term")
def test_a_group_lists_its_commands_in_the_same_panels() -> None:
    shown = listed(recallog("long-term", "--help").out)
    assert list(shown) == ["Ask", "Keep", "Operate"]
    assert {"get", "list", "lessons"} <= set(shown["Ask"])
    assert {"retain", "forget"} <= set(shown["Keep"])
    assert shown["Operate"] == ["grant"]


@pytest.mark.models("all")
@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if len(each.get("commands", ())) > 8])
def test_the_help_of_a_long_group_has_no_command_outside_a_panel(name: str) -> None:
    shown = listed(recallog(name, "--help").out)
    assert set(shown) <= set(panels.PANELS)
    assert sorted(each for names in shown.values() for each in names) == sorted(COMMANDS[name]["commands"])


@pytest.mark.parametrize(("arguments", "says"), UNKNOWN, ids=lambda value: " ".join(value))
def test_an_unknown_name_is_answered_with_the_nearest(tmp_path: Path, arguments: list[str], says: str) -> None:
    result = recallog(*arguments, RECALLOG_HOME=str(tmp_path))
    assert (result.code, result.out) == (2, "")
    assert says in " ".join(result.err.replace("│", " ").split())


def test_what_limits_a_list_is_named_limit_too(tmp_path: Path) -> None:
    for n in range(3):
        recallog("publish", "village", "baker", "agent.spoke", f"Bread {n}.", "--home", tmp_path)
    for command in (["episodic"], ["recall", "bread"], ["search", "bread"], ["timeline"], ["salient"]):
        shown = recallog(command[0], "village", "baker", *command[1:], "--limit", 1, "--home", tmp_path)
        assert shown.code == 0, shown
        assert shown.out.count("Bread") == 1
    changed = recallog("configure-agent", "village", "baker", "--limit", 1, "--home", tmp_path)
    assert changed.code == 2  # its window is a setting, not a list


@pytest.mark.models("beliefs", "conversations", "working")
def test_a_list_whose_operation_has_no_limit_is_limited_to_its_newest_or_first_items(tmp_path: Path) -> None:
    for n in range(3):
        recallog("publish", "village", "baker", "agent.reflected", f"Bread {n}.", "--home", tmp_path)
        message = json.dumps({"role": "user", "content": f"Bread {n}."})
        recallog("conversation", "add", "village", "baker", "s", "-", "--home", tmp_path, stdin=f"[{message}]")
        recallog("working", "set", "village", "baker", f"label-{n}", f"Bread {n}.", "--home", tmp_path)
    for command, last in ((["beliefs"], 2), (["conversation", "messages"], 2), (["working", "get"], 0)):
        rest = ["village", "baker", *(["s"] if command[0] == "conversation" else []), "--home", tmp_path]
        shown = recallog(*command, *rest, "--limit", 1)
        assert re.findall(r"Bread \d", shown.out) == [f"Bread {last}"]
        assert "2 more: raise --limit" in shown.err
        assert recallog(*command, *rest, "--limit", 1, "--json").json["left_out"] == 2
        assert "left_out" not in recallog(*command, *rest, "--limit", 3, "--json").json
    (id_,) = recallog("conversation", "messages", *rest[:2], "s", *rest[2:], "--limit", 1, "--json").json["ids"]
    assert id_ == recallog("conversation", "messages", *rest[:2], "s", *rest[2:], "--json").json["ids"][-1]


@pytest.mark.models("long_term")
def test_a_command_of_a_group_is_found_without_its_group() -> None:
    result = recallog("retain", "village", "baker", "Bread!")
    assert result.code == 2
    assert "No such command 'retain'. Did you mean 'long-term retain'?" in result.err
