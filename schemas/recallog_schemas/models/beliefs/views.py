"""The beliefs of an agent."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from recallog_schemas.views.base import Bounded, EventLine, OfAgent, Remembered, event_lines


class Belief(Remembered):
    """One reflection of an agent. `text` is the belief."""

    based_on: tuple[str, ...]
    """Ids of the events that the agent named as evidence."""


class BeliefsView(OfAgent, Bounded):
    """The beliefs of an agent, oldest first; with a `reader`, only those that the reader may see.

    Where not all have room, the older ones are left out.
    """

    list_field: ClassVar[str] = "beliefs"
    kept: ClassVar[Literal["first", "last"]] = "last"

    reader: str | None
    """The agent that may see the beliefs; None: the beliefs are not filtered."""
    beliefs: tuple[Belief, ...]
    """The beliefs, oldest first."""

    def lines(self, events: Iterable[EventLine]) -> list[str]:
        """The lines of `events` for the reader, or for the agent if there is none."""
        return event_lines(events, self.agent if self.reader is None else self.reader, self.dates)

    def format(self) -> str:
        """The beliefs, one per line; `(no beliefs)` if there are none."""
        return "\n".join(self.lines(self.beliefs)) or "(no beliefs)"
