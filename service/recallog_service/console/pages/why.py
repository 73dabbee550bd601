"""The page that explains the answer to a question, and why an event or entry is remembered or not."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from recallog_schemas.errors import OutOfRange
from recallog_schemas.views import AroundView, RecallHit
from recallog_service.console.page import Page, Place
from recallog_service.console.visit import Visit

HITS = 20
"""Number of hits per question."""
COLOURS = 8
"""Number of parts of a score that have different colours."""


@dataclass(frozen=True)
class ScorePart:
    """A part of a score as a segment of a bar."""

    name: str
    value: float
    start: float
    """From 0 to 100."""
    width: float
    colour: int


@dataclass(frozen=True)
class HitBar:
    """A hit with its bar."""

    hit: RecallHit
    parts: Sequence[ScorePart]


async def why(visit: Visit) -> Response:
    """The explained answer to a question, or the explanation of an event or entry."""
    space, agent = visit.text("space"), visit.given.get("agent") or visit.only_agent
    if agent is None:
        return await visit.page("whose.html", title="Why", agents=await visit.ask("agents", space=space, limit=100))
    visit.given = {**visit.given, "agent": agent}
    at = {"space": space, "agent": agent, "as_of": visit.given.get("at")}
    if "id" in visit.given:
        return await _memory(visit, visit.given["id"], at)
    question = visit.given.get("q")
    found = None if question is None else await visit.ask("recall", query=question, top_k=HITS, **at)
    return await visit.page(
        "why.html",
        title=question or "Why",
        command=visit.command("recall", query=question, explain=True, **at) if question else "",
        agent=agent,
        found=found,
        hits=[] if found is None else list(_with_bars(found.hits)),
        panels=[] if question is None else await visit.panels(Place.WHY, query=question, topic=question, **at),
    )


def _with_bars(hits: Sequence[RecallHit]) -> Iterator[HitBar]:
    """The hits with their scores as bars; the longest has the width of the page. Parts of 0 are left out."""
    names = list(dict.fromkeys(name for hit in hits for name in hit.parts))
    longest = max((sum(map(abs, hit.parts.values())) for hit in hits), default=0) or 1
    for hit in hits:
        parts, start = list[ScorePart](), 0.0
        for name, value in sorted(hit.parts.items(), key=lambda part: -part[1]):
            if not round(value, 3):
                continue
            width = 100 * abs(value) / longest
            parts.append(ScorePart(name, value, round(start, 2), round(width, 2), names.index(name) % COLOURS))
            start += width
        yield HitBar(hit, parts)


async def _memory(visit: Visit, id_: str, at: Mapping[str, Any]) -> Response:
    """An event or entry: its text, why it is remembered or not, its lineage, and possible actions."""
    lineage = await visit.ask("lineage", event_id=id_, **at)
    whole, around, panels = await asyncio.gather(
        visit.ask("entries", ids=[id_], **at),
        _around(visit, id_, at),
        visit.panels(Place.WHY, event_id=id_, entry_id=id_, query=visit.given.get("q"), **at),
    )
    memory = whole.entries[0] if whole.entries else None
    return await visit.page(
        "memory.html",
        title=id_,
        command=visit.command("explain", event_id=id_, query=visit.given.get("q"), **at),
        lineage=lineage,
        lineage_command=visit.command("lineage", event_id=id_, **at),
        back=[each for each in lineage.branches(back=True) if each.level or lineage.memory is None],
        forth=[each for each in lineage.branches(back=False) if each.level],
        memory=memory,
        around=around,
        panels=panels,
        agent=at["agent"],
    )


async def _around(visit: Visit, id_: str, at: Mapping[str, Any]) -> AroundView | None:
    try:
        found: AroundView = await visit.ask("around", event_id=id_, **at)
    except OutOfRange:  # the agent may not see it
        return None
    return found


PAGES = (Page("/why", why, "Why", Place.AGENT, key="g w"),)
