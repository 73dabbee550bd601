"""Due work: the tables in which a reactor finds the triggers that are due, at a cost in proportion to their number.

Projections with a method `due` say which triggers an event makes due. `DueProjection` writes these to `due.now`, and
deletes them when they are closed.

Positions, times and counts do not sort together, so there are three tables. `due.now` holds, for the whole partition,
the triggers that one event made due, in the order of the ledger. A row has all that a reactor needs, and is deleted
when the trigger is closed. `due.at` holds triggers that fall due at a time: its rows have that time as key, for the
whole partition. Readers judge whether that time has come, by the time of each agent. `due.count` holds
agents that fall due at a count: its rows have that count as key, and a reader stops at the first row beyond the present
count. The rows of these two are written by the projections that know the time or the count.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from typing import ClassVar, NamedTuple, Protocol

import msgspec

from recallog_projections.projection import Projection
from recallog_projections.rows import Rows
from recallog_projections.tables import RowKey, Table
from recallog_schemas import Record, triggers
from recallog_schemas.errors import ProjectionError
from recallog_schemas.event import ERASED_VERSION
from recallog_schemas.triggers import Trigger


class Due(NamedTuple):
    """A trigger that an event makes due. One event makes a trigger of the same kind, agent and part due once."""

    kind: str
    """A name of your own that ends in `.due`, such as `greeting.due`."""
    agent: str
    """The agent that must answer."""
    part: str = ""
    """Distinguishes several triggers of one kind that one event makes due for one agent."""
    texts: tuple[tuple[str, str], ...] = ()
    """Texts for the reactor, each with a name."""
    entries: tuple[str, ...] = ()
    """Ids of entries or events for the reactor."""
    since: int = -1
    """The offset after which the reactor reads the ledger; -1 if it reads all of it, or nothing."""
    cause: str | None = None
    """The cause of the trigger in place of the event and `part`, such as the id of an entry. Further events with the
    same cause make nothing due until the trigger is closed."""


class NamesDue(Projection, Protocol):
    """A projection that makes triggers due."""

    def due(self, rows: Rows, record: Record) -> Iterable[Due]:
        """The triggers that the record makes due. It is called for each record of a run, of the same kinds, after all
        projections of the group have applied the run, and may read rows."""


class Work(msgspec.Struct, frozen=True, omit_defaults=True):
    """One trigger that is due, with what its reactor needs."""

    kind: str
    space: str
    agent: str
    trigger: str
    """The id of the trigger."""
    offset: int
    """The offset of the event that made it due."""
    cause: str
    """The id of that event."""
    at: int
    """When it happened, in microseconds since 1970."""
    turn: int
    session: str | None = None
    texts: tuple[tuple[str, str], ...] = ()
    """As in `Due`, and so are `entries` and `since`."""
    entries: tuple[str, ...] = ()
    since: int = -1


class Scheduled(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One trigger that falls due at a time."""

    kind: str
    space: str
    agent: str
    trigger: str
    """The id of the trigger."""
    at: int
    """The time from which it is due, in microseconds since 1970."""


class StandingTrigger(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The key of a trigger's row in `due.now`."""

    key: str


class Count(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An empty row: the address names the agent and when it falls due, see `count_key`."""


NOW = Table("due.now", Work, write_only=True, apart=True)
"""At ("", "", `now_key`)."""
STANDING = Table("due.standing", StandingTrigger)
"""At (space, "", id of the trigger)."""
AT = Table("due.at", Scheduled, write_only=True, apart=True)
"""At ("", "", `at_key`)."""
COUNT = Table("due.count", Count, write_only=True)
"""At (space, `count_key`, agent)."""


class DueProjection:
    """Keeps the triggers that the projections of its group make due until they are closed. It is folded after them."""

    name: ClassVar[str] = "due"
    version: ClassVar[int] = 3
    tables = (NOW, STANDING)

    def __init__(self, projections: Sequence[NamesDue], reserved: Collection[str] = ()) -> None:
        """`reserved` are kinds of triggers that none of `projections` may name."""
        self._reserved = reserved
        named = [(getattr(each, "kinds", None), each) for each in projections]
        kinds = frozenset(kind for of_one, _ in named for kind in of_one or ())
        self._of_any_kind = [each.due for of_one, each in named if of_one is None]
        self._of_kind = {
            kind: [each.due for of_one, each in named if of_one is None or kind in of_one] for kind in kinds
        }
        self.kinds = None if self._of_any_kind else kinds | triggers.CLOSINGS
        self.ends_runs = _ends_runs(projections)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        for record in run:
            if not record.reached or record.event.envelope == ERASED_VERSION:
                continue
            kind = record.event.kind
            if kind in triggers.CLOSINGS:
                _close(rows, record)
            found: list[Due] = []
            for due in self._of_kind.get(kind, self._of_any_kind):
                found += due(rows, record)
            if found:
                self._put(rows, record, found)

    def _put(self, rows: Rows, record: Record, found: Sequence[Due]) -> None:
        """Make triggers due, unless they are due already."""
        made = [(due, self._trigger(record, due)) for due in found]
        parts = defaultdict[tuple[str, str], int](int)
        for due, trigger in made:
            part = 0
            if due.cause is None:
                part = parts[due.kind, due.agent]
                parts[due.kind, due.agent] += 1
            standing_key = _standing_key(record, trigger)
            if rows.get(STANDING, *standing_key[1:]) is None:
                key = now_key(record.offset, record.event.space, trigger, due.agent, part)
                rows.put(NOW, _work(record, trigger, due), "", "", key)
                rows.put(STANDING, StandingTrigger(key), *standing_key[1:])

    def _trigger(self, record: Record, due: Due) -> Trigger:
        """Raises `ProjectionError` for a kind that is reserved, or whose name is not valid."""
        if due.kind in self._reserved or not _is_kind(due.kind):
            raise ProjectionError(
                f"{due.kind!r} cannot name a trigger of your own: use up to 32 lower case letters and _ before .due, "
                f"and none of {', '.join(sorted(triggers.built_in()))}"
            )
        cause = (due.part, record.event.id) if due.cause is None else (due.cause,)
        return triggers.caused_by(due.kind, record.event.space, due.agent, *cause)


def now_key(offset: int, space: str, trigger: Trigger, agent: str, part: int = 0) -> str:
    """The key of a trigger in `due.now`; sorts like the offset of its cause, then the parts of one agent's work."""
    return f"{now_prefix(offset, space, trigger.kind, agent)}{part:05d}/{trigger.cause}"


def now_prefix(offset: int, space: str, kind: str, agent: str) -> str:
    """The beginning of the keys in `due.now` of one agent's triggers of a kind that one event made due."""
    return f"{offset:020d}/{_owner(space, kind, agent)}/"


def at_key(at: int, space: str, trigger: Trigger, agent: str) -> str:
    """The key of a trigger in `due.at`; sorts like the time at which it falls due."""
    return f"{before(at)}/{_owner(space, trigger.kind, agent)}/{trigger.cause}"


def _owner(space: str, kind: str, agent: str) -> str:
    """The space, the kind and the agent of a trigger as one text: others never give the same text."""
    if f"/{kind}/" in f"/{space}/":  # the end of the space would be ambiguous; no name has a *
        space = space.replace("/", "*")
    return f"{space}/{kind}/{agent}"


def before(at: int) -> str:
    """The least key of the triggers that fall due at the time `at`, in microseconds since 1970, or later."""
    return f"{max(0, at):020d}"


def count_key(total: int) -> str:
    """The owner of the `due.count` rows of agents that fall due at `total` shared entries; sorts like `total`."""
    return f"{total:020d}"


@cache
def _is_kind(name: str) -> bool:
    """Whether a trigger of this kind, made due by an event, has an id that can be read."""
    return triggers.parse(triggers.caused_by(name, "", "").id) is not None


def _work(record: Record, trigger: Trigger, due: Due) -> Work:
    event = record.event
    return Work(
        due.kind,
        event.space,
        due.agent,
        trigger.id,
        record.offset,
        event.id,
        record.time,
        event.turn,
        event.session,
        due.texts,
        due.entries,
        due.since,
    )


def _standing_key(record: Record, trigger: Trigger) -> RowKey:
    return RowKey(STANDING.name, record.event.space, "", trigger.id)


def _close(rows: Rows, record: Record) -> None:
    trigger = triggers.named_by(record.event)
    if trigger is None:
        return
    address = _standing_key(record, trigger)[1:]
    standing = rows.get(STANDING, *address)
    if standing is not None:
        rows.delete(NOW, "", "", standing.key)
        rows.delete(STANDING, *address)


def _ends_runs(projections: Sequence[NamesDue]) -> Collection[str] | None:
    """The kinds at which a run ends because a trigger may be due or closed; None: all."""
    found = set(triggers.CLOSINGS)
    for each in projections:
        ends = getattr(each, "ends_runs", getattr(each, "kinds", None))
        if ends is None:
            return None
        found |= {*ends}
    return frozenset(found)
