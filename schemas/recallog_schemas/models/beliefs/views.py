"""The beliefs of an agent, and its due reflections."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from recallog_schemas import triggers
from recallog_schemas.errors import NothingDue
from recallog_schemas.event import Event, Position
from recallog_schemas.kinds.trust import find_least, state_class
from recallog_schemas.views.base import Bounded, EventLine, OfAgent, Remembered, Sourced, count_noun, event_lines


class Belief(Remembered):
    """One reflection of an agent. `text` is the belief."""

    based_on: tuple[str, ...]
    """Ids of the events that the agent named as evidence."""


class BeliefsView(OfAgent, Bounded):
    """The beliefs of an agent, oldest first; with a `reader`, only those that the reader may see.

    If not all fit, the older ones are left out.
    """

    list_field: ClassVar[str] = "beliefs"
    kept: ClassVar[Literal["first", "last"]] = "last"

    reader: str | None
    """The agent that may see the beliefs; None: the beliefs are not filtered."""
    beliefs: tuple[Belief, ...]
    """The beliefs, oldest first."""

    def lines(self, events: Iterable[EventLine]) -> list[str]:
        """The lines of `events` for the reader, or for the agent if there is none."""
        return event_lines(events, self.agent if self.reader is None else self.reader, self.dates)

    def format(self) -> str:
        """The beliefs, one per line; `(no beliefs)` if there are none."""
        return "\n".join(self.lines(self.beliefs)) or "(no beliefs)"


class Counted(Remembered, Sourced):
    """One event that counts towards a reflection."""

    importance: float
    """0 to 1: the importance of its kind when it was published."""


class ReflectionView(OfAgent, Bounded):
    """Whether a reflection of an agent is due, since which record, and the events to reflect on."""

    list_field: ClassVar[str] = "on"
    kept: ClassVar[Literal["first", "last"]] = "last"

    due: bool
    """Whether a reflection is due."""
    threshold: int | None
    """The number of events that makes a reflection due; None: reflection is off."""
    events: int
    """The number of events that the agent could see since its last reflection."""
    since: Position | None
    """The record that made the reflection due. None if no reflection is due, or if the views have dropped that
    record."""
    last: Position | None
    """The agent's last reflection (or failed one), from which the count starts; None before the first."""
    turn: int
    """The space's turn."""
    trigger: str | None
    """The trigger's id, which an answer gives as its cause; None if no reflection is due."""
    on: tuple[Counted, ...]
    """The newest of the counted events that the space makes beliefs from, at most 20, oldest first."""

    def format(self) -> str:
        """Whether a reflection is due, then the events to reflect on, one per line."""
        since_last = "so far" if self.last is None else f"since the last one at {self.last}"
        if self.threshold is None:
            return f"never due: {self.agent} has no threshold; {count_noun(self.events, 'event')} {since_last}"
        count = f"{self.events:,} of {self.threshold:,} events {since_last}"
        if not self.due:
            return f"not due: {count}"
        since = "since before the first event in the views" if self.since is None else f"since {self.since}"
        return "\n".join([f"due {since}: {count}", *self.lines(self.on)])

    def answer(
        self,
        belief: str,
        based_on: Iterable[str] | None = None,
        *,
        turn: int | None = None,
        session: str | None = None,
    ) -> Event:
        """The `agent.reflected` event that answers the trigger, to be published. The first answer to a trigger counts.

        `based_on` are ids of events, by default those of `on`; `turn` is the space's by default. Raises `NothingDue`,
        or pydantic's `ValidationError`.
        """
        trigger = triggers.parse(self.trigger)
        if trigger is None:
            raise NothingDue(
                f"no reflection of {self.agent!r} is due in {self.space!r}: {self.events} of {self.threshold} events. "
                "Wait until one is due, or publish an agent.reflected event without a trigger"
            )
        ids = [shown.event.id for shown in self.on] if based_on is None else list(based_on)
        least = find_least(shown.trust for shown in self.on if shown.event.id in ids)
        return Event(
            id=trigger.answer_id,
            space=self.space,
            session=session,
            agent=self.agent,
            kind="agent.reflected",
            turn=self.turn if turn is None else turn,
            payload={"belief": belief, "based_on": ids, **state_class(least)},
            causation_id=trigger.id,
        )
