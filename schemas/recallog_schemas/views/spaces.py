"""Spaces, and the activity of their agents, sessions and kinds."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, ListView, OfSpace, View


class SpaceView(ComputedAt):
    """Activity in one space. `events` counts all events, bookkeeping included."""

    space: str
    events: int
    agents: int
    sessions: int
    first: Position
    last: Position

    def format(self) -> str:
        counts = f"{self.events:,} events, {self.agents:,} agents, {self.sessions:,} sessions"
        return f"{self.space}: {counts}, from {self.first} to {self.last}"


class SpacesView(ListView[SpaceView]):
    """All spaces, by name."""


class AgentView(View):
    """Activity of one agent, session or kind of a space: the number of events, the first and the last position."""

    name: str
    events: int
    first: Position
    last: Position

    def format(self) -> str:
        return f"{self.name}: {self.events:,} events, from {self.first} to {self.last}"


class AgentsView(OfSpace, ListView[AgentView]):
    """All agents that have acted in a space, by name."""


class SpaceDetail(OfSpace):
    """One space by agents, sessions and kinds."""

    activity: SpaceView | None
    """None if the space has no events."""
    agents: tuple[AgentView, ...]
    sessions: tuple[AgentView, ...]
    kinds: tuple[AgentView, ...]

    def format(self) -> str:
        """The space, then its agents, sessions and kinds, one per line."""
        if self.activity is None:
            return "the space has no events"
        found = [self.activity.format()]
        for title, rows in (("agents", self.agents), ("sessions", self.sessions), ("kinds", self.kinds)):
            found += ["", title, *(f"  {row.format()}" for row in rows)]
        return "\n".join(found)
