"""The common parts of the commands of this package: the files that they read, and the memories that they open."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from recallog import InvalidEvent, Settings
from recallog_eval.locomo_questions import Question

Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of LoCoMo conversations with questions.")]
Against = Annotated[Path | None, typer.Option(help="File of an earlier --out, compared question by question.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Number of questions of each file, spread evenly over it.")]
Index = Annotated[
    str | None, typer.Option(help="embedded, off, or the URL of a Qdrant server.", show_default="RECALLOG_INDEX")
]


def read_file(file: Path) -> bytes:
    """The content of a file of the command line. Raises `BadParameter`."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}", param_hint="FILE") from None


def check_out(out: Path | None) -> None:
    """Raise `BadParameter` if the folder of a result file does not exist."""
    if out is not None and not out.absolute().parent.is_dir():
        raise typer.BadParameter(f"the folder {out.absolute().parent} does not exist", param_hint="--out")


def spread(name: str, questions: Sequence[Question], limit: int | None) -> tuple[Question, ...]:
    """At most `limit` questions, spread evenly, so that a small run covers all conversations and categories."""
    if not questions:
        raise InvalidEvent(f"{name}: no question of the file has evidence that is a turn")
    count = len(questions) if limit is None else min(limit, len(questions))
    return tuple(questions[index * len(questions) // count] for index in range(count))


@contextmanager
def open_folder(home: Path | None) -> Iterator[Path]:
    """`home`, or a temporary folder."""
    if home is not None:
        yield home
        return
    # The index service may write to the folder for a moment after the memory is closed.
    with tempfile.TemporaryDirectory(prefix="recallog-eval-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def settings_of(folder: Path, index: str | None) -> Settings:
    """The settings of a folder, even if the environment names a cluster."""
    given: dict[str, Any] = {
        "home": folder,
        "ledger": None,
        "views": None,
        "index_idle_seconds": 0,
        "count_accesses": False,
    }
    if index is not None:
        given["index"] = index
    return Settings.valid(**given)
