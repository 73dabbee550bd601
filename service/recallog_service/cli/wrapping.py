"""Wraps lines to a number of columns without importing rich's console, which takes a tenth of a command's start."""

import re

from rich.cells import cell_len, chop_cells, set_cell_size

_WORD = re.compile(r"\s+\S*\s*|\S+\s*")  # linear even for a line of spaces


def wrap_line(line: str, width: int) -> list[str]:
    """Split a line into lines of at most `width` columns, at spaces where possible."""
    found, current = [], ""
    for word in _WORD.findall(line.expandtabs()):
        if cell_len((current + word).rstrip()) <= width:
            current += word
            continue
        if current:
            found.append(current.rstrip())
        *parts, last = chop_cells(word.rstrip(), width) or [word.rstrip()]  # zero-width characters only
        found += parts
        current = last + word[len(word.rstrip()) :]
    return [*found, current.rstrip()]


def cut(line: str, width: int) -> str:
    """The beginning of a line, at most `width` columns wide."""
    return set_cell_size(line, min(width, cell_len(line))).rstrip()
