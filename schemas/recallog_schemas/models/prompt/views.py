"""The prompt of an agent, and why it does or does not show an event."""

from typing import Self

from pydantic import Field

from recallog_schemas.event import Position
from recallog_schemas.kinds import SalienceWeights
from recallog_schemas.models.beliefs.views import ReflectionView
from recallog_schemas.views.base import OfAgent, OfEvent, View, one_line
from recallog_schemas.views.salience import Salient


class PromptSection(View):
    """One section of a prompt."""

    heading: str
    """Its first line; "" for what the caller adds as `extra`, which has none."""
    start: int
    """Where it begins, in characters of the prompt."""
    end: int
    """Where it ends."""
    tokens: int
    """The number of its model tokens, counted as those of the prompt."""


class ContextView(OfAgent):
    """The prompt of an agent, and what it was composed of."""

    text: str
    """The prompt."""
    sections: tuple[PromptSection, ...] = Field(repr=False)
    """Its sections, in their order. An empty line is between two of them."""
    tokens: int
    """Its estimated number of model tokens: its characters divided by four, rounded up."""
    budget_tokens: int | None
    """The requested budget, which `tokens` never exceeds; None if none was requested."""
    dropped: int
    """Number of lines that the budget removed."""
    shortened: int
    """Number of lines that the budget cut. The text of a cut line ends in "…"; for the evidence of a due reflection,
    only the id remains."""
    entries: tuple[str, ...]
    """The ids of the entries under RECALLED, best first."""
    degraded: str | None
    """Why the RECALLED section, or the choice of memories by the program's own index, is degraded;
    None if it is not."""
    reflection: ReflectionView
    """Whether a reflection is due: the prompt then requests it, and `reflection.answer(...)` returns the answer's
    event."""

    def fit(self) -> Self:
        """The answer with the items of its list that fit."""
        reflection = self.reflection.fit()
        return self if reflection is self.reflection else self.model_copy(update={"reflection": reflection})

    @property
    def empty(self) -> bool:
        """Whether the agent sees no event: the prompt then has only headings and what the caller gave."""
        return self.reflection.events == 0

    def format(self) -> str:
        """The prompt."""
        return self.text

    def __str__(self) -> str:
        return self.text


class Explanation(OfEvent):
    """Whether the present prompt of an agent shows an event, in which sections, and why."""

    verdict: str
    """remembered (the prompt shows the event), outscored, out_of_window, not_kept, not_visible, erased,
    bookkeeping, entry, dead_letter, or unknown."""
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
    """The number of newer events that the agent may see, including events that the views have dropped: then the space
    is folded up to the event. None if the agent may not see the event, or if the space is too large to be folded."""
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
    """The text that relevance was measured against: the given one, or else the scene, as in the prompt."""
    turn: int
    """The turn from which recency was measured."""
    weights: SalienceWeights
    """The weights of the three terms of salience."""
    memory: Salient | None
    """The event with each term of its score; None if the agent may not see it or the views have dropped it."""

    @property
    def ok(self) -> bool:
        return self.verdict != "unknown"

    @property
    def shows_event(self) -> bool:
        """Whether it is in the prompt, or was scored."""
        return self.memory is not None or bool(self.sections)

    def conceal(self) -> Self:
        """The explanation of an unknown event."""
        return self.model_copy(
            update={
                "verdict": "unknown",
                "why": f"{self.agent} may see no event with this id in {self.space}",
                "position": None,
                "newer": None,
                "in_episodic": False,
            }
        )

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
