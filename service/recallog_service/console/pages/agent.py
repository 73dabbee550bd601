"""An agent over time: what it remembered at a moment, and what differs between two moments."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import TYPE_CHECKING, Any

from starlette.background import BackgroundTask
from starlette.responses import Response

from recallog_schemas import Position
from recallog_schemas.errors import InvalidArgument, OutOfRange, RecallogError
from recallog_schemas.views import Remembered
from recallog_service.console.page import Page, Panel, Place
from recallog_service.console.visit import ShownPanel, Visit

if TYPE_CHECKING:
    from recallog_schemas.views import MemoryDifference

NOW = "now"
TICKS = 60
"""Number of ticks on each side of a moment."""
AROUND_LINES = 2
"""Number of equal lines shown before and after lines that differ."""
PREPARED_RECORDS_MAX = 200_000
"""If the ledger has more records, the past is folded on demand only, because that takes seconds."""
WINDOW = Panel("Window", Place.AGENT, "episodic", "window.html")
OF_MEMORIES = frozenset({"window", "entries", "beliefs"})
"""Sections of a difference with ids of events and entries, which have pages of their own."""


def _sections(difference: "MemoryDifference") -> Mapping[str, Any]:
    """The changes by section, in the order of the answer."""
    grouped = groupby(difference.changes, key=lambda change: change.section)
    return {"sections": [(name, list(changes)) for name, changes in grouped], "of_memories": OF_MEMORIES}


CHANGES = Panel("What changed", Place.AGENT, "diff", "difference.html", context=_sections)

_POSITION = re.compile(r"(\d{1,10}:)?\d{1,19}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_DATED = re.compile(r"(?<=^\[turn )(\d+), \d{4}-\d{2}-\d{2}(?=\])")
_WITHOUT_ZONE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?")


@dataclass(frozen=True)
class Tick:
    """An event on the slider."""

    event: Remembered
    x: float
    """From 0 to 100."""
    is_own: bool
    is_here: bool


@dataclass(frozen=True)
class Moment:
    """A moment among the events that an agent may see."""

    as_of: str | None
    """None: now."""
    time: str | None
    """The value for a form field, which has no zone; set if the moment is a time in UTC."""
    offset: int
    """Where the slider is."""
    here: Remembered | None
    """The newest event that the agent may see."""
    ticks: Sequence[Tick]
    before: str | None
    """The moment of the previous event; None: there is none."""
    after: str | None
    """The moment of the next event; None: there is none."""


@dataclass(frozen=True)
class LinePair:
    """A line of two texts side by side. If only one text has the line, the other side is None."""

    left: str | None
    right: str | None
    is_equal: bool


@dataclass(frozen=True)
class PanelDifference:
    """What two moments show in one panel."""

    title: str
    lines: Sequence[LinePair]
    changed: int
    """How many lines differ."""


async def agent(visit: Visit) -> Response:
    """What an agent remembers at a moment. htmx requests only the part that the slider changes."""
    space, name = visit.text("space"), visit.text("agent")
    newest = await visit.ask("timeline", space=space, agent=name, limit=1)
    if not newest.known and not newest.items:
        raise OutOfRange(f"there is no agent {name} in {space}", path="agent")
    end = newest.checkpoint
    as_of, other = (_as_of(visit.given.get(each), end) for each in ("at", "with"))
    moment = await _moment(visit, as_of, end)
    if "with" in visit.given:
        differences = await _differences(visit, as_of, other)
        shown: Sequence[ShownPanel] = await _changes(visit, as_of, other)
    else:
        differences, shown = [], await _panels(visit, as_of)
    context = {
        "line": visit.command("episodic", space=space, agent=name, as_of=as_of),
        "title": name,
        "moment": moment,
        "end": end,
        "other": other or NOW,
        "differences": differences,
        "panels": shown,
    }
    if visit.is_part:
        return await visit.fragment("moment.html", **context)
    page = await visit.page("agent.html", **context)
    if as_of is None and end is not None and 0 < end.offset <= PREPARED_RECORDS_MAX:
        page.background = BackgroundTask(_prepare, visit, end)
    return page


async def _prepare(visit: Visit, end: Position) -> None:
    """Fold the past after the page is sent, so that the first move of the slider is as fast as later ones."""
    with suppress(RecallogError):
        given = {"space": visit.given["space"], "agent": visit.given["agent"], "limit": 1}
        await visit.ask("timeline", **given, as_of=f"{end.partition}:{end.offset - 1}")


def _as_of(given: str | None, end: Position | None) -> str | None:
    """The moment that a URL names; None: now. A number is an offset, a date means its end, and times are in UTC."""
    if given is None or given == NOW or end is None:
        return None
    if _POSITION.fullmatch(given):
        offset = int(given.rpartition(":")[2])
        return f"{end.partition}:{offset}" if offset < end.offset else None
    if _DATE.fullmatch(given):
        return f"{given}T23:59:59Z"
    return f"{given}Z" if _WITHOUT_ZONE.fullmatch(given) else given


async def _moment(visit: Visit, as_of: str | None, end: Position | None) -> Moment:
    given = {"space": visit.given["space"], "agent": visit.given["agent"], "limit": TICKS}
    before = (await visit.ask("timeline", **given, as_of=as_of)).items
    here = before[-1] if before else None
    offset = _offset(as_of, here, end)
    after: Sequence[Remembered] = ()
    if as_of is not None and end is not None:
        span = max(TICKS, offset - before[0].position.offset if before else 0)
        upto = min(end.offset, offset + span)
        following = await visit.ask("timeline", **given, as_of=f"{end.partition}:{upto}" if upto < end.offset else None)
        after = [each for each in following.items if each.position.offset > offset]
    return Moment(
        as_of,
        as_of.removesuffix("Z") if as_of is not None and as_of.endswith("Z") else None,
        offset,
        here,
        list(_ticks(before, after, visit.given["agent"])),
        str(before[-2].position) if len(before) > 1 else None,
        str(after[0].position) if after else None,
    )


def _offset(as_of: str | None, here: Remembered | None, end: Position | None) -> int:
    """The offset at which the slider is: the position of the moment; for a time, the newest event up to it."""
    if as_of is not None and _POSITION.fullmatch(as_of):
        return int(as_of.rpartition(":")[2])
    place = end if as_of is None else here.position if here is not None else None
    return 0 if place is None else place.offset


def _ticks(before: Sequence[Remembered], after: Sequence[Remembered], agent: str) -> Iterator[Tick]:
    """The events as ticks, placed in proportion to their offsets between the first and the last one."""
    events = [*before, *after]
    if not events:
        return
    first = events[0].position.offset
    span = max(1, events[-1].position.offset - first)
    for number, each in enumerate(events, 1):
        x = 100 * (each.position.offset - first) / span
        yield Tick(each, round(x, 3), each.event.agent == agent, number == len(before))


async def _panels(visit: Visit, as_of: str | None) -> Sequence[ShownPanel]:
    """The panels at a moment: first the panel of the model that is built on the others, then the window."""
    given = {"space": visit.given["space"], "agent": visit.given["agent"], "as_of": as_of}
    window, of_models = await asyncio.gather(visit.panel(WINDOW, **given), visit.panels(Place.AGENT, **given))
    return [each for each in [*of_models[-1:], window, *of_models[:-1]] if each is not None]


async def _changes(visit: Visit, as_of: str | None, other: str | None) -> Sequence[ShownPanel]:
    """The panel with what changed from the earlier moment to the later one."""
    given = {"space": visit.given["space"], "agent": visit.given["agent"]}
    since, until = (other, as_of) if as_of is None else (as_of, other)
    shown = await visit.panel(CHANGES, **given, since=since, until=until)
    if shown is not None and isinstance(shown.problem, InvalidArgument) and until is not None:  # reversed
        shown = await visit.panel(CHANGES, **given, since=until, until=since)
    return [] if shown is None else [shown]


async def _differences(visit: Visit, as_of: str | None, other: str | None) -> Sequence[PanelDifference]:
    """What differs between two moments, panel by panel."""
    left, right = await asyncio.gather(_panels(visit, as_of), _panels(visit, other))
    pairs = [(each, others) for each in left for others in right if each.panel is others.panel]
    return await asyncio.to_thread(lambda: [_difference(*pair) for pair in pairs])


def _difference(left: ShownPanel, right: ShownPanel) -> PanelDifference:
    lines = [*_compare_lines(_lines(left), _lines(right))]
    return PanelDifference(left.panel.title, lines, sum(not each.is_equal for each in lines))


def _lines(shown: ShownPanel) -> Sequence[str]:
    return (shown.answer.format() if shown.problem is None else str(shown.problem)).splitlines()


def _compare_lines(left: Sequence[str], right: Sequence[str]) -> Iterator[LinePair]:
    """The lines that differ, side by side, and a few equal ones around them.

    Lines have dates if the events of a panel are from several days; a date alone is not a difference. Frequent lines
    are not used as anchors, because a long run of equal lines would take seconds.
    """
    before, after = ([_DATED.sub(r"\1", line) for line in lines] for lines in (left, right))
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(AROUND_LINES):
        for tag, first, last, other_first, other_last in group:
            for number in range(max(last - first, other_last - other_first)):
                yield LinePair(
                    left[first + number] if first + number < last else None,
                    right[other_first + number] if other_first + number < other_last else None,
                    tag == "equal",
                )


PAGES = (Page("/agent", agent, "Through time", Place.AGENT, key="g a"),)
