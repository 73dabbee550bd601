"""Visibility: which agents may see an event."""

from recallog_projections.views import settings
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Event


def is_shared(event: Event, space: SpaceSettings | None) -> bool:
    """Whether every agent of the space sees it: its kind is shared by these settings, and it has no audience."""
    return event.audience is None and settings.shares(space, event.kind)


def readers(event: Event) -> tuple[str, ...]:
    """The agents that see an event which is not shared: its agent, then its audience."""
    if event.audience is None or event.audience == (event.agent,):
        return (event.agent,)
    return tuple(dict.fromkeys((event.agent, *event.audience)))
