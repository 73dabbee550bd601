"""The chunks of a document: parts of its lines that are indexed and found each on its own.

A chunk begins at a heading, and has at most 60 lines and, unless it is one line, 4,000 characters. A longer section is
divided, at an empty line if possible. A heading with nothing below it belongs to the next chunk. Headings are those of
Markdown (`#` to `######`), outside of fenced code; documents whose names say that they are not prose have none.

The indexed text of a chunk begins with a line that says where it is from, the path and the headings above it, so that
`## Retention` of a page about backups is found by both words. The result depends on path and text alone.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from recallog_schemas.models.workspace import limits as workspace_limits

_PROSE = frozenset(("", ".md", ".markdown", ".mdx", ".txt"))
"""The ends of names of documents with headings. In a script or a configuration `#` begins a comment."""
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t](.*))?")
_BLANKS = " \t"
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class DocumentChunk:
    """A part of a document."""

    first: int
    """Its first line; the first one of a document is 1."""
    last: int
    """Its last line."""
    lines: str
    """Its lines, without the last line break."""
    path: str
    """The path of the document."""
    above: tuple[str, ...]
    """The headings above it, outermost first, without those that it contains."""

    @property
    def text(self) -> str:
        """What is indexed: where it is from, as one line, and its lines."""
        title = ": ".join((self.path, *self.above)).replace("\n", " ")
        return f"{title}\n{self.lines}"


@dataclass(slots=True)
class _Section:
    """Lines from one heading to the next."""

    first: int
    above: tuple[str, ...]
    lines: list[str] = field(default_factory=list)
    headings_only: bool = True
    """Whether it has nothing but headings and empty lines so far."""


def chunks(path: str, text: str) -> list[DocumentChunk]:
    """The chunks of a document, in order. Lines without words at the ends of chunks belong to none."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    found = list(_sections(lines)) if PurePosixPath(path).suffix.lower() in _PROSE else []
    if not 0 < len(found) <= workspace_limits.DOCUMENT_HEADINGS_MAX:
        found = [_Section(1, (), lines)]
    return [chunk for section in found for chunk in _of_section(path, section)]


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    above: list[tuple[int, str]] = []
    """The headings that the present line is below: their levels and texts."""
    section = _Section(1, ())
    fence = ""
    for number, line in enumerate(lines, 1):
        heading = None if fence else _HEADING.fullmatch(line)
        if heading is not None:
            level = len(heading[1])
            above = [each for each in above if each[0] < level]
            if not section.headings_only:
                yield section
                section = _Section(number, tuple(name for _, name in above))
            above.append((level, _title(heading[2] or "")))
        elif line.strip():
            section.headings_only = False
        section.lines.append(line)
        fence = _fence_after(line, fence)
    yield section


def _title(text: str) -> str:
    """The text of a heading, without the `#` that may close it. No regular expression: blanks in the middle of a long
    line would be tried in all combinations."""
    text = text.strip(_BLANKS)
    before = text.rstrip("#")
    return (before if before.endswith((" ", "\t")) else text).strip()


def _fence_after(line: str, fence: str) -> str:
    """The fence of the code that the next line is in; "" outside of code."""
    found = _FENCE.fullmatch(line)
    if found is None:
        return fence
    if not fence:
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    closes = found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip()
    return "" if closes else fence


def _of_section(path: str, section: _Section) -> Iterator[DocumentChunk]:
    start, lines = 0, section.lines
    while start < len(lines):
        end = _end(lines, start)
        first, last = start, end
        while first < last and not lines[first].strip():
            first += 1
        while last > first and not lines[last - 1].strip():
            last -= 1
        if first < last:
            yield DocumentChunk(
                section.first + first, section.first + last - 1, "\n".join(lines[first:last]), path, section.above
            )
        start = end


def _end(lines: Sequence[str], start: int) -> int:
    """Where the chunk from `start` on ends: after the last empty line of its second half, else where it is full."""
    end, chars = start, 0
    while end < len(lines) and end - start < workspace_limits.DOCUMENT_CHUNK_LINES:
        chars += len(lines[end]) + 1
        if chars > workspace_limits.DOCUMENT_CHUNK_CHARS and end > start:
            break
        end += 1
    if end == len(lines):
        return end
    cuts = (place for place in range(end, start + (end - start) // 2, -1) if not lines[place - 1].strip())
    return next(cuts, end)
