"""The panels in which the help lists commands, and suggestions for misspelt options and commands."""

from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

PANELS = START, ASK, KEEP, OPERATE, SERVE = "Start", "Ask", "Keep", "Operate", "Serve"
"""In the order of the help. A derived command is listed by the scope of its operation; a group is listed with its
first command."""


class PanelGroup(TyperGroup):
    """A group whose help lists its commands by panel."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: place_of(self.commands[name]))


def place_of(command: Any) -> int:
    """Where the help lists a command: the number of its panel."""
    panel = getattr(command, "rich_help_panel", None)
    return PANELS.index(panel) if panel in PANELS else len(PANELS)


def message_of_unknown_option(typed: str, command: Any) -> str:
    """The error message for an option that a command does not have."""
    placed = {f"--{each.name.replace('_', '-')}": each for each in command.params if each.param_type_name == "argument"}
    options = [name for each in command.params if each.param_type_name == "option" for name in each.opts]
    near = next(iter(get_close_matches(typed, [*options, *placed], 1)), None)
    if near in placed:
        return f"No such option {typed}. {placed[near].name.upper()} is an argument: give the value without an option."
    return f"No such option {typed}." + (f" Did you mean {near}?" if near else "")
