"""Commands of installed packages: entry points `recallog.commands`, and operations of memory models."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from recallog_service.cli import panels

_GROUP, _MODELS = "recallog.commands", "recallog.models"
_PACKAGES = {
    "demo": ("recallog-demo", panels.START, ""),
    "eval": ("recallog-eval", panels.OPERATE, ""),
    "hook": ("recallog-agents", panels.SERVE, "Run the hook of a coding agent."),
    "import": ("recallog-formats", panels.START, "Take over the store of another memory."),
    "install": ("recallog-agents", panels.START, "Let a coding agent remember, by hooks and an MCP server."),
    "uninstall": ("recallog-agents", panels.START, "Undo `recallog install`."),
}
"""Recallog's own packages by command, with its panel, and with its summary if a package has several commands."""


def names() -> list[str]:
    return sorted({*entry_points(group=_GROUP).names, *_of_models()})


def _of_models() -> list[str]:
    """The commands that are derived from the operations of installed memory models."""
    if not entry_points(group=_MODELS):
        return []
    from recallog import model
    from recallog_service.cli import derived

    parts = model.facades([each for each in model.load_installed() if not each.is_built_in])
    words = {line.words[0] for part in parts.values() for line in derived.lines(part)}
    return sorted(words)


def summary_of(name: str) -> str | None:
    """The summary of a command in `recallog --help`: the one given here, else the summary of its distribution. The
    command is not imported.

    None if no installed package has the command.
    """
    found: EntryPoint | None = next(iter(entry_points(group=_GROUP, name=name)), None)
    if found is None:
        return _summary_of_model(name)
    if name in _PACKAGES and _PACKAGES[name][2]:
        return _PACKAGES[name][2]
    metadata = None if found.dist is None else found.dist.metadata
    return metadata["Summary"] if metadata and "Summary" in metadata else ""


def _summary_of_model(name: str) -> str | None:
    if name not in _of_models():
        return None
    from recallog_service.cli import derived

    return derived.summary_of(name)


def panel_of(name: str) -> str:
    """The panel of a command: the panel of its operation; for a third-party package, the panel of operators.

    An entry point cannot name a panel, and the command is not imported."""
    if name in _of_models():
        from recallog_service.cli import derived

        return derived.panel_of(name)
    return _PACKAGES[name][1] if name in _PACKAGES else panels.OPERATE


def advice_on(name: str) -> str | None:
    """How to install a missing command; None if none of Recallog's packages has it."""
    from recallog_schemas.extras import how_to_install

    package, *_ = _PACKAGES.get(name, (None,))
    return package and f"recallog {name} is a command of {package}. {how_to_install(package)}"


def commands_of(name: str) -> typer.Typer:
    """The imported command. If the import fails, the error is printed and the process ends."""
    from recallog_projections import plugins
    from recallog_schemas.errors import SettingsError
    from recallog_service.cli import terminal

    commands = typer.Typer(rich_markup_mode="rich")
    if name in _of_models():
        from recallog_service.cli import derived

        derived.register(commands, name)
        return commands
    try:
        register: Any = plugins.load(plugins.COMMANDS, name)
    except SettingsError as error:
        terminal.fail(error)
    register(commands)
    return commands
