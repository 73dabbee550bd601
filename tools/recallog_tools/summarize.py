"""Generates `summaries.json` of the command line for `make generate`: what `recallog --help` lists."""

import json
from collections.abc import Iterator
from typing import Any

import typer

from recallog_service.cli import derived
from recallog_service.cli.app import DERIVED, commands_of

MODULES = (
    "producers",
    "ingesting",
    DERIVED,
    "reactors",
    "watching",
    "following",
    "exporting",
    "copying",
    "workers",
    "serving",
    "keys",
    "mcp",
    "schema",
    "workspace",
)
"""The modules that register commands, in the order in which `recallog --help` lists these."""


def commands() -> Iterator[tuple[str, Any]]:
    """All commands and groups, imported, each with its module."""
    for module in MODULES:
        for name in derived.names() if module == DERIVED else [None]:
            for command in typer.main.get_group(commands_of(module, name)).commands.values():
                yield module, command


def generated() -> str:
    """The text of the generated file."""
    found = {command.name: {"module": module, "summary": _summary(command)} for module, command in commands()}
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _summary(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split()).replace("\\[", "[")
