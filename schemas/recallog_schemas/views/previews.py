"""Progressive disclosure: previews, neighbours of an event, whole events."""

from datetime import datetime

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, Remembered, View, lines, one_line
from recallog_schemas.views.recall import Recalled


class Preview(View):
    """One event that an agent may see, in short. `Memory.entries` gives the whole of it for its `id`."""

    id: str
    position: Position
    at: datetime
    agent: str
    kind: str
    session: str | None
    turn: int
    preview: str
    """How its text begins; "..." at the end where it goes on."""
    tokens: int
    """An estimate of what the whole text costs a model: four characters each, rounded up; 0 where it is empty."""

    def line(self) -> str:
        """The preview as prompts show memories: `[turn 003][kind] text`."""
        return f"[turn {self.turn:03d}][{self.kind}] {one_line(self.preview)}"


class SearchHit(Preview):
    """A memory that answers a question, in short."""

    score: float
    """Rounded to four decimals; comparable within one answer only."""


class SearchPage(Recalled):
    """What an agent remembers about a question, in short, best first."""

    limit: int
    """How many hits were asked for, within 1 to 100."""
    hits: tuple[SearchHit, ...]

    def format(self) -> str:
        """The previews, best first, one a line; "" where there are none."""
        return "\n".join(hit.line() for hit in self.hits)


class AroundView(ComputedAt):
    """One event in short, and what the agent may see just before and after it, oldest first."""

    space: str
    agent: str
    before: tuple[Preview, ...]
    anchor: Preview
    after: tuple[Preview, ...]

    @property
    def events(self) -> tuple[Preview, ...]:
        """All of them, in order."""
        return (*self.before, self.anchor, *self.after)

    def format(self) -> str:
        """The previews, one a line."""
        return "\n".join(event.line() for event in self.events)


class EntriesView(ComputedAt):
    """The events of some ids that an agent may see, in the order in which they were asked for."""

    space: str
    agent: str
    entries: tuple[Remembered, ...]

    def format(self) -> str:
        """The events as a prompt shows them, one a line; "" where there are none."""
        return lines(self.entries)
