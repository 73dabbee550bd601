"""Generates `summaries.json` of the command line for `make generate`: what `recallog --help` lists."""

import json
from collections.abc import Iterator
from typing import Any

import typer

from recallog_schemas.models import import_parts
from recallog_service.cli import derived
from recallog_service.cli.app import DERIVED, commands_of

_OF_KERNEL = (
    "recallog_service.cli.producers",
    "recallog_service.cli.ingesting",
    DERIVED,
    "recallog_service.cli.reactors",
    "recallog_service.cli.following",
    "recallog_service.cli.exporting",
    "recallog_service.cli.copying",
    "recallog_service.cli.workers",
    "recallog_service.cli.serving",
    "recallog_service.cli.keys",
    "recallog_service.cli.showing_settings",
    "recallog_service.cli.mcp",
    "recallog_service.cli.schema",
)


def modules() -> Iterator[str]:
    """The modules that register commands, in the order in which `recallog --help` lists these."""
    yield from _OF_KERNEL
    yield from (each.__name__ for each in import_parts("recallog_service", "commands"))


def commands() -> Iterator[tuple[str, Any]]:
    """All commands and groups, imported, each with its module."""
    for module in modules():
        for name in derived.names() if module == DERIVED else [None]:
            for command in typer.main.get_group(commands_of(module, name)).commands.values():
                yield module, command


def generated() -> str:
    """The text of the generated file."""
    found = {}
    for module, command in commands():
        found[command.name] = {"module": module, "panel": command.rich_help_panel, "summary": _summary(command)}
        if names := list(getattr(command, "commands", ())):
            found[command.name]["commands"] = names
    return json.dumps(found, indent=2, ensure_ascii=False) + "\n"


def _summary(command: Any) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split()).replace("\\[", "[")
