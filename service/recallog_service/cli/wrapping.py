"""Lines that fit a number of columns, without the rest of rich: its console takes a tenth of a command's start."""

import re

from rich.cells import cell_len, chop_cells, set_cell_size

_WORD = re.compile(r"\s+\S*\s*|\S+\s*")  # linear also for a line of spaces


def wrap_line(line: str, width: int) -> list[str]:
    """A line as lines of at most `width` columns, broken at spaces where possible."""
    found, current = [], ""
    for word in _WORD.findall(line.expandtabs()):
        if cell_len((current + word).rstrip()) <= width:
            current += word
            continue
        if current:
            found.append(current.rstrip())
        *parts, last = chop_cells(word.rstrip(), width) or [word.rstrip()]  # a word without width
        found += parts
        current = last + word[len(word.rstrip()) :]
    return [*found, current.rstrip()]


def cut(line: str, width: int) -> str:
    """The beginning of a line, at most `width` columns wide."""
    return set_cell_size(line, min(width, cell_len(line))).rstrip()
