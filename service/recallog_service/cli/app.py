"""The `recallog` command: one group that imports the module of a command when the command runs or shows its help.

Names and summaries for `recallog --help` come from `summaries.json`, which `make generate` writes.
"""

import gc
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from recallog_projections.native_threads import ONE_THREAD
from recallog_schemas.visible import visible
from recallog_service.cli import encodings, panels
from recallog_streams.collector import collect_rarely

_CLIENTS = "recallog.clients."
"""The prefix of the loggers of clients of servers."""

_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""An error of the command line. Typer takes its class from click; later versions define their own."""

SUMMARIES = Path(__file__).with_name("summaries.json")
"""The commands, each with its module, its panel and its summary, and of a group the names of its commands."""

DERIVED = "recallog_service.cli.derived"
"""The module of the commands that are derived from operations."""


class LazyCommand(TyperCommand):
    """A command whose module is imported when it is called. Until then only its name, panel and summary are known."""

    def __init__(self, name: str, summary: str, panel: str, commands: Callable[[], typer.Typer]) -> None:
        super().__init__(name, help=summary, rich_help_panel=panel)
        self._commands = commands

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """The context of the real command: a group runs the command of the context, so the real command replaces this
        one."""
        commands: TyperGroup = typer.main.get_group(self._commands())
        return commands.commands[str(self.name)].make_context(info_name, args, *rest, **extra)


class LazyGroup(panels.PanelGroup):
    """The commands of Recallog and of installed packages, without importing them.

    An error quotes what was typed or pasted, with hidden characters escaped.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._paths: dict[str, list[str]] = {}
        """The commands of groups by their last word."""
        for name, command in json.loads(SUMMARIES.read_text(encoding="utf-8")).items():
            commands = partial(commands_of, command["module"], name)
            self.add_command(LazyCommand(name, command["summary"], command["panel"], commands))
            for each in command.get("commands", ()):
                self._paths.setdefault(each, []).append(f"{name} {each}")

    def list_commands(self, ctx: Any) -> list[str]:
        from recallog_service.cli import installed  # reads the metadata of all installed packages

        for name in installed.names():
            self.commands.setdefault(name, self.get_command(ctx, name))
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Raises a usage error for a command of a package of ours that is not installed, or of a group."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        from recallog_service.cli import installed

        summary = installed.summary_of(cmd_name)
        if summary is not None:
            commands = partial(installed.commands_of, cmd_name)
            return LazyCommand(cmd_name, summary, installed.panel_of(cmd_name), commands)
        if advice := installed.advice_on(cmd_name):
            ctx.fail(advice)
        if paths := self._paths.get(cmd_name):
            ctx.fail(f"No such command {cmd_name!r}. Did you mean {' or '.join(map(repr, paths))}?")
        return None

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        with _visible_errors():
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _visible_errors():
            return super().invoke(ctx)


@contextmanager
def _visible_errors() -> Iterator[None]:
    try:
        yield
    except _USAGE_ERROR as error:
        if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):  # there is none
            error.message, error.possibilities = panels.message_of_unknown_option(option, error.ctx.command), None
        error.message = visible(error.message.removeprefix("Value error, "))  # of pydantic
        raise


def commands_of(module: str, name: str | None = None) -> typer.Typer:
    """The commands of a module, which is imported; for derived commands only `name`."""
    commands = typer.Typer(rich_markup_mode="rich")
    register = import_module(module).register
    register(commands, name) if module == DERIVED else register(commands)
    return commands


app = typer.Typer(
    name="recallog",
    cls=LazyGroup,
    help="Event-sourced memory for AI agents: one durable ledger, every memory a rebuildable view of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        typer.echo(f"recallog {version('recallog')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The options of the group."""


class Warnings(logging.Handler):
    """Prints the warnings of Recallog to stderr, unless the command has configured logging.

    Messages of clients about reconnecting are left out: the final error contains the same information.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and not (record.name or "").startswith(_CLIENTS):
            from recallog_schemas.views import indent_continuation  # only when there is something to print

            sys.stderr.write(f"warning: {visible(indent_continuation(record.getMessage()))}\n")


def main() -> None:
    """Entry point of the `recallog` command. Exit codes: 0 done, 1 data or check failed, 2 wrong use, 3 unreachable."""
    collect_rarely()  # importing modules creates many objects but no garbage
    logging.getLogger("recallog").addHandler(Warnings(logging.WARNING))
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    # pydantic looks for plugins in all installed packages, which takes a tenth of a command's start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Without a stdout or stderr (`>&-`), the first file that is opened would take its number.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r" if name == "stdin" else "w"))  # noqa: SIM115  # until the end
    encodings.use_utf8()
    encodings.prepare()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
            gc.freeze()  # the interpreter's final collections traverse all objects: a fifth of a command's time
    except OSError as error:
        _end_without_output(error)


def _end_without_output(error: OSError) -> NoReturn:
    """End the command after a failed write of a file or of its output; without a message if the output was closed."""
    quiet = isinstance(error, BrokenPipeError)
    if not quiet:
        what = f"{error.filename} cannot be written or read" if error.filename else "the output cannot be written"
        with suppress(OSError):
            sys.stderr.write(f"error {visible(what)}: {error.strerror or error}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards what is still in the buffer
    sys.exit(1 if quiet else 3)
