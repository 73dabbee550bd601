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

from recallog_projections.index.embedders.runtime import ONE_THREAD
from recallog_schemas.visible import visible
from recallog_service.cli import encodings
from recallog_streams.collector import collect_rarely

_CLIENT = "recallog.kafka"

_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""An error of the command line. Typer has its class from click, or of its own in later versions."""

SUMMARIES = Path(__file__).with_name("summaries.json")
"""The commands in the order in which the help lists them, each with its module and its summary."""

DERIVED = "recallog_service.cli.derived"
"""The module of the commands that are derived from operations."""


class LazyCommand(TyperCommand):
    """A command of which only name and summary are known until it is called."""

    def __init__(self, name: str, summary: str, commands: Callable[[], typer.Typer]) -> None:
        super().__init__(name, help=summary)
        self._commands = commands

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> Any:
        """The context of the real command, which takes the place of this one: a group runs the command of a context."""
        commands: TyperGroup = typer.main.get_group(self._commands())
        return commands.commands[str(self.name)].make_context(info_name, args, *rest, **extra)


class LazyGroup(TyperGroup):
    """All commands, none of them imported: those of Recallog, and of installed packages.

    An error of the command line quotes what was typed or pasted, with its hidden characters written out.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, command in json.loads(SUMMARIES.read_text(encoding="utf-8")).items():
            self.add_command(LazyCommand(name, command["summary"], partial(commands_of, command["module"], name)))

    def list_commands(self, ctx: Any) -> list[str]:
        from recallog_service.cli import installed  # it looks at all installed packages

        return [*super().list_commands(ctx), *installed.names()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Raises a usage error for a command of a package of ours that is not installed."""
        if cmd_name in self.commands:
            return self.commands[cmd_name]
        from recallog_service.cli import installed

        summary = installed.summary_of(cmd_name)
        if summary is not None:
            return LazyCommand(cmd_name, summary, partial(installed.commands_of, cmd_name))
        if advice := installed.advice_on(cmd_name):
            ctx.fail(advice)
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
        error.message = visible(error.message)
        raise


def commands_of(module: str, name: str | None = None) -> typer.Typer:
    """The commands of a module, imported; of the derived ones only `name`."""
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

    What a client logs of its attempts to reconnect is left out: it says nothing that the error at the end does not.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and record.name != _CLIENT:
            from recallog_schemas.views import continued  # not before there is something to warn of

            sys.stderr.write(f"warning: {visible(continued(record.getMessage()))}\n")


def main() -> None:
    """Entry point of the `recallog` command. Exit codes: 0 done, 1 data or check failed, 2 wrong use, 3 unreachable."""
    collect_rarely()  # before modules are imported: that makes many objects, and no garbage
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
            gc.freeze()  # the last collections of the interpreter look at all objects: a fifth of a command's time
    except OSError as error:
        _end_without_output(error)


def _end_without_output(error: OSError) -> NoReturn:
    """End the command after a file or its output could not be written: quietly if nobody reads the output any more."""
    quiet = isinstance(error, BrokenPipeError)
    if not quiet:
        what = f"{error.filename} cannot be written or read" if error.filename else "the output cannot be written"
        with suppress(OSError):
            sys.stderr.write(f"error {visible(what)}: {error.strerror or error}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in its buffer
    sys.exit(1 if quiet else 3)
