"""Spaces, and the activity of their agents, sessions and kinds."""

from pydantic import Field

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, OfSpace, PageView, View, count_noun, one_line


class SpaceView(ComputedAt):
    """Activity in one space. `events` counts all events, bookkeeping included."""

    space: str
    """The name of the space."""
    events: int
    """The number of events."""
    agents: int
    """The number of agents that have acted."""
    sessions: int
    """The number of sessions."""
    first: Position
    """The position of its first event."""
    last: Position
    """The position of its newest event."""

    def format(self) -> str:
        """The counts and positions in one line."""
        counts = ", ".join(
            (count_noun(self.events, "event"), count_noun(self.agents, "agent"), count_noun(self.sessions, "session"))
        )
        return f"{self.space}: {counts}, from {self.first} to {self.last}"


class SpacesView(PageView[SpaceView]):
    """A page of the spaces, by name."""

    @classmethod
    def cursor_of(cls, item: SpaceView) -> str:
        """The cursor of the page after an item."""
        return item.space


class AgentView(View):
    """Activity of one agent, session or kind of a space: the number of events, the first and the last position."""

    name: str
    """The name of the agent, session or kind."""
    events: int
    """The number of its events."""
    first: Position
    """The position of its first event."""
    last: Position
    """The position of its newest event."""

    def format(self) -> str:
        """Name, count and positions in one line."""
        return f"{one_line(self.name)}: {count_noun(self.events, 'event')}, from {self.first} to {self.last}"


class AgentsView(OfSpace, PageView[AgentView]):
    """A page of the agents that have acted in a space, by name."""

    @classmethod
    def cursor_of(cls, item: AgentView) -> str:
        """The cursor of the page after an item."""
        return item.name


class SessionsView(OfSpace, PageView[AgentView]):
    """A page of the sessions of a space, the one with the newest event first."""

    @classmethod
    def cursor_of(cls, item: AgentView) -> str:
        """The cursor of the page after an item."""
        return str(item.last)


class SpaceDetail(OfSpace):
    """One space by agents, sessions and kinds."""

    activity: SpaceView | None
    """None if the space has no events."""
    agents: tuple[AgentView, ...]
    """Its agents, by name: the first 1,000. `agents` has pages of all."""
    sessions: tuple[AgentView, ...]
    """Its sessions, by name: the first 1,000. `sessions` has pages of all."""
    kinds: tuple[AgentView, ...]
    """The kinds of its events, by name: the first 1,000."""
    left_out: int = Field(default=0, exclude_if=lambda count: count == 0)
    """How many agents, sessions and kinds are beyond the first 1,000 of each. Left out if there are none."""

    def format(self) -> str:
        """The space, then its agents, sessions and kinds, one per line."""
        if self.activity is None:
            return "the space has no events"
        found = [self.activity.format()]
        for title, rows in (("agents", self.agents), ("sessions", self.sessions), ("kinds", self.kinds)):
            found += ["", title, *(f"  {row.format()}" for row in rows)]
        return "\n".join(found)


class ResumeView(OfSpace):
    """Where a space, or one of its agents, stopped: what a program needs that continues after a restart."""

    agent: str | None
    """The agent whose memories count; None: those of all agents."""
    known: bool
    """Whether the space has any event; with an agent, whether any is by it or addressed to it. If not, a name may be
    misspelt."""
    session: str | None
    """The session of the newest memory that has one; None if no memory has a session."""
    turn: int | None
    """The highest turn of that session; without a session, of all. None if there is nothing to restore."""
    next_turn: int
    """The turn to continue with: `turn` + 1, or 0 if there is nothing to restore."""

    @property
    def ok(self) -> bool:
        """Whether there is anything to restore."""
        return self.turn is not None

    def format(self) -> str:
        """The session, the turn and the next turn in one line; `nothing to restore` if there is nothing."""
        if self.turn is None:
            return "nothing to restore"
        session = "no session" if self.session is None else f"session {one_line(self.session)}"
        return f"{session}, turn {self.turn}, next turn {self.next_turn}"
