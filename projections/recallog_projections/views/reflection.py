"""Which agents owe a reflection.

A reflection is due when the events that an agent could see since its last one reach its threshold. Nothing is counted
here: the logs of `episodic` know how many entries they ever had, so an agent's row keeps where they stood at its last
answer, and the count is the difference. An event therefore costs this view nothing, however many agents see it; a row
is written by an agent's answers and thresholds alone.

A trigger stands as long as count and threshold say so, and writes nothing: after any rebuild exactly the unanswered
ones stand.
"""

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from recallog_projections.projection import LogName, RowKey, Table
from recallog_projections.rows import Rows
from recallog_projections.views.episodic import OWN, SHARED
from recallog_schemas import Record, triggers


class Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's reflections so far."""

    threshold: int | None = None
    """As `agent.configured` set it; None: it owes none."""
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
    """The count at which the trigger began, or will begin, to stand."""
    since: int | None = None
    """Instead: the offset of the setting that made it stand."""

    @property
    def reflects(self) -> bool:
        """Whether it owes reflections, or has given one."""
        return self.threshold is not None or self.answered >= 0

    def count(self, own: int, shared: int) -> int:
        """The events it could see since its last answer, where its logs have had `own` and `shared` entries."""
        return own - self.own + shared - self.shared - self.passed

    def is_due(self, own: int, shared: int) -> bool:
        return self.threshold is not None and self.count(own, shared) >= self.threshold


AGENTS = Table("reflection.agents", Agent)


class Reflection:
    """Fold of answers and thresholds. It is folded after `episodic`, whose logs it measures."""

    name: ClassVar[str] = "reflection"
    version: ClassVar[int] = 1
    kinds = triggers.ANSWERS | {"agent.configured"}
    tables = (AGENTS,)

    def needs(self, record: Record) -> Iterable[RowKey]:
        event = record.event
        yield RowKey(AGENTS.name, event.space, event.agent)
        yield RowKey(OWN.name, event.space, event.agent)
        yield RowKey(SHARED.name, event.space)

    def apply(self, rows: Rows, record: Record) -> None:
        event = record.event
        agent = rows.get(AGENTS, event.space, event.agent) or Agent()
        own, shared = rows.total(OWN, event.space, event.agent), rows.total(SHARED, event.space)
        if event.kind == "agent.configured":
            if "reflection_threshold" in event.payload:
                agent = _configured(agent, event.payload["reflection_threshold"], own, shared, record.offset)
                rows.put(AGENTS, agent, event.space, event.agent)
        elif record.reached:
            named = triggers.named_by(event)
            if named is None or named.ordinal >= agent.ordinal:
                agent = _answered(agent, own, shared, record.offset)
            elif event.kind == "agent.reflected":
                agent = msgspec.structs.replace(agent, passed=agent.passed + 1)
            rows.put(AGENTS, agent, event.space, event.agent)


def _answered(agent: Agent, own: int, shared: int, offset: int) -> Agent:
    return Agent(agent.threshold, agent.ordinal + 1, offset, own, shared, crossing=agent.threshold)


def _configured(agent: Agent, threshold: int | None, own: int, shared: int, offset: int) -> Agent:
    """The agent with another threshold. A trigger that stands before and after goes on standing as it did."""
    stood = agent.is_due(own, shared)
    changed = msgspec.structs.replace(agent, threshold=threshold)
    if not changed.is_due(own, shared):
        return msgspec.structs.replace(changed, crossing=threshold, since=None)
    return changed if stood else msgspec.structs.replace(changed, crossing=None, since=offset)


def logs(space: str, agent: str, newest: int = 0) -> list[tuple[LogName, int]]:
    """The logs whose totals `Agent.count` takes, with their newest entries."""
    return [(LogName(OWN.name, space, agent), newest), (LogName(SHARED.name, space), newest)]
