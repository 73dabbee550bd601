"""The scope in time of a question: which memories are of the times or of the conversation that it names.

A scope prefers memories and does not exclude others, since people also report later what happened on a day. Times that
ingest invents are not in any scope, and are not used to measure others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time

from recallog.retrieval.dates import Conversation, Days
from recallog.retrieval.time_relations import RelatedTime, Relation
from recallog_projections.index.engines.engine import Filter
from recallog_projections.views.outline import Outline
from recallog_schemas.event import Event
from recallog_schemas.invented_times import is_invented
from recallog_schemas.timestamps import micros, moment_of

_DAY = 86_400 * 1_000_000
AFTERWARDS = 7 * _DAY
"""How long after the named days memories still count, with a share that decreases."""
PREVIOUS = 0.5
"""The share of the session before the newest one in "our last conversation", since the question may be in the
newest."""

MEANWHILE = 0.5
"""The share of the session that reports an event in "during the trip", since other sessions may report it too."""


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A time that a question names. All times are microseconds since 1970."""

    words: str
    """The part of the question that names it."""
    ranges: Sequence[tuple[int | None, int | None]] = ()
    """Each is a half-open range (from, until); None means unbounded. There are several if the words have several
    readings, and none if they name sessions, or an event that no memory reports."""
    afterwards: int = 0
    """How long after a range memories still count, with a share that decreases."""
    sessions: Mapping[str, float] = field(default_factory=dict)
    """By session, "" for events without one: the share, from 0 to 1, with which it is meant."""
    event: str | None = None
    """The id of the memory whose time the words name."""

    def holds(self, session: str, at: int) -> bool:
        """Whether a memory belongs to this time."""
        return self.sessions.get(session, 0) > 0 or (
            not is_invented(moment_of(at)) and any(_share(at, *limits, 0) == 1.0 for limits in self.ranges)
        )

    def share(self, session: str, at: int) -> float:
        """The share of a memory: 1 within a range, decreasing in the time `afterwards`, else 0."""
        of_session = self.sessions.get(session, 0.0)
        if not self.ranges or is_invented(moment_of(at)):
            return of_session
        return max(of_session, *(_share(at, *limits, self.afterwards) for limits in self.ranges))

    def filters(self, wanted: Filter, *, afterwards: bool = True) -> Iterator[Filter]:
        """`wanted`, restricted to each part of this time."""
        for since, until in self.ranges:
            end = None if until is None else until + (self.afterwards if afterwards else 0)
            yield replace(
                wanted, since=_choose_narrower(max, since, wanted.since), until=_choose_narrower(min, end, wanted.until)
            )
        if wanted.session is None:
            for session in self.sessions:
                yield replace(wanted, session=session)


@dataclass(frozen=True, slots=True)
class TimeScope:
    """The times that a question names."""

    spans: Sequence[TimeSpan] = ()
    prefers_newest: bool = False
    """Whether the newest of the hits is meant: "recently", which has a span, and "when did I last …"."""
    is_all: bool = False
    """Whether the question asks only for the memories of the times."""

    def holds(self, session: str, at: int) -> bool:
        """Whether a memory belongs to one of the times."""
        return any(span.holds(session, at) for span in self.spans)

    def share(self, session: str, at: int) -> float:
        """The highest share of a memory in one of the times."""
        return max((span.share(session, at) for span in self.spans), default=0.0)

    def filters(self, wanted: Filter) -> Iterator[Filter]:
        """`wanted`, restricted to each part of the scope."""
        for span in self.spans:
            yield from span.filters(wanted)


def scope(
    times: Sequence[RelatedTime], now: datetime | None, outline: Outline | None, events: Mapping[str, Event]
) -> TimeScope | None:
    """The scope of a question that names these times; None if it names none.

    `now` is the time of the question; None if it is unknown. `events` has the memories that report the named events, by
    the words that name them.
    """
    today = None if now is None or is_invented(now) else now.astimezone(UTC).date()
    spans, recent, prefers_newest = list[TimeSpan](), list[TimeSpan](), False
    for one in times:
        span = _of_time(one, today, outline, events) if one.end is None else _between(one, one.end, today, events)
        is_newest = one.expressions and one.expressions[0].is_newest and one.relation in ("within", "since")
        if one.events or span.ranges or span.sessions:
            (recent if is_newest else spans).append(span)
        prefers_newest |= bool(is_newest)
    if spans:
        return TimeScope(spans)  # "recently, in March" means March
    return TimeScope(recent, prefers_newest=True) if prefers_newest else None


def _of_time(one: RelatedTime, today: date | None, outline: Outline | None, events: Mapping[str, Event]) -> TimeSpan:
    return _of_event(one, events.get(one.event)) if one.event else _of_expressions(one, today, outline)


def _between(one: RelatedTime, last: RelatedTime, today: date | None, events: Mapping[str, Event]) -> TimeSpan:
    """The span from one time to a later one: "20 December and 5 January" are in different years."""
    end = _of_time(last, today, None, events)
    for _, until in end.ranges[:1]:
        recurs = until is not None and bool(one.expressions) and one.expressions[0].recurs
        for now in [today, moment_of(until).date()] if until is not None and recurs else [today]:
            begin = _of_time(one, now, None, events)
            for since, _ in begin.ranges[:1]:
                if since is not None and until is not None and since < until:
                    afterwards = 0 if one.event or last.event else AFTERWARDS
                    return TimeSpan(one.words, [(since, until)], afterwards, event=begin.event or end.event)
    return TimeSpan(one.words)


def _of_expressions(one: RelatedTime, today: date | None, outline: Outline | None) -> TimeSpan:
    first, *others = one.expressions
    if first.conversation is not None:
        # "Since our first session" is nearly all of the time, as is "until our last session".
        is_meant = one.relation not in (("since", "after") if first.conversation == "first" else ("until", "before"))
        sessions = _sessions(outline, first.conversation) if outline is not None and is_meant else {}
        return TimeSpan(one.words, sessions=sessions)
    if others:
        days = [each for from_, _ in others[0].days(today) for each in first.days(from_)]
        return TimeSpan(one.words, [_micros_of(each) for each in days], AFTERWARDS)
    ranges = [_find_range(one.relation, *_micros_of(each)) for each in first.days(today)]
    return TimeSpan(one.words, ranges, AFTERWARDS if one.relation in ("within", "during") else 0)


def _of_event(one: RelatedTime, event: Event | None) -> TimeSpan:
    """The span before or after a memory. If the question asks what happened meanwhile, the span of its session, or its
    day."""
    if event is None or is_invented(event.at):
        return TimeSpan(one.words)
    at = micros(event.at)
    if one.relation == "during" and event.session is not None:
        return TimeSpan(one.words, sessions={event.session: MEANWHILE}, event=event.id)
    ends = _micros_of((event.at.date(), event.at.date())) if one.relation == "during" else (at, at)
    return TimeSpan(one.words, [_find_range(one.relation, *ends, includes=True)], event=event.id)


def _find_range(relation: Relation, since: int, until: int, *, includes: bool = False) -> tuple[int | None, int | None]:
    """The range that has this relation to another one. A memory of an event may also be later than the event."""
    match relation:
        case "since":
            return since, None
        case "after":
            return until, None
        case "before":
            return None, since
        case "until":
            return None, until + includes
        case _:
            return since, until


def _micros_of(days: Days) -> tuple[int, int]:
    first, last = (micros(datetime.combine(day, time(), UTC)) for day in days)
    return first, last + _DAY


def _sessions(outline: Outline, which: Conversation) -> dict[str, float]:
    """The current session, the first one, or the newest ones. A single session is neither the first nor the last
    one."""
    if which == "current":
        return {outline.newest: 1.0}
    if outline.previous is None:
        return {}
    if which == "first":
        return {outline.first: 1.0}
    return {outline.newest: 1.0, outline.previous: PREVIOUS}


def _choose_narrower(narrower: Callable[[int, int], int], one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else narrower(one, other)


def _share(at: int, since: int | None, until: int | None, afterwards: int) -> float:
    if since is not None and at < since:
        return 0.0
    if until is None or at < until:
        return 1.0
    return max(0.0, 1 - (at - until) / afterwards) if afterwards else 0.0
