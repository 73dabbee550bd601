"""Spaces, and the agents, sessions and kinds in them."""

from recallog_schemas.event import Position
from recallog_schemas.views.base import ComputedAt, View


class SpaceView(ComputedAt):
    """Activity in one space. `events` counts every event, bookkeeping too."""

    space: str
    events: int
    agents: int
    sessions: int
    first: Position
    last: Position


class AgentView(View):
    """Activity of one agent (or session, or kind) of a space: how many events, the first and the last."""

    name: str
    events: int
    first: Position
    last: Position


class SpaceDetail(ComputedAt):
    """One space by agents, sessions and kinds. `space` is None where nothing was ever said there."""

    space: SpaceView | None
    agents: tuple[AgentView, ...]
    sessions: tuple[AgentView, ...]
    kinds: tuple[AgentView, ...]
