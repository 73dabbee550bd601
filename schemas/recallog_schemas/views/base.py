"""The base of all views, and remembered events."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from recallog_schemas.event import Event, Position


class View(BaseModel):
    """Base of all answers: immutable, and JSON by `model_dump_json()`."""

    model_config = ConfigDict(frozen=True)


class ComputedAt(View):
    """Which copy of the views answered, and the last position it had decided (None: nothing yet)."""

    generation: str
    checkpoint: Position | None


class Remembered(View):
    """One event that an agent may see, where it lies, and what it says."""

    position: Position
    event: Event
    text: str

    def line(self) -> str:
        """The event as prompts show it, in the form of the ledger-view memory document: `[turn 003][kind] text`."""
        return f"[turn {self.event.turn:03d}][{self.event.kind}] {one_line(self.text)}"


def lines(memories: Iterable[Remembered]) -> str:
    return "\n".join(memory.line() for memory in memories)


def one_line(text: str) -> str:
    """`text` without line breaks: in a prompt, what somebody said must not look like a section of its own."""
    return " ".join(text.splitlines())
