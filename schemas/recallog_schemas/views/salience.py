"""Salient events, and explanations of why an agent does or does not remember an event."""

from typing import ClassVar, Literal

from pydantic import Field

from recallog_schemas.event import Position
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views.base import Bounded, OfAgent, Remembered, line_prefix, one_line


class Salient(Remembered):
    """One event with its salience: score = w_rel * relevance + w_rec * recency + w_imp * importance."""

    score: float
    """The salience: the weighted sum of the three terms."""
    relevance: float
    """0 to 1: with the index, (n - i)/n for the i-th of n events found; else the Jaccard similarity of the words of the
    event and of the query."""
    recency: float
    """0 to 1: exp(-0.1 * turns ago)."""
    importance: float
    """0 to 1: the importance of its kind, by the catalogue or as its space declared it before."""

    def line_prefix(self, reader: str | None = None, *, dated: bool = False) -> str:
        """The part of `line` before the text, with the score: `[turn 003][kind][sal=0.62] `."""
        return line_prefix(self.event, reader, dated=dated, score=self.score)


class SalientView(OfAgent, Bounded):
    """The most salient of the newest events that an agent may see, oldest first.

    Where not all have room, the weakest are left out; `timeline` has them.
    """

    list_field: ClassVar[str] = "memories"
    kept: ClassVar[Literal["first", "last"]] = "last"
    rest: ClassVar[str] = "`timeline` has pages of all events"

    query: str
    """The text that relevance was measured by; "" if none was given."""
    turn: int
    """The turn from which recency was measured."""
    top_k: int
    """The number of events that was requested or is set for the agent."""
    weights: SalienceWeights
    """The weights of the three terms."""
    considered: int
    """The number of events that were scored."""
    relevance_by: str | None = Field(default=None, exclude_if=lambda by: by is None)
    """"meaning" (the semantic index), "the index of this memory" (one that the program gave), or "words" with the
    reason. None, and left out, if there is no index."""
    memories: tuple[Salient, ...]
    """The events, oldest first."""

    def format(self) -> str:
        """The memories in the format of a prompt, one per line; `(no salient memories)` if there are none."""
        return "\n".join(self.lines(self.memories)) or "(no salient memories)"


class Explanation(OfAgent):
    """Whether the present prompt of an agent shows an event, in which sections, and why."""

    event_id: str
    """The id of the event."""
    verdict: str
    """remembered (the prompt shows the event), outscored, out_of_window, not_kept, not_visible, bookkeeping,
    entry, dead_letter, or unknown."""
    why: str
    """The verdict in a sentence."""
    position: Position | None
    """The event's position; None if it is unknown."""
    sections: tuple[str, ...]
    """The headings of the sections that show the event in the prompt that `context` composes without a budget, for the
    same query and turn. OUTPUT FORMAT: it is evidence of the reflection that is due."""
    in_episodic: bool
    """Whether the event is among the newest `window` events."""
    newer: int | None
    """The number of newer events that the agent may see, also of those that the views have dropped: then the space is
    folded up to the event. None if the agent may not see the event, or if the space is too large to be folded."""
    window: int
    """The number of events in the agent's episodic view."""
    in_salient: bool
    """Whether the event is among the `top_k` most salient ones."""
    rank: int | None
    """The rank among all scored events, from 1."""
    top_k: int
    """The number of events in the agent's salient view."""
    considered: int
    """The number of events that were scored."""
    query: str
    """The text that relevance was measured by: the given one, else that of the prompt, which is the scene."""
    turn: int
    """The turn from which recency was measured."""
    weights: SalienceWeights
    """The weights of the three terms of salience."""
    memory: Salient | None
    """The event with each term of its score; None if the agent may not see it or the views have dropped it."""

    @property
    def ok(self) -> bool:
        return self.verdict != "unknown"

    def format(self) -> str:
        """The verdict, why, the sections, and the event with its score as a sum, one per line."""
        found = [self.verdict.replace("_", " "), f"  {one_line(self.why)}"]
        if self.sections:
            found.append(f"  in the prompt under {', '.join(self.sections)}")
        if self.memory is not None:
            rank = f"  rank {self.rank:,} of {self.considered:,} by salience in turn {self.turn:,}"
            found += [f"  {self.lines([self.memory])[0]}", f"  {self.sum()}", rank]
        return "\n".join(found)

    def sum(self) -> str:
        """The score as a readable sum of its weighted terms; "" without a score."""
        if self.memory is None:
            return ""
        terms = (
            (self.weights.relevance, "relevance", self.memory.relevance),
            (self.weights.recency, "recency", self.memory.recency),
            (self.weights.importance, "importance", self.memory.importance),
        )
        formatted = " + ".join(f"{weight:.2f} x {name} {value:.3f}" for weight, name, value in terms)
        return f"{formatted} = {self.memory.score:.3f}"
