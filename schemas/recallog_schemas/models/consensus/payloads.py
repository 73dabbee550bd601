"""The payloads of consensus: what agents agreed on, and who disagreed."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas.kinds.payload import AgentName, Count, Id, Label, Payload, Share, Words
from recallog_schemas.models.consensus import limits as consensus_limits

Topic = Annotated[str, Field(pattern=r"[^\s\x1c-\x1f]")]
"""A text with at least one word: topics are compared by the words between white space."""
Agents = Annotated[list[AgentName], Field(max_length=consensus_limits.CONSENSUS_AGENTS_MAX)]
Claims = Annotated[list[str], Field(max_length=consensus_limits.CONSENSUS_CLAIMS_MAX)]
Cruxes = Annotated[list[str], Field(max_length=consensus_limits.CONSENSUS_CRUXES_MAX)]
Tags = Annotated[list[Label], Field(max_length=consensus_limits.CONSENSUS_TAGS_MAX)]
ConsensusStrength = Literal["unanimous", "strong", "moderate", "weak", "split", "contested"]
DissentType = Literal[
    "minor_quibble",
    "alternative_approach",
    "fundamental_disagreement",
    "edge_case_concern",
    "risk_warning",
    "abstention",
]


class ConsensusRecorded(Payload):
    """What a debate concluded."""

    topic: Topic
    """What was debated."""
    conclusion: Words
    """What the agents agreed on."""
    strength: ConsensusStrength | None = None
    """How strong the agreement is (null: by the shares of the agents)."""
    confidence: Share
    """From 0 to 1: how certain the conclusion is."""
    participating: Agents
    """The agents that took part."""
    agreeing: Agents
    """The agents that agreed."""
    dissenting: Agents | None = None
    """The agents that did not agree."""
    key_claims: Claims | None = None
    """The claims that support it."""
    cruxes: Cruxes | None = None
    """What would change the conclusion."""
    domain: Label | None = None
    """The field that it belongs to."""
    tags: Tags | None = None
    """Tags that group it."""
    rounds: Count | None = None
    """Number of rounds of the debate."""
    supersedes: Id | None = None
    """The id of the consensus that it replaces."""


class DissentRecorded(Payload):
    """What an agent objected. `consensus` or `topic` is required."""

    consensus: Id | None = None
    """The id of the consensus that it objects to."""
    topic: Topic | None = None
    """The topic whose consensus it objects to."""
    type: DissentType
    """Type of the objection."""
    content: Words
    """The objection."""
    reasoning: str | None = None
    """Why."""
    confidence: Share
    """From 0 to 1: how certain the agent is."""
    rebuttal: str | None = None
    """The reply to the objection."""
    acknowledged: bool | None = None
    """Whether the others acknowledged it."""

    @model_validator(mode="after")
    def _objects_to_something(self) -> "DissentRecorded":
        if self.consensus is None and self.topic is None:
            raise PydanticCustomError("nothing_given", "give consensus (or topic)")
        return self


class ConsensusSuperseded(Payload):
    """A consensus was replaced."""

    consensus: Id
    """The id of the replaced consensus."""
    by: Id
    """The id of the consensus that replaces it."""
