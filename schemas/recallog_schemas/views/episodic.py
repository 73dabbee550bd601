"""Recent events of an agent, and pages of its timeline."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, Remembered, lines


class EpisodicView(ComputedAt):
    """The newest events that an agent may see, oldest first."""

    space: str
    agent: str
    window: int
    memories: tuple[Remembered, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, one a line; `(no prior memory)` where there are none."""
        return lines(self.memories) or "(no prior memory)"


class TimelinePage(ComputedAt):
    """A page of the events that an agent may see, oldest first. Pages lead from the newest events to older ones."""

    space: str
    agent: str
    items: tuple[Remembered, ...]
    older: Position | None
    """Pass it as `before` for the next page; None on the last one."""
    kept_from: Position | None
    """On the last page: the views keep what the agent may see from here on, older events are in the ledger alone.
    None where nothing was dropped, and on other pages."""
