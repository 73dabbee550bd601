"""Salient events, and why an event is or is not among what an agent remembers."""

from pydantic import Field

from recallog_schemas.event import Position
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views.base import ComputedAt, Remembered, lines, one_line


class Salient(Remembered):
    """One event with its salience: score = w_rel * relevance + w_rec * recency + w_imp * importance."""

    score: float
    relevance: float
    """0 to 1: by the index, (n - i)/n for the i-th of n events found; else Jaccard similarity of its words with the
    query's."""
    recency: float
    """0 to 1: exp(-0.1 * turns ago)."""
    importance: float
    """0 to 1, of its kind when it was said: by the catalogue, or by the declaration of its space."""

    def line(self) -> str:
        return f"[turn {self.event.turn:03d}][{self.event.kind}][sal={self.score:.2f}] {one_line(self.text)}"


class SalientView(ComputedAt):
    """Of the newest events that an agent may see, those that matter most now, oldest first."""

    space: str
    agent: str
    query: str
    turn: int
    """The turn that recency was measured from."""
    top_k: int
    weights: SalienceWeights
    considered: int
    """How many events were scored."""
    relevance_by: str | None = Field(default=None, exclude_if=lambda by: by is None)
    """"meaning", by the semantic index; or "words", with the reason why. None, and left out, where the index is off."""
    memories: tuple[Salient, ...]

    def format(self) -> str:
        """The memories as a prompt shows them, one a line; `(no salient memories)` where there are none."""
        return lines(self.memories) or "(no salient memories)"


class Explanation(ComputedAt):
    """Whether an agent has an event before its eyes, and why."""

    space: str
    agent: str
    event_id: str
    verdict: str
    """remembered, outscored, out_of_window, not_kept, not_visible, bookkeeping, dead_letter, or unknown."""
    why: str
    """The verdict in a sentence."""
    position: Position | None
    """Where the event lies; None where it is unknown."""
    in_episodic: bool
    newer: int | None
    """How many newer events the agent may see."""
    window: int
    in_salient: bool
    rank: int | None
    """Among all scored events, from 1."""
    top_k: int
    considered: int
    query: str
    turn: int
    weights: SalienceWeights
    memory: Salient | None
    """The event with each term of its score; None where the agent may not see it, or the views no longer keep it."""

    def sum(self) -> str:
        """The score as a sum of its weighted terms, for people; "" where there is none."""
        if self.memory is None:
            return ""
        terms = (
            (self.weights.relevance, "relevance", self.memory.relevance),
            (self.weights.recency, "recency", self.memory.recency),
            (self.weights.importance, "importance", self.memory.importance),
        )
        written = " + ".join(f"{weight:.2f} x {name} {value:.3f}" for weight, name, value in terms)
        return f"{written} = {self.memory.score:.3f}"
