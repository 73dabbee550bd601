"""Due triggers, and the answers of reactors to them."""

from datetime import datetime
from typing import ClassVar, Self

from recallog_schemas import names, triggers
from recallog_schemas.event import Event, Position
from recallog_schemas.views.base import Bounded, ListView, PageView, View, count_noun, one_line


class PendingTrigger(View):
    """A trigger that is due and not answered yet."""

    space: str
    """The name of the space."""
    agent: str
    """The name of the agent."""
    kind: str
    """What is due: reflection.due, migration.due (a session ended, whose working memory holds what its agent wants to
    keep), retraction.due (an erasure reaches what was made from its dependents), extraction.due (a turn ended, from
    which facts are extracted), consolidation.due (entries with a tier must be moved or archived), summary.due (such
    entries were archived), or daily.due (a turn ended, and the daily log of the agent is written); or a name of a
    projection of your own."""
    trigger: str
    """The id of the trigger."""
    events: int
    """For a reflection, the number of events that the agent could see since its last one; else the number of texts,
    entries, turns, plans or sessions that the answer is about."""
    threshold: int | None
    """The number of events that makes a reflection due; None for other kinds."""
    since: datetime | None = None
    """Since when it is due: the time of the event, or of the plan, that made it due. None for a reflection if the views
    have dropped that event, and for reflections after the first 100."""
    why: str | None = None
    """Why it is not answered, as far as this process knows: no reactor answers it, its model is misconfigured, or it
    has failed; None if a reactor will answer it."""

    def format(self) -> str:
        """Space, agent, kind and numbers in one line; since when it is due, and why it is not answered."""
        since = "" if self.since is None else f"  since {self.since:%Y-%m-%d %H:%M:%S}"
        why = "" if self.why is None else f"  ({one_line(self.why)})"
        return f"{self.space}  {self.agent}  {self.kind}  {self.amount}{since}{why}"

    @property
    def amount(self) -> str:
        """What the trigger is about, as a number."""
        if self.threshold is not None:
            return f"{self.events:,} of {self.threshold:,} events"
        one, more = triggers.kind_of(self.kind).counts
        return count_noun(self.events, one, more)


class PendingView(PageView[PendingTrigger]):
    """A page of the triggers that are due, by space and agent."""

    @classmethod
    def cursor_of(cls, item: PendingTrigger) -> str:
        """The cursor of the page after an item."""
        return names.join_names(":", item.space, item.agent, item.trigger)


class Reaction(View):
    """A reactor's answer to one trigger."""

    space: str
    """The name of the space."""
    agent: str
    """The name of the agent that the answer is for."""
    trigger: str
    """The id of the trigger."""
    kind: str
    """agent.reflected or reflection.failed; reaction.done or reaction.failed for other triggers than reflections."""
    text: str
    """The belief, the reason of the failure, or the number of events that were published."""
    based_on: tuple[str, ...]
    """The ids of the events that the belief is based on."""
    position: Position
    """The position of the answer that counts, which is an earlier one if another reactor was faster."""

    def format(self) -> str:
        """Position, space, agent, kind and text in one line."""
        return f"{self.position}  {self.space}  {self.agent}  {self.kind}  {one_line(self.text)}"

    @classmethod
    def of(cls, event: Event, position: Position) -> Self | None:
        """The reaction in the event at `position`; None if it answers no trigger."""
        trigger = triggers.named_by(event)
        if trigger is None:
            return None
        return cls(
            space=event.space,
            agent=event.agent,
            trigger=trigger.id,
            kind=event.kind,
            text=event.text or str(event.payload.get("reason", "")) or _describe_event(event),
            based_on=tuple(event.payload.get("based_on", ())),
            position=position,
        )


def _describe_event(event: Event) -> str:
    events = event.payload.get("events")
    return "" if events is None else count_noun(events, "event")


class ReactionsView(ListView[Reaction], Bounded):
    """The answers to the triggers that were due: triggers that one event made due in the order of their causes,
    then reflections by space and agent."""

    list_field: ClassVar[str] = "items"

    @property
    def ok(self) -> bool:
        return all(reaction.kind not in triggers.all_failures() for reaction in self)
