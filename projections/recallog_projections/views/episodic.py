"""What an agent remembers of late: its own events, those addressed to it, and the shared ones of its space."""

import dataclasses
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import ClassVar

import msgspec

from recallog_projections.rows import Rows
from recallog_projections.tables import Log, LogName, RowKey, Tail
from recallog_projections.views import settings, visibility
from recallog_schemas import Record, kinds, limits


class RememberedEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One remembered event: where it lies, its bytes as they stand in the ledger, and what salience needs of it."""

    offset: int
    data: bytes
    turn: int
    importance: float
    text: str | None
    """The event in words; None where it is too long to keep it twice: then it is that of `Event.text`."""
    action: bool = False
    """Shown among the actions of its agent."""


OWN = Log("episodic.own", RememberedEvent, limits.LOG_EVENTS_KEPT)
SHARED = Log("episodic.shared", RememberedEvent, limits.LOG_EVENTS_KEPT)


class Episodic:
    """Fold of every memorable event into bounded logs.

    One log per agent (its own events, and those addressed to it) and one per space (shared events), so that an event
    costs the same whether ten agents or ten thousand share the space, and an agent that comes late still remembers
    what was shared before. Readers merge the two by offset.
    """

    name: ClassVar[str] = "episodic"
    version: ClassVar[int] = 3

    def __init__(self, keep: int = limits.LOG_EVENTS_KEPT) -> None:
        """`keep` is how many of the newest events each log keeps."""
        self._own, self._shared = (dataclasses.replace(log, keep=keep) for log in (OWN, SHARED))
        self.tables = (self._own, self._shared)

    def needs(self, record: Record) -> Iterable[RowKey]:
        return (RowKey(settings.SPACES.name, record.event.space),) if record.memorable else ()

    def apply(self, rows: Rows, record: Record) -> None:
        if not record.memorable:
            return
        event = record.event
        space = rows.get(settings.SPACES, event.space)
        kind = settings.kind_of(space, event.kind)
        text = kind.text(event.payload)
        ready = text if len(text) <= limits.STORED_TEXT_CHARS_MAX else None
        action = kind.role == kinds.ACTION
        memory = RememberedEvent(record.offset, record.data, event.turn, kind.importance, ready, action)
        if visibility.is_shared(event, space):
            rows.append(self._shared, memory, event.space)
        else:
            for reader in visibility.readers(event):
                rows.append(self._own, memory, event.space, reader)


def logs(space: str, agent: str, newest: int) -> list[tuple[LogName, int]]:
    """What a reader asks the store for to see the newest `newest` events that `agent` may see."""
    return [(LogName(OWN.name, space, agent), newest), (LogName(SHARED.name, space), newest)]


def merge(own: Tail, shared: Tail) -> list[RememberedEvent]:
    """The memories of both logs in ledger order."""
    memories = OWN.decode_all(own.entries)
    memories += SHARED.decode_all(shared.entries)
    memories.sort(key=attrgetter("offset"))
    return memories


def kept_from(own: Tail, shared: Tail) -> int | None:
    """The offset from which on both logs are complete, None where they always were.

    Below it one log still holds events where the other has dropped its own, so what is left is not all there was.
    Both tails must have been read whole.
    """
    cut = [
        OWN.decode(tail.entries[0]).offset for tail in (own, shared) if tail.entries and tail.total > len(tail.entries)
    ]
    return max(cut, default=None)


def complete(own: Tail, shared: Tail) -> list[RememberedEvent]:
    """The memories of both logs in ledger order, from where on both are complete. Both tails must be whole."""
    start = kept_from(own, shared) or 0
    return [memory for memory in merge(own, shared) if memory.offset >= start]


def window(memories: Sequence[RememberedEvent], size: int) -> list[RememberedEvent]:
    """The newest `size` of `memories`, oldest first."""
    return list(memories[-size:])
