"""Beliefs, reflections that are due, and what a reactor did about them."""

from collections.abc import Iterable
from typing import Self

from recallog_schemas import triggers
from recallog_schemas.errors import NothingDue
from recallog_schemas.event import Event, Position
from recallog_schemas.views.base import ComputedAt, Remembered, View, lines


class Belief(Remembered):
    """One reflection of an agent. `text` is the belief."""

    based_on: tuple[str, ...]
    """Ids of the events it rests on, as the agent named them."""


class BeliefsView(ComputedAt):
    """What an agent has come to believe, oldest first; only what `reader` may see of it, where one is named."""

    space: str
    agent: str
    reader: str | None
    beliefs: tuple[Belief, ...]

    def format(self) -> str:
        """The beliefs, one a line; `(no beliefs)` where there are none."""
        return lines(self.beliefs) or "(no beliefs)"


class Counted(Remembered):
    """One event that counts towards a reflection."""

    importance: float
    """0 to 1, of its kind when it was said."""


class ReflectionView(ComputedAt):
    """Whether an agent owes a reflection, since when, and on what."""

    space: str
    agent: str
    due: bool
    threshold: int | None
    """How many events make one due; None: none ever is."""
    events: int
    """Those that the agent could see since its last reflection."""
    since: Position | None
    """From this record on it is due. None where it is not, or where that is further back than the views keep."""
    last: Position | None
    """The agent's last reflection (or failed one), from which the count starts; None before the first."""
    turn: int
    """The space's turn."""
    trigger: str | None
    """What an answer names as its cause; None where none is due."""
    on: tuple[Counted, ...]
    """The newest of the events that are counted, at most 20, oldest first."""

    def answer(
        self,
        belief: str,
        based_on: Iterable[str] | None = None,
        *,
        turn: int | None = None,
        session: str | None = None,
    ) -> Event:
        """The `agent.reflected` that answers the trigger, ready to be published: of several answers the first counts.

        `based_on` are ids of events, by default those of `on`; `turn` is the space's by default. Raises `NothingDue`,
        or pydantic's `ValidationError`.
        """
        trigger = triggers.parse(self.trigger)
        if trigger is None:
            raise NothingDue(
                f"{self.agent!r} owes no reflection in {self.space!r}: {self.events} of {self.threshold} events. "
                "Publish an agent.reflected of your own, or wait until one is due"
            )
        ids = [shown.event.id for shown in self.on] if based_on is None else list(based_on)
        return Event(
            id=trigger.answer_id,
            space=self.space,
            session=session,
            agent=self.agent,
            kind="agent.reflected",
            turn=self.turn if turn is None else turn,
            payload={"belief": belief, "based_on": ids},
            causation_id=trigger.id,
        )


class PendingTrigger(View):
    """A reflection that is due and not answered yet."""

    space: str
    agent: str
    trigger: str
    events: int
    threshold: int


class Reaction(View):
    """What a reactor did about one trigger."""

    space: str
    agent: str
    trigger: str
    kind: str
    """agent.reflected, or reflection.failed."""
    text: str
    """The belief, or why there is none."""
    based_on: tuple[str, ...]
    position: Position
    """Of the answer that counts: an earlier one, where somebody else was faster."""

    @classmethod
    def of(cls, event: Event, position: Position) -> Self | None:
        """What the event at `position` did about the trigger that it names; None where it names none."""
        trigger = triggers.named_by(event)
        if trigger is None:
            return None
        return cls(
            space=event.space,
            agent=event.agent,
            trigger=trigger.id,
            kind=event.kind,
            text=event.text or str(event.payload.get("reason", "")),
            based_on=tuple(event.payload.get("based_on", ())),
            position=position,
        )


class Unreflected(View):
    """An agent with a memory of its own that does not reflect: its window no longer holds what it has seen."""

    space: str
    agent: str
    turn: int
    """The highest turn in which it acted."""
