"""Recent events of an agent, pages of its timeline, and pages of the history of a space."""

from typing import ClassVar, Literal

from recallog_schemas import kinds
from recallog_schemas.event import Position
from recallog_schemas.views.base import Bounded, OfAgent, OfSpace, Remembered, SourcedEvent, event_lines


class EpisodicView(OfAgent, Bounded):
    """The newest events that an agent may see, oldest first.

    If not all fit, the older ones are left out: get them with `timeline`, `before` the position of the first one.
    """

    list_field: ClassVar[str] = "memories"
    kept: ClassVar[Literal["first", "last"]] = "last"
    rest: ClassVar[str] = "`timeline` has pages of them"

    window: int
    """The number of events that was requested or is set for the agent."""
    memories: tuple[Remembered, ...]
    """The events, oldest first."""

    def format(self) -> str:
        """The memories in the format of a prompt, one per line; `(no prior memory)` if there are none."""
        return "\n".join(self.lines(self.memories)) or "(no prior memory)"


class TimelinePage(OfAgent):
    """A page of the events that an agent may see, oldest first. The first page holds the newest events."""

    items: tuple[SourcedEvent, ...]
    """The events of the page, oldest first."""
    older: Position | None
    """Pass it as `before` to get the next page; None on the last page."""
    kept_from: Position | None
    """On the last page: the position from which the views retain events; older events are in the ledger only. None if
    nothing was dropped, and on other pages."""

    def format(self) -> str:
        """The events, one per line; `(nothing)` if there are none."""
        return "\n".join(self.lines(self.items)) or "(nothing)"


class HistoryPage(OfSpace):
    """A page of the events of a space, oldest first. The first page holds the newest events."""

    items: tuple[SourcedEvent, ...]
    """The events of the page, oldest first."""
    older: Position | None
    """Pass it as `before` to get the next page; None on the last page."""

    def format(self) -> str:
        """The events, one per line; `(nothing)` if there are none."""
        return "\n".join(event_lines(self.items, None, kinds.AUTOMATIC)) or "(nothing)"
