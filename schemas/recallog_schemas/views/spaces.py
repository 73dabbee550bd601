"""Spaces, and the activity of their agents, sessions and kinds."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, View


class SpaceView(ComputedAt):
    """Activity in one space. `events` counts all events, bookkeeping included."""

    space: str
    events: int
    agents: int
    sessions: int
    first: Position
    last: Position


class AgentView(View):
    """Activity of one agent, session or kind of a space: the number of events, the first and the last position."""

    name: str
    events: int
    first: Position
    last: Position


class SpaceDetail(ComputedAt):
    """One space by agents, sessions and kinds. `space` is None if the space has no events."""

    space: SpaceView | None
    agents: tuple[AgentView, ...]
    sessions: tuple[AgentView, ...]
    kinds: tuple[AgentView, ...]
