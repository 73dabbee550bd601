"""What an agent may see, in order: its window, and pages of all that the views keep."""

from collections.abc import Callable
from itertools import islice

from recallog.reading import Reading, position
from recallog_projections import episodic, settings
from recallog_projections.projection import Need
from recallog_schemas import Event, Position, limits
from recallog_schemas.views import EpisodicView, TimelinePage


async def window(reading: Reading, space: str, agent: str, size: int | None) -> EpisodicView:
    """The newest `size` events that `agent` may see; None: as many as it is set to."""
    row = Need(settings.AGENTS.name, space, agent)
    newest = size or limits.WINDOW_EVENTS
    look = await reading.look([row], episodic.logs(space, agent, newest))
    own = look.row(settings.AGENTS, space, agent)
    wanted = size or (own and own.window) or limits.WINDOW_EVENTS
    if wanted > newest:
        look = await reading.look([row], episodic.logs(space, agent, wanted))
    memories = episodic.window(look.memories(space, agent), wanted)
    return EpisodicView(
        **look.computed_at,
        space=space,
        agent=agent,
        window=wanted,
        memories=tuple(look.remembered(memory.offset, memory.data) for memory in memories),
    )


async def page(
    reading: Reading,
    space: str,
    agent: str,
    wanted: Callable[[Event], bool],
    limit: int,
    before: Position | None,
    kept: int,
) -> TimelinePage:
    """The newest `limit` events before `before` that are `wanted`; the logs keep `kept` events."""
    look = await reading.look(logs=episodic.logs(space, agent, kept))
    tails = look.tail(episodic.OWN, space, agent), look.tail(episodic.SHARED, space)
    kept_from = episodic.kept_from(*tails)
    memories = [memory for memory in episodic.complete(*tails) if before is None or memory.offset < before.offset]
    newest_first = (look.remembered(memory.offset, memory.data) for memory in reversed(memories))
    found = list(islice((memory for memory in newest_first if wanted(memory.event)), limit + 1))
    older = found[limit - 1].position if len(found) > limit else None
    return TimelinePage(
        **look.computed_at,
        space=space,
        agent=agent,
        items=tuple(reversed(found[:limit])),
        older=older,
        kept_from=position(look.partition, kept_from) if older is None and kept_from is not None else None,
    )
