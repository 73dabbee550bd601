"""The base classes of all views, and remembered events."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from recallog_schemas.event import Event, Position


class View(BaseModel):
    """Base of all views: immutable, and serialised to JSON by `model_dump_json()`."""

    model_config = ConfigDict(frozen=True)


class ComputedAt(View):
    """The generation of the views that answered, and the last position it had processed (None: nothing yet)."""

    generation: str
    checkpoint: Position | None


class Remembered(View):
    """One event that an agent may see, with its position and its text."""

    position: Position
    event: Event
    text: str

    def line(self) -> str:
        """The event as one line of a prompt, in the ledger-view memory document's format: `[turn 003][kind] text`."""
        return f"[turn {self.event.turn:03d}][{self.event.kind}] {one_line(self.text)}"


def lines(memories: Iterable[Remembered]) -> str:
    return "\n".join(memory.line() for memory in memories)


def one_line(text: str) -> str:
    """`text` without line breaks: in a prompt, the text of an event must not look like a separate section."""
    return " ".join(text.splitlines())
