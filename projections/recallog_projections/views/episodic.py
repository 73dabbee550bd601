"""Episodic view: the newest events that each agent may see (its own, those addressed to it, and shared ones).

The newest actions of each agent have a log of their own, so that other events do not push them out of prompts.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from operator import attrgetter
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, LogName, Tail
from recallog_projections.views import settings, visibility
from recallog_schemas import Record, limits
from recallog_schemas.event import ERASED_TEXT, ERASED_VERSION


class RememberedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One remembered event: its offset, its bytes in the ledger, and the fields that salience reads."""

    offset: int
    data: bytes
    turn: int
    importance: float
    text: str | None
    """The event's text; None means `Event.text`, if it exceeds `limits.STORED_TEXT_CHARS_MAX`."""


OWN = Log("episodic.own", RememberedEvent, limits.LOG_EVENTS_KEPT)
SHARED = Log("episodic.shared", RememberedEvent, limits.LOG_EVENTS_KEPT)
ACTIONS = Log("episodic.actions", RememberedEvent, limits.PROMPT_ACTIONS)
"""By agent: the newest events by itself whose kind has the role `action`."""


class Episodic:
    """Fold of every memorable event into bounded logs.

    There is one log per agent (its own events, and those addressed to it) and one per space (shared events). The cost
    of an event does not depend on the number of agents, and a new agent sees earlier shared events. Readers merge both
    logs by offset. An action is also appended to a short log of the actions of its agent.
    """

    name: ClassVar[str] = "episodic"
    version: ClassVar[int] = 4
    ends_runs: ClassVar[Sequence[str]] = ()

    def __init__(self, keep: int = limits.LOG_EVENTS_KEPT) -> None:
        """`keep` is the number of newest events that each log of memories retains."""
        self._own, self._shared = (dataclasses.replace(log, keep=keep) for log in (OWN, SHARED))
        self.tables = (self._own, self._shared, ACTIONS)

    def apply(self, rows: Rows, run: Sequence[Record]) -> None:
        space = run[0].event.space
        plans = settings.plans(rows, space)
        shared: list[RememberedEvent] = []
        own = defaultdict[str, list[RememberedEvent]](list)
        actions = defaultdict[str, list[RememberedEvent]](list)
        for record in run:
            if not record.memorable:
                continue
            event = record.event
            plan = plans[event.kind]
            text = plan.kind.text(event.payload) if event.envelope != ERASED_VERSION else ERASED_TEXT
            ready = text if len(text) <= limits.STORED_TEXT_CHARS_MAX else None
            memory = RememberedEvent(record.offset, record.data, event.turn, plan.kind.importance, ready)
            if event.audience is not None:
                for reader in visibility.readers(event):
                    own[reader].append(memory)
            elif plan.shared:
                shared.append(memory)
            else:
                own[event.agent].append(memory)
            if plan.is_action:
                actions[event.agent].append(memory)
        if shared:
            rows.extend(self._shared, shared, space)
        for reader, memories in own.items():
            rows.extend(self._own, memories, space, reader)
        for agent, memories in actions.items():
            rows.extend(ACTIONS, memories, space, agent)


def logs(space: str, agent: str, newest: int) -> list[tuple[LogName, int]]:
    """The logs, with numbers of entries, that contain the newest `newest` events that `agent` may see."""
    return [(LogName(OWN.name, space, agent), newest), (LogName(SHARED.name, space), newest)]


def action_log(space: str, agent: str) -> tuple[LogName, int]:
    """The log, with its number of entries, of the newest actions of `agent`."""
    return LogName(ACTIONS.name, space, agent), limits.PROMPT_ACTIONS


def merge(own: Tail, shared: Tail) -> list[RememberedEvent]:
    """The events of both logs in ledger order."""
    memories = OWN.decode_all(own.entries)
    memories += SHARED.decode_all(shared.entries)
    memories.sort(key=attrgetter("offset"))
    return memories


def kept_from(own: Tail, shared: Tail) -> int | None:
    """The offset from which both logs are complete; None if neither log has dropped entries.

    Before it one log has dropped entries that the other may still hold. Both tails must be complete reads.
    """
    cut = [
        OWN.decode(tail.entries[0]).offset for tail in (own, shared) if tail.entries and tail.total > len(tail.entries)
    ]
    return max(cut, default=None)


def newer_than(offset: int, own: Tail, shared: Tail) -> int | None:
    """How many events are newer than the one at `offset`; None if a log has dropped some of them.

    Both tails must be complete reads.
    """
    start = kept_from(own, shared)
    if start is not None and start > offset:
        return None
    return sum(memory.offset > offset for memory in merge(own, shared))


def complete(own: Tail, shared: Tail) -> list[RememberedEvent]:
    """The events of both logs in ledger order, from `kept_from` on. Both tails must be complete reads."""
    start = kept_from(own, shared) or 0
    return [memory for memory in merge(own, shared) if memory.offset >= start]


def window(memories: Sequence[RememberedEvent], size: int) -> list[RememberedEvent]:
    """The newest `size` of `memories`, oldest first."""
    return list(memories[-size:])
