"""Output with colours, and tables. Only commands that print these import rich."""

from collections.abc import Collection, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from recallog_schemas.views import one_line
from recallog_schemas.visible import visible

_WIDTH_OF_A_FILE = 10_000


class _VisibleText(Console):
    """A console that escapes the hidden characters of every text."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text), **options)


# Without emoji: texts are printed unchanged, also ":apple:".
out = _VisibleText(highlight=False, soft_wrap=True, emoji=False)
err = _VisibleText(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def print_error(message: str) -> None:
    """Print an error to stderr."""
    print_styled(("error", "bold red"), (f" {message}", ""), console=err)


def print_styled(*parts: tuple[str, str], console: Console = out) -> None:
    """Print a line of texts, each with its style."""
    console.print(Text.assemble(*((visible(text), style) for text, style in parts)))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Collection[str] = ()) -> None:
    """Print rows below the names of their columns. The columns in `numbers` are aligned right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left")
    for row in rows:
        table.add_row(*(Text(visible(one_line(str(cell)))) for cell in row))
    # In a pipe or a file a table is as wide as its rows; only a terminal limits its width.
    (out if out.is_terminal else _VisibleText(width=_WIDTH_OF_A_FILE, highlight=False, emoji=False)).print(table)
