"""Reports misspelt names: a space, an agent or a session that was never seen, with the nearest known name. An empty
answer would hide the mistake."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from recallog import Memory, RecallogError
from recallog.views import ListView, OfAgent, OfSpace, ResumeView
from recallog_projections import notices
from recallog_schemas.names import in_nfc
from recallog_schemas.views.base import PageView, View

Item = TypeVar("Item")

_LISTED_MAX = 5
"""Maximum number of known names that are listed if none is similar."""


def may_be_unknown(answer: Any, given: Mapping[str, Any]) -> bool:
    """Whether an answer may be empty because a name in the arguments `given` is misspelt."""
    if given.get("space") is None:
        return False
    match answer:
        case OfAgent():
            return answer.empty and (not answer.known or given.get("session") is not None)
        case OfSpace():
            return not answer.known
        case ResumeView():
            return not answer.known and not answer.ok
        case ListView():
            return not answer.items
        case _:
            return isinstance(answer, View) and answer.empty


async def unknown_name(memory: Memory, given: Mapping[str, Any]) -> str | None:
    """A sentence about the space, agent or session in the arguments that has no events; None if all names are known.

    The current views decide, even if the arguments ask for the past.
    """
    named: list[Any] = [in_nfc(given.get(name)) for name in ("space", "agent", "session")]
    space, agent, session = named
    here = await memory.agents(space)
    if not here.known:
        known = [each.space for each in await _all(memory.spaces)]
        if not known:
            return "the memory has no events yet; write some with recallog publish or recallog ingest"
        return f"no event was ever published in the space {space!r}; {_nearest(space, known, 'spaces')}"
    with notices.collect_notices():  # the message below suggests the nearest name too
        is_known = agent is None or (await memory.agent_settings(space, agent)).known
    if agent is not None and not is_known:
        known = [each.name for each in await _all(partial(memory.agents, space))]
        return f"no event of {space} is by {agent!r} or addressed to it; {_nearest(agent, known, f'agents {space}')}"
    sessions = [each.name for each in await _all(partial(memory.sessions, space))] if session is not None else []
    if session is None or session in sessions:
        return None
    return f"no event of {space} is in a session {session!r}; {_nearest(session, sessions, f'sessions {space}')}"


async def _all(page_of: Callable[..., Awaitable[PageView[Item]]]) -> list[Item]:
    """The items of all pages."""
    page = await page_of()
    found = list(page.items)
    while page.next is not None:
        page = await page_of(cursor=page.next)
        found += page.items
    return found


async def refuse_unknown(memory: Memory, given: Mapping[str, Any]) -> None:
    """Raise an error if the space, or the agent, in the arguments `given` was never seen."""
    await catch_up(memory, given["space"])
    unknown = await unknown_name(memory, given)
    if unknown is not None:
        raise RecallogError(unknown)


async def catch_up(memory: Memory, space: str) -> None:
    """Wait until the views contain all names: on a cluster they may lag behind the ledger."""
    await memory.catch_up(own=False, partition=await memory.admin.partition_of(space))


def _nearest(name: str, known: Iterable[str], command: str) -> str:
    """A suggestion: the known name most similar to `name`, else a list of known names."""
    from difflib import get_close_matches

    by_folded = {each.casefold(): each for each in known}
    similar = get_close_matches(name.casefold(), by_folded, n=1)
    if similar:
        return f"did you mean {by_folded[similar[0]]!r}?"
    names = sorted(by_folded.values())
    if not names:
        return "there are none yet"
    listed = ", ".join(names[:_LISTED_MAX]) + (", …" if len(names) > _LISTED_MAX else "")
    return f"known are {listed} (recallog {command})"
