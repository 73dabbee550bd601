"""A space: its timeline, which is updated live; its sessions, due triggers, and who may see what."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from recallog_schemas import Position, triggers
from recallog_schemas.errors import OutOfRange
from recallog_schemas.kinds.trust import CLASSES, TRUST
from recallog_schemas.views import Remembered, SpaceDetail
from recallog_service.console.page import Page, Place
from recallog_service.console.visit import HEADERS, Visit

EVENTS = 50
"""Number of events per page."""
SESSIONS = 12
DUE = 20
ANSWERED = 6


@dataclass(frozen=True)
class EventsPage:
    """A page of events, and the query that returned it."""

    items: Sequence[Remembered]
    older: Position | None
    asked: tuple[str, Mapping[str, Any]]
    """The operation and its arguments."""


async def space(visit: Visit) -> Response:
    """The timeline of a space, oldest event first, and facts about the space."""
    name = visit.text("space")
    events = await _events(visit, name)
    if visit.only_agent is not None:
        following = _behind(events.items[-1].position) if events.items else None
        shown: dict[str, Any] = {"events": events, "following": following, "sources": CLASSES}
        return await visit.page("space.html", title=name, command=events.asked, **shown)
    detail = await visit.ask("space", space=name)
    if detail.activity is None:
        raise OutOfRange(f"there is no space {name}", path="space")
    settings = await visit.ask("kinds", space=name)
    return await visit.page(
        "space.html",
        title=name,
        command=events.asked,
        events=events,
        following=_behind(detail.activity.last),
        sources=CLASSES,
        detail=detail,
        sessions=await visit.ask("sessions", space=name, limit=SESSIONS),
        due=await visit.ask("pending", space=name, limit=DUE),
        answered=await _find_answers(visit, detail),
        kinds=[each for each in settings.kinds if each.space or each.name in {kind.name for kind in detail.kinds}],
        panels=await visit.panels(Place.SPACE, space=name),
    )


async def live(visit: Visit) -> Response:
    """The new events as items of the page's list; 204 if there are none."""
    start = Position.parse(visit.text("start"))
    events = await _events(visit, visit.text("space"), start)
    if not events.items:
        return Response(status_code=204, headers=HEADERS)
    following = _behind(events.items[-1].position)
    return await visit.fragment("events.html", events=events, following=following, is_new=True)


async def event(visit: Visit) -> Response:
    """One event, unabridged."""
    name, position = visit.text("space"), Position.parse(visit.text("at"))
    if visit.only_agent is None:
        operation, arguments = "history", {"space": name, "start": str(position)}
    else:
        operation, arguments = "timeline", {"space": name, "agent": visit.only_agent}
    arguments |= {"before": str(_behind(position)), "limit": "1"}
    found = (await visit.ask(operation, **arguments)).items
    if not found or found[0].position != position:
        raise OutOfRange(f"there is no event at {position}", path="at")
    return await visit.page("event.html", title=f"Event {position}", command=(operation, arguments), shown=found[0])


async def _events(visit: Visit, space: str, start: Position | None = None) -> EventsPage:
    """A page of the events of the space or, with a key of one agent, of the events that this agent may see."""
    given = visit.given
    arguments: dict[str, Any] = {"space": space, "limit": EVENTS, "session": given.get("session")}
    arguments |= {"before": given.get("before"), "kinds": [given["kind"]] if "kind" in given else None}
    arguments |= {"filter": json.dumps({TRUST: given["trust"]}) if "trust" in given else None}
    if visit.only_agent is None:
        operation = "history"
        arguments |= {"author": given.get("author"), "containing": given.get("containing")}
        arguments |= {"start": None if start is None else str(start)}
    else:
        operation = "timeline"
        arguments |= {"agent": visit.only_agent}
    found = await visit.ask(operation, **arguments)
    items = [each for each in found.items if start is None or each.position >= start]
    return EventsPage(items, found.older, (operation, arguments))


async def _find_answers(visit: Visit, detail: SpaceDetail) -> Sequence[Remembered]:
    """The newest events that have answered triggers."""
    closings = sorted(triggers.all_closings() & {each.name for each in detail.kinds})
    if not closings:
        return ()
    found: Sequence[Remembered] = (await visit.ask("history", space=detail.space, kinds=closings, limit=ANSWERED)).items
    return found[::-1]


def _behind(position: Position) -> Position:
    return Position(position.partition, position.offset + 1)


PAGES = (
    Page("/space", space, "Timeline", Place.SPACE, key="g t"),
    Page("/space/live", live),
    Page("/event", event),
)
