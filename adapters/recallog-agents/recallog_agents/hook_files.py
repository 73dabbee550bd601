"""The hooks of coding agents in their files: the form of each agent, and how hooks are added and removed.

Methods raise `ValueError` for a text that is not in the agent's format.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from recallog_agents import jsonc
from recallog_agents.clients import located
from recallog_agents.events import EVENTS, TOOL

_OURS = re.compile(r"recallog-hook|recallog_agents\.hook|recallog['\"]? hook ")
_SECONDS = 5
"""The time after which an agent ends a hook that does not end by itself."""


@dataclass(frozen=True)
class HookFile(ABC):
    """The file with the hooks of an agent."""

    agent: str
    of_user: str
    of_project: str

    def file(self, *, here: bool) -> Path:
        """The file for all projects, or for the project in the working directory."""
        return Path(self.of_project) if here else Path(located(self.of_user))

    @abstractmethod
    def present(self, text: str) -> object:
        """Our hooks in a text; empty if there are none."""

    @abstractmethod
    def put(self, text: str, hooks: Any) -> str:
        """The text with our hooks, which replace older versions."""

    @abstractmethod
    def take(self, text: str, earlier: str = "") -> str:
        """The text without our hooks. If lists are then empty, they are kept if an `earlier` text has them."""

    @abstractmethod
    def rest(self, text: str) -> object:
        """Everything in a text except our hooks."""

    @abstractmethod
    def hooks(self, command: list[str], quoted: str) -> Any:
        """Our hooks in the form of this file, from the words of a command, and the same command for a shell."""


@dataclass(frozen=True)
class JsonHooks(HookFile):
    """A JSON file with a list for each event: of groups with a matcher and hooks, or of hooks."""

    is_grouped: bool = True
    fields: tuple[tuple[str, Any], ...] = (("timeout", _SECONDS),)
    """The fields of a hook besides its command."""
    version: int | None = None
    """The version of a new file."""

    def hooks(self, command: list[str], quoted: str) -> Mapping[str, list[Any]]:
        hook = ({"type": "command"} if self.is_grouped else {}) | {"command": quoted} | dict(self.fields)
        found: dict[str, list[Any]] = {}
        for event, action in EVENTS[self.agent].items():
            matcher = {"matcher": "*"} if action == TOOL else {}
            found[event] = [matcher | {"hooks": [hook]} if self.is_grouped else hook]
        return found

    def present(self, text: str) -> Mapping[str, list[Any]]:
        found = {event: list(map(self._only_ours, entries)) for event, entries in self._entries(text).items()}
        return {event: entries for event, entries in found.items() if entries}

    def _entries(self, text: str) -> Mapping[str, list[Any]]:
        """The entries that contain our hooks, possibly beside others."""
        return {event: list(filter(self._has_ours, entries)) for event, entries in _events(text).items()}

    def _only_ours(self, entry: Any) -> Any:
        return entry | {"hooks": list(filter(_is_ours, entry["hooks"]))} if self.is_grouped else entry

    def put(self, text: str, hooks: Mapping[str, list[Any]]) -> str:
        if self.present(text) == hooks:
            return text
        if not all(map(self._is_all_ours, (each for entries in self._entries(text).values() for each in entries))):
            text = self.take(text)
        if not text.strip():
            text = "{}\n"
            if self.version is not None:
                text = jsonc.put(text, ["version"], self.version)
        for event, entries in hooks.items():
            for entry in entries:
                text = self._with(text, event, entry)
        return text

    def _with(self, text: str, event: str, entry: Any) -> str:
        """The text with an entry, which replaces ours if there is one."""
        for number, present in enumerate(_events(text).get(event, ())):
            if self._has_ours(present):
                return jsonc.put(text, ["hooks", event, number], entry)
        return jsonc.append(text, ["hooks", event], entry)

    def take(self, text: str, earlier: str = "") -> str:
        for event in self.present(text):
            entries = _events(text)[event]
            for number in reversed(range(len(entries))):
                text = self._without(text, event, number, entries[number])
            if not _events(text)[event] and event not in _events(earlier):
                text = jsonc.remove(text, ["hooks", event])
        was_there = bool(earlier.strip()) and "hooks" in _object(earlier)
        return jsonc.remove(text, ["hooks"]) if text.strip() and _is_empty(text) and not was_there else text

    def _without(self, text: str, event: str, number: int, entry: Any) -> str:
        if not self._has_ours(entry):
            return text
        hooks = entry["hooks"] if self.is_grouped else []
        others = [each for each in hooks if not _is_ours(each)]
        if not others:
            return jsonc.remove(text, ["hooks", event], number)
        for index in reversed(range(len(hooks))):
            if _is_ours(hooks[index]):
                text = jsonc.remove(text, ["hooks", event, number, "hooks"], index)
        return text

    def rest(self, text: str) -> object:
        if not text.strip():
            return {}
        whole = dict(_object(text))
        events: dict[str, Any] = {}
        for event, entries in _events(text).items():
            kept = [self._rest_of(entry) for entry in entries if not self._is_all_ours(entry)]
            if kept:
                events[event] = kept
        rest = {name: value for name, value in whole.items() if name not in ("hooks", "version")}
        others = {name: value for name, value in whole.get("hooks", {}).items() if not isinstance(value, list)}
        return rest | ({"hooks": others | events} if others or events else {})

    def _rest_of(self, entry: Any) -> Any:
        if not self._has_ours(entry):
            return entry
        return entry | {"hooks": [each for each in entry["hooks"] if not _is_ours(each)]}

    def _is_all_ours(self, entry: Any) -> bool:
        return self._has_ours(entry) and (not self.is_grouped or all(map(_is_ours, entry["hooks"])))

    def _has_ours(self, entry: Any) -> bool:
        if not self.is_grouped:
            return _is_ours(entry)
        hooks = entry.get("hooks") if isinstance(entry, dict) else None
        return isinstance(hooks, list) and any(map(_is_ours, hooks))


@dataclass(frozen=True)
class Plugin(HookFile):
    """A file of our own: a plugin of OpenCode."""

    def hooks(self, command: list[str], quoted: str) -> str:
        template = files("recallog_agents").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
        return template.replace("COMMAND_OF_THE_HOOK", json.dumps(command))

    def present(self, text: str) -> str:
        return text if _OURS.search(text) else ""

    def put(self, text: str, hooks: str) -> str:
        if text.strip() and not self.present(text):
            raise ValueError("it is another plugin")
        return hooks

    def take(self, text: str, earlier: str = "") -> str:
        return "" if self.present(text) else text

    def rest(self, text: str) -> object:
        return self.take(text).strip()


def _events(text: str) -> Mapping[str, list[Any]]:
    """The lists of a file by their events."""
    found = _object(text).get("hooks", {}) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("hooks should be an object")
    events = {event: entries for event, entries in found.items() if isinstance(entries, list)}
    for event, entries in found.items():
        if (
            not isinstance(entries, list)
            and event[:1].isalpha()
            and event not in ("enabled", "disabled", "notifications")
        ):
            raise ValueError(f"hooks.{event} should be an array")
    return events


def _object(text: str) -> Mapping[str, Any]:
    found = jsonc.parse(text).value
    if not isinstance(found, dict):
        raise ValueError("the file should contain a JSON object")
    return found


def _is_empty(text: str) -> bool:
    return _object(text).get("hooks") == {}


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, dict) and bool(_OURS.search(str(hook.get("command"))))


HOOKS: Mapping[str, HookFile] = {
    hooks.agent: hooks
    for hooks in (
        JsonHooks("claude-code", "~/.claude/settings.json", ".claude/settings.local.json"),
        JsonHooks("codex", "~/.codex/hooks.json", ".codex/hooks.json"),
        JsonHooks("cursor", "~/.cursor/hooks.json", ".cursor/hooks.json", is_grouped=False, version=1),
        JsonHooks(
            "gemini-cli",
            "~/.gemini/settings.json",
            ".gemini/settings.json",
            fields=(("name", "recallog"), ("timeout", _SECONDS * 1000)),
        ),
        Plugin("opencode", "~/.config/opencode/plugins/recallog.js", ".opencode/plugins/recallog.js"),
    )
}
"""The hook files by agent."""
