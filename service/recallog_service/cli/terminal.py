"""Common parts of all commands: options, running, progress bars, output and errors."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from pydantic import BaseModel, ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recallog import Memory, Position, Settings
from recallog.reading.time_travel import AsOf
from recallog_schemas.errors import InvalidEvent, RecallogError, StorageUnavailable

Result = TypeVar("Result")

Home = Annotated[
    Path | None,
    typer.Option("--home", envvar="RECALLOG_HOME", help="Folder of the memory.", show_default=".recallog"),
]
Space = Annotated[str, typer.Argument(help="Name of the space.")]
Agent = Annotated[str, typer.Argument(help="Name of the agent.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
At = Annotated[str | None, typer.Option("--as-of", help="Answer from the past: a position (0:41) or a time.")]

_WIDTH_OF_A_FILE = 10_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# Without emoji: texts are printed unchanged, also ":apple:".
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def run(work: Callable[[], Coroutine[Any, Any, Result]], *, as_json: bool = False) -> Result:
    """The result of `work`. A `RecallogError` is printed and ends the command with its exit code."""
    try:
        return asyncio.run(work())
    except RecallogError as error:
        fail(error, as_json=as_json)
    except ValidationError as error:
        first = error.errors()[0]
        name = f"RECALLOG_{first['loc'][0]}".upper()
        fail(InvalidEvent(f"{name}: {first['msg']}"), as_json=as_json, code=2)
    except BrokenPipeError:
        raise  # the reader of the output has closed it: typer ends the command without a message
    except OSError as error:
        fail(StorageUnavailable(f"the output cannot be written: {error.strerror or error}"), as_json=as_json)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def ask(question: Callable[[Memory], Awaitable[Result]], home: Path | None, *, as_json: bool = False) -> Result:
    """The answer of the memory in `home` to one query; errors as in `run`."""

    async def work() -> Result:
        with opened(home) as (memory, _):
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


def fail(error: RecallogError, *, as_json: bool = False, code: int | None = None) -> NoReturn:
    """Print the error to stderr and end the command with its code."""
    if as_json:
        sys.stderr.write(json.dumps({"error": type(error).__name__, "message": str(error)}) + "\n")
    else:
        err.print(Text.assemble(("error", "bold red"), " ", harmless(str(error))))
    raise typer.Exit(error.exit_code if code is None else code)


def settings(home: Path | None, **more: Any) -> Settings:
    """The settings of the environment, overridden by the options that were given."""
    return Settings(**{name: value for name, value in {"home": home, **more}.items() if value is not None})


@contextmanager
def opened(
    home: Path | None, label: str = "building views", **more: Any
) -> Iterator[tuple[Memory, Callable[[int, int], None]]]:
    """A memory with a progress bar for building views, and the function that advances the bar.

    `more` are settings from other options.
    """
    with bar(label) as advance:
        yield Memory.open(settings(home, **more), progress=advance), advance


@contextmanager
def bar(label: str, unit: str = "events") -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr; it appears with the first call of (done, total), and only on a terminal."""
    texts = (TextColumn("{task.description}"), TextColumn(unit))
    columns = (texts[0], BarColumn(), MofNCompleteColumn(), texts[1], TimeRemainingColumn())
    progress = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    task = None

    def advance(done: int, total: int) -> None:
        nonlocal task
        if task is None:
            progress.start()
            task = progress.add_task(label, total=total)
        progress.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        progress.stop()


def print_json(answer: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """Print one JSON document."""
    if isinstance(answer, BaseModel):
        text = answer.model_dump_json()
    elif isinstance(answer, dict):
        text = json.dumps(answer)
    else:
        text = "[" + ",".join(item.model_dump_json() for item in answer) + "]"
    sys.stdout.write(text + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(harmless(str(cell))) for cell in row))
    # In a pipe or a file a table is as wide as its rows; only a terminal limits its width.
    (out if out.is_terminal else Console(width=_WIDTH_OF_A_FILE, highlight=False, emoji=False)).print(table)


def print_lines(text: str, style: str = "") -> None:
    """Print text without markup, and with control characters written out."""
    out.print(harmless(text), markup=False, style=style)


def print_exactly(text: str) -> None:
    """Print text unchanged to a pipe or a file, and with control characters written out to a terminal."""
    if out.is_terminal:
        print_lines(text)
    else:
        sys.stdout.write(text + "\n")


def print_json_line(document: dict[str, Any]) -> None:
    """Print one JSON document on a line and flush it."""
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Print a remark on stderr."""
    err.print(harmless(text), markup=False, style="dim")


def harmless(text: str) -> str:
    """The text with its control characters written out, for example "\\\\x1b"."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def as_of(text: str | None) -> AsOf | None:
    """Parse a position or a time. Raises `OutOfRange` or `InvalidEvent`."""
    if text is None:
        return None
    return Position.parse(text) if text.replace(":", "").isdecimal() else moment(text)


def moment(text: str) -> datetime:
    """Parse an ISO 8601 time; without a zone it is UTC. Raises `InvalidEvent`."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidEvent(f"{text!r} is not a time; write it as 2026-03-01T12:00:00Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
