"""`settings`: prints each setting, its value and where the value comes from."""

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import typer
from pydantic import SecretStr

from recallog import Settings, other_settings
from recallog.settings import variable_of
from recallog_schemas.errors import RecallogError
from recallog_service.cli import console, panels, terminal
from recallog_service.cli.terminal import Home, Json

_PASSWORD = re.compile(r"(?<=://).*@", re.DOTALL)
"""Up to the last @: a password that is not percent-encoded may contain any character."""
_SECRET_OPTION = re.compile(r"(?i)([?&][^=&#]*(?:key|secret|token|password)[^=&#]*=)[^&#]+")
_HIDDEN = "***"
_OF_OTHERS = ("RECALLOG_KEY", "RECALLOG_SERVER_", "RECALLOG_TEST_")
"""Variables that are not settings: clients of a server, its container and the tests read them."""


def register(app: typer.Typer) -> None:
    app.command("settings", epilog="Example: recallog settings --changed", rich_help_panel=panels.START)(
        settings_command
    )


def settings_command(
    changed: bool = typer.Option(False, "--changed", help="Only settings that differ from the default."),
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print each setting, its value, and where the value comes from.

    Secrets are hidden. docs/reference/settings.md describes each setting. A variable
    RECALLOG_… that is not a setting is reported with the name that was probably
    meant; the exit code is then 1.
    """
    try:
        rows = [row for row in _rows(home) if row["source"] != "default" or not changed]
    except RecallogError as error:
        terminal.fail(error, as_json=as_json)
    unknown = _unknown()
    if as_json:
        terminal.print_json({"settings": rows, "unknown": unknown})
    else:
        console.print_table(("setting", "value", "from"), [tuple(row.values()) for row in rows])
        for name, meant in unknown.items():
            terminal.note(f"{name} is not a setting" + (f"; did you mean {meant}?" if meant else ""))
    raise typer.Exit(1 if unknown else 0)


def _rows(home: Any) -> list[dict[str, Any]]:
    settings = terminal.settings(home)
    given = home is not None and str(home) != os.environ.get(variable_of("home"))
    return [
        {"setting": name, "value": _show_value(getattr(settings, name)), "source": _source(name, given=given)}
        for name in type(settings).model_fields
    ]


def _source(name: str, *, given: bool) -> str:
    if name == "home" and given:
        return "--home"
    variable, file_variable = _variables(name)
    if file_variable in os.environ:
        return file_variable
    if variable in {each.upper() for each in os.environ}:
        return variable
    return other_settings.VARIABLES[name] if name in other_settings.read(Settings.list_set()) else "default"


def _variables(name: str) -> tuple[str, str]:
    """Those that give a setting: with its value, and with the name of a file that has it."""
    return variable_of(name), f"{variable_of(name)}_FILE"


def _show_value(value: Any) -> str:
    if isinstance(value, SecretStr):
        return _HIDDEN
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return _SECRET_OPTION.sub(rf"\1{_HIDDEN}", _PASSWORD.sub(f"{_HIDDEN}@", text))


def _unknown() -> Mapping[str, str | None]:
    """The variables that no program reads, each with the setting that was probably meant."""
    known = [variable for name in Settings.model_fields for variable in _variables(name)]
    named = sorted(name for name in os.environ if name.startswith("RECALLOG_"))
    return {
        name: next(iter(get_close_matches(name, known, 1)), None)
        for name in named
        if name not in known and not name.startswith(_OF_OTHERS)
    }
