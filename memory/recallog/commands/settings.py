"""Settings of agents and spaces. Each change is published, and the answer has all settings after it."""

from collections.abc import Mapping
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.making import make_event
from recallog.operations.parameters import At
from recallog.queries import spaces
from recallog.reading.read_session import ReadSession
from recallog_projections.tables import RowKey
from recallog_projections.views import settings
from recallog_schemas import Event
from recallog_schemas.errors import InvalidArgument, ProjectionError, Refused
from recallog_schemas.views import AgentSettingsView, SpaceSettingsView


async def configure_agent(
    access: MemoryAccess, space: str, agent: str, options: Mapping[str, Any], event_id: str | None
) -> AgentSettingsView:
    """Change settings of an agent. Raises `InvalidArgument`."""
    event = _event(space, agent, "agent.configured", options, event_id)
    (position,) = await access.publish([event])
    return await access.of_agent(space, agent, At(after=position), spaces.agent_settings)


async def configure_space(
    access: MemoryAccess, space: str, by: str, options: Mapping[str, Any], event_id: str | None
) -> SpaceSettingsView:
    """Change settings of a space. Raises `InvalidArgument`, and `Refused` for too many declared kinds."""
    event = _event(space, by, "space.configured", options, event_id)
    key = RowKey(settings.SPACES.name, space)
    known = await access.of_space(space, At(), ReadSession.snapshot, [key])
    try:
        settings.configure_space(known.row(settings.SPACES, space) or settings.SpaceSettings(), event.payload)
    except ProjectionError as error:
        raise Refused(str(error), reason="full") from None
    (position,) = await access.publish([event])
    return await access.of_space(space, At(after=position), spaces.space_settings)


def _event(space: str, agent: str, kind: str, options: Mapping[str, Any], event_id: str | None) -> Event:
    if not options:
        raise InvalidArgument("give at least one setting", path="options", rule="nothing_given")
    return make_event(space, agent, kind, options, event_id)
