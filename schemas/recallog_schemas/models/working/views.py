"""Working memory: the blocks of an agent, and the scratchpads of its sessions."""

from datetime import datetime
from typing import Any, ClassVar

from recallog_schemas.event import Position
from recallog_schemas.views.base import Bounded, OfAgent, View, indent_lines, one_line, shown_json


class Block(View):
    """One block of working memory, or one key of a scratchpad."""

    label: str
    """Its name."""
    content: Any
    """Its content: a text, or any JSON."""
    version: int
    """The number of its changes, from 1."""
    at: datetime
    """When it last changed, in UTC."""

    def format(self) -> str:
        """The label, the version, and the content indented below it."""
        return f"{one_line(self.label)} (version {self.version})\n{indent_lines(shown_json(self.content))}"


class BlocksView(OfAgent, Bounded):
    """The blocks of an agent, or the keys of a scratchpad, by label.

    If not all fit, the last ones are left out: name the blocks or keys to read.
    """

    list_field: ClassVar[str] = "blocks"
    rest: ClassVar[str] = "name the blocks or keys to read"

    session: str | None
    """The session of the scratchpad; None: the blocks of working memory."""
    blocks: tuple[Block, ...]
    """The blocks, by label."""

    def format(self) -> str:
        """Each block with its content; `(nothing)` if there are none."""
        return "\n".join(block.format() for block in self.blocks) or "(nothing)"


class WorkingText(OfAgent):
    """The blocks of an agent as one text."""

    text: str
    """The text; "" if there are no blocks."""

    def format(self) -> str:
        """The text."""
        return self.text


class WorkingDocument(OfAgent):
    """The blocks of an agent as one JSON document: an object of label and content."""

    text: str
    """The document. One that is longer than the agent's `max_bytes` is cut, and ends in `[...truncated]`."""
    bytes: int
    """The size of the whole document in UTF-8."""
    cut: bool
    """Whether the text is cut. `working.write_document` refuses such a text."""
    sha256: str
    """The SHA-256 of the whole document in hex, for the `base` of `working.write_document`."""

    def format(self) -> str:
        """The document."""
        return self.text


class DocumentChange(View):
    """What writing a document changed."""

    written: tuple[str, ...]
    """The labels of the blocks that were written."""
    deleted: tuple[str, ...]
    """The labels of the blocks that were deleted."""
    position: Position | None
    """The position of the last event. None: the document was the same, and nothing was written."""

    def format(self) -> str:
        """The labels that were written and deleted."""
        lines = [one_line(f"{what}: {', '.join(labels)}") for what, labels in self._changes() if labels]
        return "\n".join(lines) or "unchanged"

    def _changes(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("written", self.written), ("deleted", self.deleted)


class Drained(View):
    """The elements taken from a queue."""

    values: tuple[Any, ...]
    """The elements, oldest first."""
    position: Position | None
    """The position of the event that took them. None: the queue was empty, and nothing was written."""

    def format(self) -> str:
        """One element per line; `(nothing)` if there are none."""
        return "\n".join(one_line(shown_json(value)) for value in self.values) or "(nothing)"
