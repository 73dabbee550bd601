"""Events that only record that something began or ended."""

from collections.abc import Mapping
from typing import Any

from recallog.access import MemoryAccess
from recallog.commands.making import make_event
from recallog.operations.parameters import At
from recallog.reading.read_session import ReadSession
from recallog_schemas.views import Recorded


async def record(
    access: MemoryAccess, space: str, agent: str, kind: str, payload: Mapping[str, Any], **envelope: Any
) -> Recorded:
    """Publish an event, without values of its payload that are None, and return it once the views have it.

    `envelope` may have `event_id`. Raises the errors of `make_event`.
    """
    given = {name: value for name, value in payload.items() if value is not None}
    event = make_event(space, agent, kind, given, **envelope)
    (position,) = await access.publish([event])
    await access.of_space(space, At(after=position), ReadSession.snapshot, ())
    return Recorded(id=event.id, position=position)
