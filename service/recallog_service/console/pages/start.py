"""The start page: spaces, health, and what needs attention."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from recallog_schemas.errors import Forbidden, RecallogError
from recallog_schemas.views import Remembered, SpaceView, Status
from recallog_schemas.views.base import count_noun
from recallog_service.console.page import Page, Place
from recallog_service.console.rendering import url
from recallog_service.console.visit import Visit

SPACES = 25
"""Number of spaces per page."""
AGENTS = 6
"""Maximum number of agents named per space."""


@dataclass(frozen=True)
class SpaceLine:
    """A space as the start page shows it."""

    name: str
    activity: SpaceView | None
    agents: Sequence[str]
    more_agents: int
    last: Remembered | None
    """Its newest event; None if the caller may not see it."""


@dataclass(frozen=True)
class Attention:
    """Something that needs attention, and its page."""

    text: str
    url: str
    tone: str = "warn"
    more: str = ""


async def start(visit: Visit) -> Response:
    """The spaces with their agents and last activity, the health of the memory, and what needs attention."""
    lines, following = await _spaces(visit)  # first: in a folder, it folds what was published meanwhile
    status, problem = await _status(visit)
    return await visit.page(
        "start.html",
        title="Start",
        command=("admin.status", {}) if status else ("spaces", {}),
        status=status,
        problem=problem,
        attention=list(_attention(status)) if status else (),
        spaces=lines,
        following=following,
        panels=await visit.panels(Place.START),
    )


async def _status(visit: Visit) -> tuple[Status | None, RecallogError | None]:
    """The status of the memory, or the error; neither if the caller is not an operator."""
    try:
        return await visit.ask("admin.status"), None
    except Forbidden:
        return None, None
    except RecallogError as error:
        return None, error


def _attention(status: Status) -> Iterator[Attention]:
    operations = url("/operations")
    for fault in status.faults:
        yield Attention(fault.problem, operations, "bad" if fault.severe else "warn", fault.remedy)
    if dead := sum(each.dead_letters for each in status.partitions):
        yield Attention(
            count_noun(dead, "dead letter"), f"{operations}#dead-letters", "bad", "records that could not be applied"
        )
    building = status.index is not None and status.index.state == "building"
    for each in status.partitions:
        if each.problem:
            yield Attention(f"{each.views}, partition {each.partition}", operations, "bad", each.problem)
        elif each.lag and not (each.views == "index" and building):
            behind = f"{each.views}, partition {each.partition}: {count_noun(each.lag, 'record')} not processed yet"
            yield Attention(behind, operations)
    if status.index is not None and status.index.state not in ("current", "none"):
        tone = "bad" if status.index.state in ("failing", "unavailable") else "warn"
        yield Attention(f"The semantic index is {status.index.state}", operations, tone, status.index.problem)
    if status.pending:
        first = status.pending[0]
        more = f"first {first.kind} of {first.agent} in {first.space}"
        due = f"{count_noun(status.pending_total, 'trigger')} due"
        yield Attention(due, f"{url('/space', space=first.space)}#due", "warn", more)


async def _spaces(visit: Visit) -> tuple[Sequence[SpaceLine], str | None]:
    """A page of the spaces, and the cursor of the next page. For a key of one agent, the spaces that the key names."""
    with suppress(Forbidden):
        page = await visit.ask("spaces", limit=SPACES, cursor=visit.given.get("cursor"))
        return await asyncio.gather(*(_line(visit, each.space, each) for each in page)), page.next
    return await asyncio.gather(*(_line(visit, each, None) for each in await visit.spaces())), None


async def _line(visit: Visit, space: str, activity: SpaceView | None) -> SpaceLine:
    agents: Any = ()
    if activity is not None:
        agents = [each.name for each in await visit.ask("agents", space=space, limit=AGENTS)]
    elif visit.only_agent is not None:
        agents = [visit.only_agent]
    more = 0 if activity is None else activity.agents - len(agents)
    return SpaceLine(space, activity, agents, more, await _last(visit, space))


async def _last(visit: Visit, space: str) -> Remembered | None:
    """The newest event of a space; with a key of one agent, the newest event that this agent may see."""
    agent = visit.only_agent
    if agent is None:
        found = await visit.ask("history", space=space, limit=1)
    else:
        found = await visit.ask("timeline", space=space, agent=agent, limit=1)
    return next(iter(found.items), None)


PAGES = (Page("", start, "Start", key="g s"),)
