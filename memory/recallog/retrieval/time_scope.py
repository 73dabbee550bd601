"""The scope in time of a question: which memories are of the days or of the conversation that it names.

A scope prefers memories and excludes none, since people also tell later what happened on a day. Times that ingest
invents are in no scope, and none is measured from them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time

from recallog.retrieval.dates import Expression
from recallog_projections.index.engines.engine import Filter
from recallog_projections.views.outline import Outline
from recallog_schemas.invented_times import is_invented
from recallog_schemas.timestamps import micros, moment_of

_DAY = 86_400 * 1_000_000
AFTERWARDS = 7 * _DAY
"""How long after the days that a question names memories still count, less and less."""
PREVIOUS = 0.5
"""Share of the session before the newest one in "our last conversation": the newest may be that of the question."""


@dataclass(frozen=True, slots=True)
class TimeScope:
    """The times and sessions that a question names."""

    ranges: Sequence[tuple[int, int]] = ()
    """Microseconds since 1970, from the first to before the second."""
    sessions: Mapping[str, float] = field(default_factory=dict)
    """By session, "" for events without one: how far it is meant, from 0 to 1."""

    def share(self, session: str, at: int) -> float:
        """How far a memory is in the scope: 1 within its days, less in the week after them, else 0."""
        of_session = self.sessions.get(session, 0.0)
        if not self.ranges or is_invented(moment_of(at)):
            return of_session
        return max(of_session, *(_share(at, since, until) for since, until in self.ranges))

    def filters(self, wanted: Filter) -> Iterator[Filter]:
        """The parts of the filter `wanted` that are in the scope."""
        for since, until in self.ranges:
            yield replace(
                wanted,
                since=since if wanted.since is None else max(since, wanted.since),
                until=until + AFTERWARDS if wanted.until is None else min(until + AFTERWARDS, wanted.until),
            )
        if wanted.session is None:
            for session in self.sessions:
                yield replace(wanted, session=session)


def scope(expressions: Sequence[Expression], now: datetime | None, outline: Outline | None) -> TimeScope | None:
    """The scope of a question with these expressions; None if they name no time that is known.

    `now` is the time of the question; None if it is unknown.
    """
    today = None if now is None or is_invented(now) else now.astimezone(UTC).date()
    ranges = [
        (micros(datetime.combine(first, time(), UTC)), micros(datetime.combine(last, time(), UTC)) + _DAY)
        for expression in expressions
        for first, last in expression.days(today)
    ]
    sessions: dict[str, float] = {}
    for expression in expressions:
        if expression.conversation is not None and outline is not None:
            sessions |= _sessions(outline, first=expression.conversation == "first")
    return TimeScope(ranges, sessions) if ranges or sessions else None


def _sessions(outline: Outline, *, first: bool) -> dict[str, float]:
    """The first session, or the newest ones. A space with one session has no first and last one."""
    if outline.previous is None:
        return {}
    if first:
        return {outline.first: 1.0}
    return {outline.newest: 1.0, outline.previous: PREVIOUS}


def _share(at: int, since: int, until: int) -> float:
    return 1.0 if since <= at < until else max(0.0, 1 - (at - until) / AFTERWARDS) if at >= until else 0.0
