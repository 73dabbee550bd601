"""Turns: the events that an agent could see between two ends of its turns in a session."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recallog.access import MemoryAccess
from recallog.operations.parameters import At
from recallog.queries.event_lookup import PastMemory
from recallog.reactors.reactor import DueTrigger
from recallog.reading.read_session import Snapshot
from recallog.reading.readings import AgentReading
from recallog_projections.tables import RowKey
from recallog_projections.views import episodic, settings
from recallog_projections.views.episodic import RememberedEvent
from recallog_projections.views.trust import SourceClasses
from recallog_schemas import kinds
from recallog_schemas.kinds import SourceClass
from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.views import Remembered

_FIRST_EVENTS = 2 * facts_limits.EXTRACTED_EVENTS
"""The number of events that the first read of each log returns. Most turns are shorter, and end just before the
read."""
_REFLECTED = "agent.reflected"


class TurnEvent(NamedTuple):
    """An event of a turn, and its source class."""

    shown: Remembered
    trust: SourceClass


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """One turn of an agent in a session, or without a session if that is None."""

    space: str
    agent: str
    session: str | None
    since: int
    """The offset at which its previous turn ended; -1 if it is the first one."""
    end: int
    """The offset at which it ended."""

    def newest_of(self, snapshot: Snapshot, memories: Sequence[RememberedEvent]) -> Sequence[TurnEvent]:
        """The newest of `memories` that belong to the turn, have a text, and are from a source from which the space
        makes facts."""
        found: list[TurnEvent] = []
        sources = SourceClasses(snapshot.row(settings.SPACES, self.space))
        for memory in reversed(memories):
            if memory.offset <= self.since or len(found) == facts_limits.EXTRACTED_EVENTS:
                break
            if memory.offset < self.end:
                shown = snapshot.make_remembered(memory.offset, memory.data, memory.text)
                kind = kinds.kind_of(shown.event.kind)
                if shown.event.is_erased or not sources.allows("facts", shown.event):
                    continue
                if shown.event.session == self.session and kind.recalled and kind.name != _REFLECTED and shown.text:
                    found.append(TurnEvent(shown, sources.class_of(shown.event)))
        return found[::-1]


async def events_of(reading: AgentReading, turn: AgentTurn) -> Sequence[TurnEvent]:
    """The newest events of a turn that its agent could see, that have a text, and that the space makes facts from,
    oldest first.

    There are at most `limits.EXTRACTED_EVENTS`. Reflections are left out, since they are based on the other events. If
    the views have dropped events of the turn, the space is folded up to its end.
    """
    log_events = reading.log_events
    newest = min(_FIRST_EVENTS, log_events)
    while True:
        space = RowKey(settings.SPACES.name, turn.space)
        snapshot = await reading.snapshot([space], episodic.logs(turn.space, turn.agent, newest))
        tails = snapshot.tail(episodic.OWN, turn.space, turn.agent), snapshot.tail(episodic.SHARED, turn.space)
        found = turn.newest_of(snapshot, episodic.complete(*tails))
        start = episodic.kept_from(*tails)
        if start is None or start <= turn.since or len(found) >= facts_limits.EXTRACTED_EVENTS:
            return found
        if newest == log_events:
            break
        newest = min(8 * newest, log_events)
    past = PastMemory(reading)
    return turn.newest_of(snapshot, await past.until(turn.end, log_events))


async def of_trigger(access: MemoryAccess, trigger: DueTrigger) -> Sequence[TurnEvent]:
    """The events that the agent of a trigger could see in the turn whose end made it due, oldest first."""
    turn = AgentTurn(trigger.space, trigger.agent, trigger.session, trigger.since, trigger.offset)
    return await access.of_agent(trigger.space, trigger.agent, At(), events_of, turn)
