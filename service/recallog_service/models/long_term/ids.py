"""Ids of entries, which the command line shortens."""

from recallog import Memory
from recallog_schemas import limits

FACADE = "long_term"
LISTED_BY = "long-term list"
PARAMETERS = frozenset({"entry_id", "entry_ids", "only"})


async def is_id(memory: Memory, space: str, agent: str, text: str) -> bool:
    """Whether a text is the id of an entry that the agent may read, regardless of its owner."""
    return (await memory.long_term.get(space, agent, text)).entry is not None


async def list_ids(memory: Memory, space: str, agent: str) -> list[str]:
    """The ids of the entries of an agent: live entries, and entries with recorded changes."""
    page = await memory.long_term.list(space, agent, limit=limits.PAGE_ITEMS_MAX)
    found = [each.id for each in page.entries]
    while page.next is not None:
        page = await memory.long_term.list(space, agent, limit=limits.PAGE_ITEMS_MAX, cursor=page.next)
        found += [each.id for each in page.entries]
    audit = await memory.long_term.audit(space, agent, limit=limits.LOG_EVENTS_KEPT)
    return list(dict.fromkeys([*found, *(each.id for each in audit.changes)]))
