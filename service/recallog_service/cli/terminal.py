"""Common parts of all commands: options, running, progress bars, output and errors."""

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TextIO, TypeVar

import typer
from pydantic import BaseModel

from recallog import Memory, Settings, layout
from recallog_schemas.errors import (
    IdConflict,
    IndexUnavailable,
    InvalidArgument,
    InvalidInput,
    RecallogError,
    StorageUnavailable,
)
from recallog_schemas.validation import time_of
from recallog_schemas.visible import visible, visible_json
from recallog_service.cli.encodings import json_for
from recallog_service.telemetry import export_spans

if TYPE_CHECKING:
    from recallog_service.cli.progress_bar import ProgressBar

Result = TypeVar("Result")

_POLL_SECONDS = 0.2
_WIDTH_OF_A_PIPE = 100

Home = Annotated[
    Path | None, typer.Option("--home", envvar="RECALLOG_HOME", help="Folder of the memory.", show_default=".recallog")
]
Space = Annotated[str, typer.Argument(help="Name of the space.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        envvar="RECALLOG_INDEX",
        help="embedded, off, or the URL of a Qdrant server.",
        show_default="embedded; off on a cluster",
    ),
]
Projections = Annotated[
    list[str] | None,
    typer.Option(
        "--projections",
        metavar="MODULE:NAME",
        help="Custom projections in Python. Repeatable.",
        show_default="RECALLOG_PROJECTIONS",
    ),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"], typer.Option(help="Log lines of this level and above.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the index contains all events.")]

LINE_SECONDS = 10.0
"""Seconds between two lines of progress if stderr is not a terminal."""


def run(work: Callable[[], Coroutine[Any, Any, Result]], *, as_json: bool = False, as_log: bool = False) -> Result:
    """The result of `work`. A `RecallogError` is printed, or with `as_log` logged if nobody is at the terminal, and
    ends the command with its exit code."""
    try:
        return asyncio.run(work())
    except RecallogError as error:
        fail(error, as_json=as_json, as_log=as_log)
    except BrokenPipeError:
        raise  # the reader has closed the output: typer ends the command without a message
    except OSError as error:
        why = f"the output cannot be written: {error.strerror or error}"
        fail(StorageUnavailable(why), as_json=as_json, as_log=as_log)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def ask(question: Callable[[Memory], Awaitable[Result]], home: Path | None, *, as_json: bool = False) -> Result:
    """The answer of the memory in `home` to one query. Errors are handled as by `run`."""

    async def work() -> Result:
        with open_memory(home) as (memory, _):
            async with memory:
                return await question(memory)

    return run(work, as_json=as_json)


def run_until_stopped(work: Callable[[], Coroutine[Any, Any, None]], *, as_json: bool = False) -> None:
    """Run a command that ends by Ctrl-C with exit code 130, or by SIGTERM with exit code 0."""

    async def stoppable() -> None:
        task = asyncio.ensure_future(work())
        with suppress(NotImplementedError):  # Windows does not support it
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if this is None or this.cancelling():  # Ctrl-C cancels this task too, SIGTERM only the inner one
                raise

    run(stoppable, as_json=as_json)


def fail(error: RecallogError, *, as_json: bool = False, as_log: bool = False, code: int | None = None) -> NoReturn:
    """Print the error to stderr and end the command with its code. With `as_log` it is a line of the log, unless
    stderr is a terminal."""
    if as_json:
        where: dict[str, Any] = {}
        if isinstance(error, InvalidInput):
            where = {"path": error.path, "rule": error.rule}
        elif isinstance(error, IdConflict):
            where = {"path": error.path, "position": error.position}
        sys.stderr.write(json.dumps({"error": type(error).__name__, "message": str(error), **where}) + "\n")
    elif as_log and not sys.stderr.isatty():
        logging.getLogger("recallog").critical("%s", error)
    else:
        from recallog_service.cli import console

        with suppress(OSError):  # if stderr cannot be written, the exit code must suffice
            console.print_error(str(error))
    raise typer.Exit(error.exit_code if code is None else code)


def join_names(names: Sequence[str] | None) -> str | None:
    """The names of a repeated option as the value of a setting; None if there are none."""
    return ",".join(names) if names else None


def settings(home: Path | None, **more: Any) -> Settings:
    """The settings of the environment, overridden by the options that were given."""
    return Settings.valid(**{name: value for name, value in {"home": home, **more}.items() if value is not None})


@contextmanager
def open_memory(
    home: Path | None,
    label: str = "building views",
    *,
    facade: type[Memory] = Memory,
    missing: Literal["refuse", "create", "empty"] = "refuse",
    **more: Any,
) -> Iterator[tuple[Memory, Callable[[int, int], None]]]:
    """A memory with a progress bar for building views, and the function that advances the bar.

    `missing` says what to do if the folder has no ledger: raise `InvalidArgument`, let the memory create it, or answer
    from an empty memory without creating anything. `more` has settings from other options.
    """
    found = settings(home, **more)
    folder = folder_without_ledger(found) if missing != "create" else None
    if folder is not None and missing == "refuse":
        problem = f"there is no memory in {folder}; write events with recallog publish or recallog ingest"
        if (folder / layout.views_file()).exists():
            problem = f"{folder / layout.LEDGER} is missing, and views of it are there; put it back from your backup"
        problem += ", or name the folder of another memory with --home or RECALLOG_HOME"
        raise InvalidArgument(problem, path="--home", rule="missing")
    with export_spans(found, "recallog"), bar(label) as advance:
        yield facade.open(found, progress=advance) if folder is None else facade.in_memory(), advance


async def until_it_exists(home: Path | None) -> None:
    """Wait until the folder has a ledger. A command that follows a memory may start before the first event."""
    found = settings(home)
    folder = folder_without_ledger(found)
    if folder is not None:
        note(f"there is no memory in {folder} yet; waiting")
    while folder_without_ledger(found) is not None:
        await asyncio.sleep(_POLL_SECONDS)


def folder_without_ledger(found: Settings) -> Path | None:
    """The folder of the ledger if it lacks one; None if it has one, or if the ledger is not in a folder."""
    if found.ledger is not None and "://" in found.ledger:
        return None
    folder = found.home if found.ledger is None else Path(found.ledger)
    try:
        (folder / layout.LEDGER).stat()
    except FileNotFoundError:
        return folder
    except OSError:
        return None  # the ledger reports it
    return None


async def start_index(memory: Memory) -> str | None:
    """Start indexing in the background, and return a message; None if the index is off or on a server."""
    try:
        started = await memory.start_index()
    except IndexUnavailable as error:
        return f"not indexed yet: {error}"
    return "indexing in the background for recall; recallog status shows how far it is" if started else None


@contextmanager
def bar(label: str, unit: str = "events") -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr, which appears at the first call with (done, total).

    Text printed meanwhile appears above the bar. If stderr is not a terminal, a line is printed every 10 seconds
    instead. A total equal to `done` means that the total is unknown.
    """
    if not sys.stderr.isatty():
        yield _ProgressLines(label, unit).update
        return
    shown: ProgressBar | None = None

    def advance(done: int, total: int) -> None:
        nonlocal shown
        if shown is None:
            from recallog_service.cli.progress_bar import ProgressBar

            shown = ProgressBar(label, unit)
        shown.update(done, total)

    try:
        yield advance
    finally:
        if shown is not None:
            shown.stop()


class _ProgressLines:
    """Prints the progress of long work: `indexing: 31 %, 1,240 of 4,000 events, 85 events/s`."""

    def __init__(self, label: str, unit: str) -> None:
        self._label = label
        self._unit = unit
        self._first: tuple[float, int] | None = None
        """When the work was first reported, and how much was done then."""
        self._printed_at = 0.0

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if self._first is None or done < self._first[1]:  # other work has begun, for example indexing
            self._first, self._printed_at = (now, done), now
        if now - self._printed_at < LINE_SECONDS:
            return
        self._printed_at = now
        begun_at, done_before = self._first
        rate = (done - done_before) / max(now - begun_at, 1e-9)
        counts = f"{100 * done // total} %, {done:,} of {total:,}" if done < total else f"{done:,}"
        note(f"{self._label}: {counts} {self._unit}, {rate:,.0f} {self._unit}/s")


def print_json(answer: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """Print one JSON document."""
    if isinstance(answer, BaseModel):
        text = answer.model_dump_json()
    elif isinstance(answer, dict):
        text = json.dumps(answer)
    else:
        text = "[" + ",".join(item.model_dump_json() for item in answer) + "]"
    print_json_text(text)


def print_json_text(text: str) -> None:
    """Print one JSON document on a line and flush it.

    Control characters and characters that the terminal cannot show are escaped; the parsed value is the same.
    """
    sys.stdout.write(json_for(sys.stdout, visible_json(text)) + "\n")
    sys.stdout.flush()


def print_lines(text: str, style: str = "") -> None:
    """Print text without markup and with hidden characters escaped."""
    _print(text, style, sys.stdout)


def first_lines(text: str, count: int, indent: int) -> list[str]:
    """The first `count` lines of `text` that are not blank, cut to the width of the terminal less `indent` columns.

    The last line ends in "…" if text is left out. In a pipe, lines are at most 100 columns wide.
    """
    from recallog_service.cli import wrapping

    width = max(1, (shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_OF_A_PIPE) - indent)
    found: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        found += wrapping.wrap_line(line[: (count + 1) * width], width)
        if len(found) > count:
            return [*found[: count - 1], wrapping.cut(found[count - 1], width - 1) + "…"]
    return found


def print_exactly(text: str) -> None:
    """Print text unchanged to a pipe or a file, and with hidden characters escaped to a terminal."""
    if sys.stdout.isatty():
        print_lines(text)
    else:
        sys.stdout.write(text + "\n")


def note(text: str, style: str = "dim") -> None:
    """Print a remark on stderr."""
    _print(text, style, sys.stderr)


def _print(text: str, style: str, stream: TextIO) -> None:
    """Print text; rich is imported only for a style on a terminal."""
    if style and (stream.isatty() or os.environ.get("FORCE_COLOR")):
        from recallog_service.cli import console

        target = console.out if stream is sys.stdout else console.err
        target.print(text, markup=False, style=style)
    else:
        stream.write(visible(text) + "\n")
        stream.flush()


def moment(text: str, option: str) -> datetime:
    """Parse the time of an option. Raises `InvalidArgument` if it is not a time, or has no zone."""
    try:
        return time_of(text)
    except ValueError as error:
        raise InvalidArgument(f"{option}: {error}", path=option) from None
