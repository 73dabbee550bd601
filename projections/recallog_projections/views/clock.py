"""Clock view: what time it is for each agent, by the events that it sees.

That is the `at` of the newest of these events in the order of the ledger. It is not the latest `at`: one event of a
producer whose clock is wrong would otherwise age everything until the real time has caught up. Events that are ahead of
their records (`Record.is_ahead`) are counted, but set no clock. An entry or item sets no clock back: its `at` may be
the time of what it says.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_projections.views import settings
from recallog_schemas import Event, Record, kinds, limits, timestamps, triggers

_TICK = "clock.ticked"
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_HOUR = 3_600_000_000


class Now(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The time by the events of one log: those that all agents of a space see, or the others that one agent sees."""

    at: int = 0
    """The time of the newest one, in microseconds since 1970."""
    offset: int = -1
    """Its offset; -1 if there is none."""
    bound: int = -1
    """In the row of a space: an hour after which no event of the space happened, so that readers can skip what falls
    due later."""


class Ahead(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The events of a space whose `at` is ahead of their records."""

    events: int
    offsets: tuple[int, ...]
    """The offsets of the newest ones."""


NOW = Table("clock.now", Now)
"""At (space) for what all its agents see, and `clock.ticked`; at (space, agent) for the rest of what an agent sees."""
AHEAD = Table("clock.ahead", Ahead)
"""At (space)."""


class ClockProjection:
    """Fold of the events of a space, including bookkeeping, into the times of its agents.

    Events that the memory writes by itself, which are counts of reads and answers to triggers, do not move them.
    Otherwise reading a space of last year would age it by a year.
    """

    name: ClassVar[str] = "clock"
    version: ClassVar[int] = 3
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (NOW, AHEAD)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        newest: dict[str, Record] = {}
        latest = _EARLIEST
        for record in run:  # this loop has few calls, because every event passes it
            event = record.event
            plan = plans[event.kind]
            if not record.reached or not plan.kind.moves_time or (event.causation_id and not sets_time(event)):
                continue
            if record.is_ahead:
                _note(rows, record)
                continue
            if event.at > latest:
                latest = event.at
            is_entry = plan.kind.role == kinds.ENTRY
            if event.kind == _TICK or (plan.shared and event.audience is None and not is_entry):
                newest[""] = record
                continue
            for reader in (event.agent, *(event.audience or ())):
                if not (is_entry and _is_past(rows, newest, event, reader)):
                    newest[reader] = record
        if newest:
            _put(rows, space, newest, latest)


def sets_time(event: Event) -> bool:
    """Whether the time of an agent follows from an event that it sees: the memory has not written it by itself."""
    return kinds.kind_of(event.kind).moves_time and triggers.parse(event.causation_id) is None


def keys(space: str, agent: str) -> list[RowKey]:
    """The row keys of the two rows that `newer` compares, for an agent."""
    return [RowKey(NOW.name, space), RowKey(NOW.name, space, agent)]


def newer(one: Now | None, other: Now | None) -> Now | None:
    """The row with the newer event; None if there is no event."""
    return max((each for each in (one, other) if each and each.offset >= 0), key=attrgetter("offset"), default=None)


def _is_past(rows: Rows, newest: Mapping[str, Record], event: Event, reader: str) -> bool:
    """Whether an event is earlier than the time of a reader, which may follow from an earlier record of the run."""
    in_run = [newest[name] for name in ("", reader) if name in newest]
    if in_run:
        return event.at < max(in_run, key=attrgetter("offset")).event.at
    now = newer(*(rows.get(NOW, event.space, name) for name in ("", reader)))
    return now is not None and timestamps.micros(event.at) < now.at


def _put(rows: Rows, space: str, newest: Mapping[str, Record], latest: datetime) -> None:
    """Write the times of the readers of a run, and the hour that no event of the space is later than."""
    known, until = rows.get(NOW, space) or Now(), timestamps.micros(latest)
    bound = known.bound if until <= known.bound else -(-until // _HOUR) * _HOUR
    for reader, record in newest.items():
        at = until if record.event.at is latest else timestamps.micros(record.event.at)
        rows.put(NOW, Now(at, record.offset, -1 if reader else bound), space, reader)
    if "" not in newest and bound > known.bound:
        rows.put(NOW, Now(known.at, known.offset, bound), space)


def _note(rows: Rows, record: Record) -> None:
    """Count an event that is ahead."""
    known = rows.get(AHEAD, record.event.space) or Ahead(0, ())
    rows.put(AHEAD, Ahead(known.events + 1, (*known.offsets, record.offset)[-limits.AHEAD_NOTED :]), record.event.space)
