"""Reflection view: which agents reflect, what they have answered, and when each of them falls due.

A reflection is due when the events that an agent could see since its last one reach its threshold. Nothing is counted
here: the logs of `episodic` know how many entries they ever had, so an agent's row keeps the totals of its last answer,
and the count is the difference.

A trigger is not stored. It is pending as long as count and threshold say so: after any rebuild exactly the unanswered
ones are.

A shared event raises the count of every agent of its space and writes nothing here, so its cost does not depend on how
many agents there are. Instead `reflection.due` has a row for each agent with a threshold, under the total of the shared
log at which the agent falls due. In key order the agents that are due come first, and a reader stops at the first row
beyond the present total: the cost is that of the agents that are due. An event that is not shared moves the row of
each agent that sees it by one. Once an agent is due, its row stays where it is until an answer or another threshold
moves it.

In a space without thresholds an event costs the look-up of one row that does not exist.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import LogName, RowKey, Table
from recallog_projections.views import settings, visibility
from recallog_projections.views.episodic import OWN, SHARED
from recallog_schemas import Event, Record, triggers


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's reflections so far."""

    threshold: int | None = None
    """As `agent.configured` set it; None: it does not reflect."""
    ordinal: int = 0
    """Its answers so far."""
    answered: int = -1
    """The offset of the last one; -1 before the first."""
    own: int = 0
    """Entries that its own log had then."""
    shared: int = 0
    """Entries that the space's log had then."""
    passed: int = 0
    """Reflections of its own since then that answered nothing: they are in the logs, and count for others only."""
    crossing: int | None = None
    """The count at which the trigger became, or will become, pending."""
    since: int | None = None
    """Instead: the offset of the setting that made it pending."""
    due_at: int | None = None
    """Where its row of `reflection.due` is: the entries of the space's log with which it falls due, or fell due. None
    without a threshold."""

    @property
    def reflects(self) -> bool:
        """Whether it has a threshold, or has given a reflection."""
        return self.threshold is not None or self.answered >= 0

    def count(self, own: int, shared: int) -> int:
        """The events it could see since its last answer, where its logs have had `own` and `shared` entries."""
        return own - self.own + shared - self.shared - self.passed

    def is_due(self, own: int, shared: int) -> bool:
        return self.threshold is not None and self.count(own, shared) >= self.threshold

    def falls_due_at(self, own: int) -> int | None:
        """The entries of the space's log with which it is due, where its own log has had `own`."""
        return None if self.threshold is None else max(0, self.threshold - self.count(own, 0))


class Space(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A space in which agents reflect; there is no row for any other."""

    agents: int
    """How many of its agents have a threshold."""


class Due(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The agent that is the key, see `due_key`."""


AGENTS = Table("reflection.agents", Agent)
SPACES = Table("reflection.spaces", Space)
DUE = Table("reflection.due", Due, write_only=True)

_KINDS = triggers.ANSWERS | {"agent.configured"}


class Reflection:
    """Fold of answers, thresholds and what reflecting agents see. It is folded after `episodic`, whose logs it
    measures."""

    name: ClassVar[str] = "reflection"
    version: ClassVar[int] = 2
    tables = (AGENTS, SPACES, DUE)

    def needs(self, record: Record) -> Iterable[RowKey]:
        event = record.event
        yield RowKey(SPACES.name, event.space)
        if event.kind in _KINDS:
            yield RowKey(AGENTS.name, event.space, event.agent)
            yield RowKey(OWN.name, event.space, event.agent)
            yield RowKey(SHARED.name, event.space)

    def further_needs(self, rows: Rows, record: Record) -> Iterable[RowKey]:
        event = record.event
        if record.memorable and rows.get(SPACES, event.space) is not None:
            yield RowKey(SHARED.name, event.space)
            if not visibility.is_shared(event, rows.get(settings.SPACES, event.space)):
                yield from (RowKey(AGENTS.name, event.space, reader) for reader in visibility.readers(event))

    def apply(self, rows: Rows, record: Record) -> None:
        event = record.event
        if record.memorable and rows.get(SPACES, event.space) is not None:
            _bring_nearer(rows, event)
        if event.kind in _KINDS:
            _answer_or_configure(rows, record)


def _bring_nearer(rows: Rows, event: Event) -> None:
    """Move the rows of those that see `event` in their own logs, unless they are due already."""
    space = event.space
    if visibility.is_shared(event, rows.get(settings.SPACES, space)):
        return
    shared = rows.total(SHARED, space)
    for reader in visibility.readers(event):
        agent = rows.get(AGENTS, space, reader)
        if agent is not None and agent.due_at is not None and agent.due_at > shared:
            _put(rows, space, reader, agent, msgspec.structs.replace(agent, due_at=agent.due_at - 1))


def _answer_or_configure(rows: Rows, record: Record) -> None:
    event = record.event
    before = agent = rows.get(AGENTS, event.space, event.agent) or Agent()
    own, shared = rows.total(OWN, event.space, event.agent), rows.total(SHARED, event.space)
    if event.kind == "agent.configured":
        if "reflection_threshold" not in event.payload:
            return
        agent = _configured(agent, event.payload["reflection_threshold"], own, shared, record.offset)
    elif record.reached:
        named = triggers.named_by(event)
        if named is None or named.ordinal >= agent.ordinal:
            agent = _answered(agent, own, shared, record.offset)
        elif event.kind == "agent.reflected":
            agent = msgspec.structs.replace(agent, passed=agent.passed + 1)
    else:
        return
    _put(rows, event.space, event.agent, before, msgspec.structs.replace(agent, due_at=agent.falls_due_at(own)))


def _answered(agent: Agent, own: int, shared: int, offset: int) -> Agent:
    return Agent(agent.threshold, agent.ordinal + 1, offset, own, shared, crossing=agent.threshold)


def _configured(agent: Agent, threshold: int | None, own: int, shared: int, offset: int) -> Agent:
    """The agent with another threshold. A trigger that is pending before and after stays as it was."""
    was_due = agent.is_due(own, shared)
    changed = msgspec.structs.replace(agent, threshold=threshold)
    if not changed.is_due(own, shared):
        return msgspec.structs.replace(changed, crossing=threshold, since=None)
    return changed if was_due else msgspec.structs.replace(changed, crossing=None, since=offset)


def _put(rows: Rows, space: str, name: str, before: Agent, after: Agent) -> None:
    """Write an agent's row, and with it the rows of what is due."""
    if before.due_at != after.due_at:
        if before.due_at is not None:
            rows.delete(DUE, space, due_key(before.due_at), name)
        if after.due_at is not None:
            rows.put(DUE, Due(), space, due_key(after.due_at), name)
        _count(rows, space, (after.due_at is not None) - (before.due_at is not None))
    rows.put(AGENTS, after, space, name)


def _count(rows: Rows, space: str, more: int) -> None:
    """Count `more` agents with a threshold, -1 to 1."""
    if not more:
        return
    counted = rows.get(SPACES, space)
    agents = more + (counted.agents if counted is not None else 0)
    if agents:
        rows.put(SPACES, Space(agents), space)
    else:
        rows.delete(SPACES, space)


def due_key(total: int) -> str:
    """The owner of the rows of `reflection.due` whose agents fall due with `total` shared entries; it sorts like the
    number."""
    return f"{total:020d}"


def logs(space: str, agent: str, newest: int = 0) -> list[tuple[LogName, int]]:
    """The logs whose totals `Agent.count` takes, with their newest entries."""
    return [(LogName(OWN.name, space, agent), newest), (LogName(SHARED.name, space), newest)]
