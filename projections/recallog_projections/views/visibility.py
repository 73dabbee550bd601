"""Who sees an event."""

from recallog_projections.views import settings
from recallog_projections.views.settings import SpaceSettings
from recallog_schemas import Event


def is_shared(event: Event, space: SpaceSettings | None) -> bool:
    """Whether every agent of the space sees it: of a kind that these settings share, and addressed to nobody."""
    return event.audience is None and settings.shares(space, event.kind)


def readers(event: Event) -> tuple[str, ...]:
    """The agents that see an event which is not shared: who acted, and whom it is addressed to."""
    if event.audience is None or event.audience == (event.agent,):
        return (event.agent,)
    return tuple(dict.fromkeys((event.agent, *event.audience)))


def sees(agent: str, event: Event, space: SpaceSettings | None) -> bool:
    """Whether `agent` sees `event`; `space` are the settings when it was said."""
    return is_shared(event, space) or agent in readers(event)
