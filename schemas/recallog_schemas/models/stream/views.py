"""The stream of an agent: its own memories by recency, class and relevance, its insights, and summaries of a span."""

from datetime import datetime
from typing import ClassVar, Literal

from recallog_schemas.event import Position
from recallog_schemas.models.long_term.views import Retained
from recallog_schemas.views.base import Bounded, OfAgent, View, indent_continuation, one_line


class StreamMemory(View):
    """One memory of an agent's stream."""

    id: str
    """The id of its event; for an insight, the id of the reflection."""
    type: Literal["observation", "reflection", "insight"]
    """An insight is a sentence of a reflection; everything else is an observation."""
    text: str
    """What it says."""
    kind: str
    """The kind of the event."""
    agent: str
    """The author of the event: the agent itself, or an agent that addressed the event to it."""
    at: datetime
    """When it happened, in UTC."""
    turn: int
    """The turn of the event."""
    position: Position
    """The position of the event."""

    def format(self) -> str:
        """Turn, type and text in one line: `[turn 003][insight] The miller pays late.`"""
        return f"[turn {self.turn:03d}][{self.type}] {one_line(self.text)}"


class StreamHit(StreamMemory):
    """One memory of an agent's stream, with its score."""

    score: float
    """0.3 recency + 0.3 class + 0.4 relevance, rounded to 6 decimals."""
    recency: float
    """From 1 for what happens now: halved every 24 hours."""
    importance: float
    """The importance of its class: 0.5 for an observation, 0.7 for a reflection, 0.9 for an insight."""
    relevance: float
    """The share of the distinct words of the query that it has; 0.5 without a query."""


class StreamRecall(OfAgent, Bounded):
    """The memories of an agent's stream that score best."""

    list_field: ClassVar[str] = "memories"

    query: str | None
    """The query; None if there was none."""
    now: datetime | None
    """The time from which recency was measured. None: the space has no event."""
    memories: tuple[StreamHit, ...]
    """Best first; equal ones newest first."""

    def format(self) -> str:
        """One line for each memory; `(nothing)` if there are none."""
        return "\n".join(memory.format() for memory in self.memories) or "(nothing)"


class InsightsView(OfAgent, Bounded):
    """The newest insights of an agent."""

    list_field: ClassVar[str] = "insights"

    insights: tuple[StreamMemory, ...]
    """The insights, oldest first."""

    def format(self) -> str:
        """One line for each insight; a sentence that says where they come from if there are none."""
        none = "No insights yet. They are lines of reflections that begin with INSIGHT: (kind agent.reflected)."
        return "\n".join(insight.format() for insight in self.insights) or none


class StreamSummary(OfAgent):
    """What an agent's stream has of a span of time."""

    since: datetime | None
    """The beginning of the span; None: the beginning of the stream."""
    until: datetime | None
    """The end of the span, exclusive; None: the end of the stream."""
    text: str
    """The summary; "" if the span has no memories."""
    memories: int
    """How many memories the span has."""
    sources: tuple[str, ...]
    """The ids of the events that it is made from, in the order of the ledger: at most 64, the most important ones."""
    kept_from: Position | None
    """The position from which the views have all events of the stream. None: they have dropped none."""
    stored: Retained | None
    """The outcome of storing the summary as an entry. None: that was not requested, or there is nothing to store."""

    @property
    def ok(self) -> bool:
        """Whether the summary is stored as an entry."""
        return self.stored is None or self.stored.ok

    def format(self) -> str:
        """The summary, and the outcome of storing it; `(nothing)` if the span has no memories."""
        stored = [] if self.stored is None else [self.stored.format()]
        return "\n".join([indent_continuation(self.text) or "(nothing)", *stored])
