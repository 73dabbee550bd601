"""Salient events."""

from typing import ClassVar, Literal

from pydantic import Field

from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.views.base import Bounded, OfAgent, Remembered, line_prefix


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
    """0 to 1: the importance of its kind, by the catalogue or the declaration of its space at that time."""

    def line_prefix(self, reader: str | None = None, *, dated: bool = False, label: str | None = None) -> str:
        """The part of `line` before the text, with the score: `[turn 003][kind][sal=0.62] `."""
        label = self.source_label if label is None else label
        return line_prefix(self.event, reader, dated=dated, score=self.score, label=label)


class SalientView(OfAgent, Bounded):
    """The most salient of the newest events that an agent may see, oldest first.

    If not all fit, the weakest are left out; `timeline` has them.
    """

    list_field: ClassVar[str] = "memories"
    kept: ClassVar[Literal["first", "last"]] = "last"
    rest: ClassVar[str] = "`timeline` has pages of all events"

    query: str
    """The text that relevance was measured against; "" if none was given."""
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
