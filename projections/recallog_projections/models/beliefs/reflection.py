"""Reflection view: which agents reflect, what they have answered, and when each of them falls due.

A reflection is due when the events that an agent could see since its last one reach its threshold. This view has no
counters: the logs of `episodic` know how many entries they ever had. An agent's row stores these totals as of its last
answer, and the count is the difference.

Triggers are not stored. A trigger is pending while the count has reached the threshold, so that after a rebuild exactly
the unanswered ones are pending.

A shared event raises the count of every agent of its space and writes nothing here, so its cost does not depend on how
many agents there are. Instead `due.count` has a row for each agent with a threshold, under the total of the shared
log at which the agent falls due. In key order the agents that are due come first, and a reader stops at the first row
beyond the present total: the cost is that of the agents that are due. An event that is not shared moves the row of
each agent that sees it by one. Once an agent is due, only an answer or another threshold moves its row.

In a space without thresholds, an event costs one read of a row that does not exist.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import LogName, Table
from recallog_projections.views import due, settings, visibility
from recallog_projections.views.episodic import OWN, SHARED
from recallog_schemas import Record, triggers
from recallog_schemas.models.beliefs.triggers import ANSWERS


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of one agent's reflections."""

    threshold: int | None = None
    """The number of events that makes a reflection due, as set by `agent.configured`; None: it does not reflect."""
    ordinal: int = 0
    """The number of its answers."""
    answered: int = -1
    """The offset of the last answer; -1 before the first."""
    own: int = 0
    """The entries that its own log had had by then."""
    shared: int = 0
    """The entries that the space's log had had by then."""
    passed: int = 0
    """Its own reflections since then that answered nothing: they are in the logs, but count for other agents only."""
    crossing: int | None = None
    """The count at which the trigger became, or will become, pending."""
    since: int | None = None
    """The offset of the setting that made the trigger pending, if no event did."""
    due_at: int | None = None
    """The key of its row of `due.count`: the entries of the space's log at which it falls due, or fell due. None
    without a threshold."""

    @property
    def reflects(self) -> bool:
        """Whether it has a threshold, or has given a reflection."""
        return self.threshold is not None or self.answered >= 0

    def count(self, own: int, shared: int) -> int:
        """The events that it could see since its last answer, if its logs have had `own` and `shared` entries."""
        return own - self.own + shared - self.shared - self.passed

    def is_due(self, own: int, shared: int) -> bool:
        return self.threshold is not None and self.count(own, shared) >= self.threshold

    def falls_due_at(self, own: int) -> int | None:
        """The entries of the space's log at which it falls due, if its own log has had `own`; None: never."""
        return None if self.threshold is None else max(0, self.threshold - self.count(own, 0))


class Space(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A space in which agents reflect. Other spaces have no row."""

    agents: int
    """The number of its agents that have a threshold."""


AGENTS = Table("reflection.agents", Agent)
SPACES = Table("reflection.spaces", Space)

_KINDS = ANSWERS | {"agent.configured"}


class Reflection:
    """Folds answers, thresholds, and events that reflecting agents see. It follows `episodic`, whose logs it reads."""

    name: ClassVar[str] = "reflection"
    version: ClassVar[int] = 2
    ends_runs: ClassVar[Sequence[str]] = ()
    tables = (AGENTS, SPACES, due.COUNT)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        if rows.get(SPACES, space) is not None or any(record.event.kind in _KINDS for record in run):
            _Fold(rows, space, run).apply()


class _Fold:
    """The fold of a run. The logs of `episodic` have all its events already, so it counts them once more."""

    def __init__(self, rows: Rows, space: str, run: Sequence[Record]) -> None:
        self._rows, self._space, self._run = rows, space, run
        plans = settings.plans(rows, space)
        self._readers: list[Sequence[str] | None] = []
        """For each record the agents whose own log has it; None for a shared event."""
        for record in run:
            event = record.event
            if not record.memorable:
                self._readers.append(())
            elif event.audience is not None:
                self._readers.append(visibility.readers(event))
            else:
                self._readers.append(None if plans[event.kind].shared else (event.agent,))
        self._shared = rows.total(SHARED, space) - self._readers.count(None)
        self._to_come = Counter(reader for readers in self._readers for reader in readers or ())
        """By agent: the entries of its own log that are still to come."""

    def apply(self) -> None:
        reflects = self._rows.get(SPACES, self._space) is not None
        for record, readers in zip(self._run, self._readers, strict=True):
            if readers is None:
                self._shared += 1
            else:
                for reader in readers:
                    self._to_come[reader] -= 1
                if reflects:
                    self._move_due_rows(readers)
            if record.event.kind in _KINDS:
                self._answer_or_configure(record)
                reflects = self._rows.get(SPACES, self._space) is not None

    def _move_due_rows(self, readers: Iterable[str]) -> None:
        """Move the `due.count` rows of agents whose own log has an event, unless they are due already."""
        for reader in readers:
            agent = self._rows.get(AGENTS, self._space, reader)
            if agent is not None and agent.due_at is not None and agent.due_at > self._shared:
                after = msgspec.structs.replace(agent, due_at=agent.due_at - 1)
                _put(self._rows, self._space, reader, agent, after)

    def _answer_or_configure(self, record: Record) -> None:
        event, rows = record.event, self._rows
        before = agent = rows.get(AGENTS, event.space, event.agent) or Agent()
        own = rows.total(OWN, event.space, event.agent) - self._to_come[event.agent]
        if event.kind == "agent.configured":
            if "reflection_threshold" not in event.payload:
                return
            agent = _apply_threshold(agent, event.payload["reflection_threshold"], own, self._shared, record.offset)
        elif record.reached:
            named = triggers.named_by(event)
            if named is None or named.ordinal >= agent.ordinal:
                agent = _apply_answer(agent, own, self._shared, record.offset)
            elif event.kind == "agent.reflected":
                agent = msgspec.structs.replace(agent, passed=agent.passed + 1)
        else:
            return
        _put(rows, event.space, event.agent, before, msgspec.structs.replace(agent, due_at=agent.falls_due_at(own)))


def _apply_answer(agent: Agent, own: int, shared: int, offset: int) -> Agent:
    return Agent(agent.threshold, agent.ordinal + 1, offset, own, shared, crossing=agent.threshold)


def _apply_threshold(agent: Agent, threshold: int | None, own: int, shared: int, offset: int) -> Agent:
    """The agent with another threshold. A trigger that is pending before and after does not change."""
    was_due = agent.is_due(own, shared)
    changed = msgspec.structs.replace(agent, threshold=threshold)
    if not changed.is_due(own, shared):
        return msgspec.structs.replace(changed, crossing=threshold, since=None)
    return changed if was_due else msgspec.structs.replace(changed, crossing=None, since=offset)


def _put(rows: Rows, space: str, name: str, before: Agent, after: Agent) -> None:
    """Write an agent's row, and move its row of `due.count`."""
    if before.due_at != after.due_at:
        if before.due_at is not None:
            rows.delete(due.COUNT, space, due.count_key(before.due_at), name)
        if after.due_at is not None:
            rows.put(due.COUNT, due.Count(), space, due.count_key(after.due_at), name)
        _count(rows, space, (after.due_at is not None) - (before.due_at is not None))
    rows.put(AGENTS, after, space, name)


def _count(rows: Rows, space: str, more: int) -> None:
    """Add `more` (-1, 0 or 1) to the number of agents with a threshold."""
    if not more:
        return
    counted = rows.get(SPACES, space)
    agents = more + (counted.agents if counted is not None else 0)
    if agents:
        rows.put(SPACES, Space(agents), space)
    else:
        rows.delete(SPACES, space)


def logs(space: str, agent: str, newest: int = 0) -> list[tuple[LogName, int]]:
    """The logs whose totals are the arguments of `Agent.count`, each with the number of newest entries to read."""
    return [(LogName(OWN.name, space, agent), newest), (LogName(SHARED.name, space), newest)]
