"""Short ids of events, and of the entries that an erasure names."""

from recallog import Memory
from recallog_schemas import limits
from recallog_schemas.models import import_parts
from recallog_service.cli.parameters import IDS_OF_EVENTS

FACADE = ""
PARAMETERS = IDS_OF_EVENTS


async def is_id(memory: Memory, space: str, agent: str | None, text: str) -> bool:
    """Whether a text is the id of an event or entry that the agent may see."""
    return agent is not None and bool((await memory.entries(space, agent, [text])).entries)


async def list_ids(memory: Memory, space: str, agent: str | None) -> list[str]:
    """The ids of the events that the views retain for an agent, and of its entries; without an agent, the ids of the
    entries of all agents of the space."""
    if agent is None:
        return [id_ for name in await _agents(memory, space) for id_ in await _ids_of_models(memory, space, name)]
    page = await memory.timeline(space, agent, limit=limits.PAGE_ITEMS_MAX)
    found = [each.event.id for each in page.items]
    while page.older is not None:
        page = await memory.timeline(space, agent, limit=limits.PAGE_ITEMS_MAX, before=page.older)
        found += [each.event.id for each in page.items]
    return list(dict.fromkeys([*found, *await _ids_of_models(memory, space, agent)]))


async def _ids_of_models(memory: Memory, space: str, agent: str) -> list[str]:
    listed_by = dict.fromkeys(each.list_ids for each in import_parts("recallog_service", "ids"))
    return [id_ for list_ids in listed_by for id_ in await list_ids(memory, space, agent)]


async def _agents(memory: Memory, space: str) -> list[str]:
    page = await memory.agents(space, limit=limits.PAGE_ITEMS_MAX)
    found = [each.name for each in page.items]
    while page.next is not None:
        page = await memory.agents(space, limit=limits.PAGE_ITEMS_MAX, cursor=page.next)
        found += [each.name for each in page.items]
    return found
