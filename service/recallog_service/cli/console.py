"""Output with colours, tables and progress bars. Only what prints these imports rich."""

from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from recallog_service.cli.control_characters import harmless

_WIDTH_OF_A_FILE = 10_000

# Without emoji: texts are printed unchanged, also ":apple:".
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_error(message: str) -> None:
    """Print an error to stderr."""
    err.print(Text.assemble(("error", "bold red"), " ", harmless(message)))


class ProgressBar:
    """A progress bar on a terminal, on stderr, shown until `stop`."""

    def __init__(self, label: str, unit: str, total: int) -> None:
        texts = (TextColumn("{task.description}"), TextColumn(unit))
        columns = (texts[0], BarColumn(), MofNCompleteColumn(), texts[1], TimeRemainingColumn())
        self._progress = Progress(*columns, console=err, transient=True)
        self._progress.start()
        self._task = self._progress.add_task(label, total=total)

    def update(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def stop(self) -> None:
        self._progress.stop()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None = None) -> None:
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(harmless(str(cell))) for cell in row))
    # In a pipe or a file a table is as wide as its rows; only a terminal limits its width.
    (out if out.is_terminal else Console(width=_WIDTH_OF_A_FILE, highlight=False, emoji=False)).print(table)
