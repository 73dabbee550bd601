"""Consensus: what agents agreed on, how strongly, what replaced it, and who dissented."""

from datetime import datetime
from typing import ClassVar

from recallog_schemas.event import Position
from recallog_schemas.views.base import Bounded, OfAgent, View, one_line


class ConsensusView(View):
    """One consensus, as far as the reader may see what it is linked with."""

    id: str
    """Its id: that of the event that recorded it."""
    topic: str
    """What was debated."""
    topic_hash: str
    """16 hex digits: equal for topics that have the same words, in any order and case."""
    conclusion: str
    """What the agents agreed on."""
    strength: str
    """unanimous, strong, moderate, weak, split or contested: as recorded, or by `agreement`."""
    agreement: float
    """The share of the participating agents that agree, from 0 to 1; 0 without any."""
    confidence: float
    """From 0 to 1: how certain the conclusion is."""
    participating: tuple[str, ...]
    """The agents that took part."""
    agreeing: tuple[str, ...]
    """The agents that agreed."""
    dissenting: tuple[str, ...]
    """The agents that did not agree."""
    key_claims: tuple[str, ...]
    """The claims that support it."""
    cruxes: tuple[str, ...]
    """What would change the conclusion."""
    domain: str | None
    """The field that it belongs to."""
    tags: tuple[str, ...]
    """Tags that group it."""
    rounds: int | None
    """Number of rounds of the debate."""
    supersedes: tuple[str, ...]
    """The ids of the consensuses that it replaces and that the reader may see."""
    superseded_by: str | None
    """The id of the consensus that replaces it. None: it is current."""
    agent: str
    """The agent that recorded it."""
    at: datetime
    """When it was recorded, in UTC."""
    position: Position
    """The position of its event."""

    def format(self) -> str:
        """Id, strength, topic and conclusion in one line, and the id of its successor."""
        replaced = "" if self.superseded_by is None else f" (superseded by {self.superseded_by})"
        return one_line(f"{self.id} {self.strength} {self.topic}: {self.conclusion}{replaced}")


class SimilarConsensus(View):
    """A consensus with the similarity of its topic."""

    similarity: float
    """The share of common words among the words of both topics, rounded to 4 decimals; 1 for the same words."""
    consensus: ConsensusView
    """The consensus."""

    def format(self) -> str:
        """The similarity and the consensus in one line."""
        return f"{self.similarity:.2f} {self.consensus.format()}"


class ConsensusFound(OfAgent, Bounded):
    """The consensuses on similar topics that an agent may see."""

    list_field: ClassVar[str] = "found"

    topic: str
    """The requested topic."""
    topic_hash: str
    """Its hash."""
    found: tuple[SimilarConsensus, ...]
    """Most similar first; equally similar ones newest first."""

    def format(self) -> str:
        """One line for each consensus; a sentence that says what to try if there are none."""
        none = "No consensus has a topic with enough of these words. Try fewer words; `consensus record` records one."
        return "\n".join(each.format() for each in self.found) or none


class ConsensusPage(OfAgent):
    """A page of the consensuses that an agent may see."""

    consensuses: tuple[ConsensusView, ...]
    """The consensuses, by id, greatest first: ids made by Recallog sort by time, so the newest comes first."""
    next: str | None
    """The cursor of the next page; None: there is none."""

    def format(self) -> str:
        """One line for each consensus; `(nothing)` if there are none."""
        return "\n".join(each.format() for each in self.consensuses) or "(nothing)"


class DissentView(View):
    """One dissent."""

    id: str
    """Its id: that of its event."""
    type: str
    """minor_quibble, alternative_approach, fundamental_disagreement, edge_case_concern, risk_warning or abstention."""
    content: str
    """The objection."""
    reasoning: str | None
    """Why."""
    confidence: float
    """From 0 to 1: how certain the agent is."""
    rebuttal: str | None
    """The reply to the objection."""
    acknowledged: bool | None
    """Whether the others acknowledged it."""
    consensus: str | None
    """The id of the consensus that it is about: the named one, or else the newest one on its topic at that time, or
    else the first later one. None: the reader may see none."""
    agent: str
    """The agent that dissents."""
    at: datetime
    """When, in UTC."""
    position: Position
    """The position of its event."""

    def format(self) -> str:
        """Agent, type, confidence and content in one line."""
        return one_line(f"{self.agent} {self.type} ({self.confidence:g}): {self.content}")


class DissentsView(OfAgent, Bounded):
    """The dissents on a topic that an agent may see."""

    list_field: ClassVar[str] = "dissents"

    topic_hash: str
    """The hash of the topic."""
    dissents: tuple[DissentView, ...]
    """Highest confidence first; equal ones newest first."""

    def format(self) -> str:
        """One line for each dissent; `(nothing)` if there are none."""
        return "\n".join(each.format() for each in self.dissents) or "(nothing)"
