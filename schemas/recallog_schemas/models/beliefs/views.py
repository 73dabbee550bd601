"""The beliefs of an agent, how beliefs relate to each other, and its due reflections."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from recallog_schemas import triggers
from recallog_schemas.errors import NothingDue
from recallog_schemas.event import Event, Position
from recallog_schemas.kinds.trust import find_least, state_class
from recallog_schemas.models.beliefs.payloads import Stance
from recallog_schemas.views.base import (
    Bounded,
    EventLine,
    LossReason,
    OfAgent,
    Remembered,
    SourcedEvent,
    View,
    count_noun,
    event_lines,
    indent_lines,
    one_line,
)

BeliefRelation = Literal["supersedes", "contradicts", "disputes", "supports"]


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


class LostGround(View):
    """An event, entry or belief that a belief rests on, and that no longer supports it."""

    id: str
    """Its id."""
    reason: LossReason | Literal["unfounded"]
    """"erased". For an entry also "retracted", "corrected" (its text was changed) or "superseded" (a later entry has
    another value). For a belief also "superseded", or "unfounded" if it has lost a ground itself."""


class LinkedBelief(Belief):
    """A belief with subjects, in a graph."""

    subjects: tuple[str, ...]
    """What it is about, in the words of its agent."""
    stance: Stance | None
    """Whether it is for or against its subjects."""
    superseded_by: str | None
    """The id of the newest belief that supersedes it."""
    unfounded: tuple[LostGround, ...]
    """The grounds that it has lost; with any of them it is unfounded."""

    @property
    def note(self) -> str:
        """`for`, `superseded` and `unfounded: retracted e-3`, as far as they apply; "" if nothing does."""
        lost = ", ".join(f"{each.reason} {each.id}" for each in self.unfounded)
        notes = (self.stance, self.superseded_by and "superseded", lost and f"unfounded: {lost}")
        return one_line("; ".join(each for each in notes if each))

    def line(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The line of the event, with the note in brackets."""
        return super().line(reader, dated=dated) + (f" ({self.note})" if self.note else "")


class BeliefEdge(View):
    """How one belief relates to another one on the same subject."""

    relation: BeliefRelation
    """"supersedes": the agent replaced its earlier belief. "contradicts": two beliefs of one agent with opposite
    stances. "disputes": two such beliefs of two agents. "supports": two with the same stance."""
    subject: str
    """The subject, as `subjects` of the graph has it."""
    source: str
    """The id of the later belief."""
    target: str
    """The id of the earlier belief."""


class BeliefSubject(View):
    """A subject of beliefs."""

    name: str
    """The subject, as the newest belief on it names it."""
    beliefs: int
    """How many beliefs on it the agent may see and the views retain."""
    unlinked: int
    """How many of them the graph leaves out: those older than the newest 16."""


class BeliefGraph(OfAgent, Bounded):
    """The beliefs with subjects that an agent may see, and how they relate. If not all fit, the older ones are left
    out, with their edges."""

    list_field: ClassVar[str] = "beliefs"
    kept: ClassVar[Literal["first", "last"]] = "last"

    about: str | None
    """The only subject that was asked for."""
    subjects: tuple[BeliefSubject, ...]
    """The subjects, by their newest beliefs, newest first."""
    beliefs: tuple[LinkedBelief, ...]
    """The beliefs, oldest first: of each subject the newest 16."""
    edges: tuple[BeliefEdge, ...]
    """The edges, by the later belief, then by the earlier one, then by the subject."""

    def shorten(self, count: int) -> Self:
        shortened = super().shorten(count)
        ids = {each.event.id for each in shortened.beliefs}
        edges = tuple(each for each in self.edges if {each.source, each.target} <= ids)
        return shortened if len(edges) == len(self.edges) else shortened.model_copy(update={"edges": edges})

    def numbers(self) -> Mapping[str, int]:
        """By id of a belief: its number in `format`."""
        return {each.event.id: number for number, each in enumerate(self.beliefs, 1)}

    def format(self) -> str:
        """The numbered beliefs, one per line, then the edges of each subject; `(no beliefs)` if there are none."""
        beliefs = [f"{number} {line}" for number, line in enumerate(self.lines(self.beliefs), 1)]
        return "\n".join([*beliefs, *self._edge_lines()]) or "(no beliefs)"

    def _edge_lines(self) -> Iterator[str]:
        numbers = self.numbers()
        for subject in self.subjects:
            yield one_line(f"{subject.name}: {count_noun(subject.beliefs, 'belief')}")
            for each in self.edges:
                if each.subject == subject.name:
                    yield f"  {numbers[each.source]} {each.relation} {numbers[each.target]}"


class Contradiction(View):
    """Two beliefs with opposite stances on one subject. Neither is superseded."""

    relation: Literal["contradicts", "disputes"]
    """"contradicts": they are of one agent. "disputes": of two agents."""
    subject: str
    """The subject, as the newest belief on it names it."""
    earlier: LinkedBelief
    """The belief that was published first."""
    later: LinkedBelief
    """The other belief."""


class ContradictionsView(OfAgent, Bounded):
    """The beliefs that an agent may see and that contradict each other. If not all fit, the older ones are left out."""

    list_field: ClassVar[str] = "contradictions"

    about: str | None
    """The only subject that was asked for."""
    contradictions: tuple[Contradiction, ...]
    """By the later belief, newest first."""

    def format(self) -> str:
        """The subject and the two beliefs of each; `(no contradictions)` if there are none."""
        return "\n".join(map(self._describe, self.contradictions)) or "(no contradictions)"

    def _describe(self, each: Contradiction) -> str:
        head = one_line(f"{each.subject}: {each.relation}")
        return "\n".join([head, indent_lines("\n".join(self.lines([each.earlier, each.later])))])


class Counted(SourcedEvent):
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
        about: str | Iterable[str] = (),
        stance: Stance | None = None,
        supersedes: str | None = None,
    ) -> Event:
        """The event to publish as an answer to the trigger: an `agent.reflected`. The first answer to a trigger counts.

        `based_on` are ids of events, by default those of `on`; `turn` is the space's by default. `about`, `stance` and
        `supersedes` place the belief in the graph of beliefs. Raises `NothingDue`, or pydantic's `ValidationError`.
        """
        trigger = triggers.parse(self.trigger)
        if trigger is None:
            raise NothingDue(
                f"no reflection of {self.agent!r} is due in {self.space!r}: {self.events} of {self.threshold} events. "
                "Wait until one is due, or publish an agent.reflected event without a trigger"
            )
        ids = [shown.event.id for shown in self.on] if based_on is None else list(based_on)
        subjects = [about] if isinstance(about, str) else list(about)
        placed: dict[str, Any] = {"about": subjects, "stance": stance, "supersedes": supersedes}
        least = find_least(shown.trust for shown in self.on if shown.event.id in ids)
        return Event(
            id=trigger.answer_id,
            space=self.space,
            session=session,
            agent=self.agent,
            kind="agent.reflected",
            turn=self.turn if turn is None else turn,
            payload={
                "belief": belief,
                "based_on": ids,
                **{name: value for name, value in placed.items() if value},
                **state_class(least),
            },
            causation_id=trigger.id,
        )
