"""The parameters of consensus and dissent."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from recallog.operations.operation import IN_BODY
from recallog.operations.parameters import identifier_of
from recallog_schemas import limits
from recallog_schemas.models.consensus import limits as consensus_limits
from recallog_schemas.models.consensus import payloads
from recallog_schemas.names import IN_NFC
from recallog_schemas.validation import NOT_BLANK


def _topic(text: str) -> str:
    if not text.split():
        raise PydanticCustomError("blank", "give the topic in at least one word: topics are compared by their words")
    return text


def _optional_topic(text: str | None) -> str | None:
    return None if text is None else _topic(text)


Topic = Annotated[str, Field(min_length=1, description="The topic of the debate."), AfterValidator(_topic), IN_BODY]
HashedTopic = Annotated[
    str,
    Field(min_length=1, description="The topic, or its hash: 16 hexadecimal digits, as answers have it."),
    AfterValidator(_topic),
    IN_BODY,
]
Conclusion = Annotated[str, Field(pattern=NOT_BLANK, description="What the agents agree on.")]
Certainty = Annotated[float, Field(ge=0, le=1, description="Confidence, from 0 to 1.")]
Participating = Annotated[
    Sequence[str], Field(max_length=consensus_limits.CONSENSUS_AGENTS_MAX, description="Agents that took part.")
]
Agreeing = Annotated[
    Sequence[str], Field(max_length=consensus_limits.CONSENSUS_AGENTS_MAX, description="Agents that agree.")
]
ConsensusId = Annotated[str, identifier_of("Id of the consensus."), IN_NFC]
Successor = Annotated[
    str,
    identifier_of("Id of the consensus that replaces it."),
    IN_NFC,
]
Objection = Annotated[str, Field(pattern=NOT_BLANK, description="The objection.")]
DissentType = Annotated[payloads.DissentType, Field(description="Type of the objection.")]
OneDissentType = Annotated[
    payloads.DissentType | None, Field(description="Only objections of this type; default: all.")
]
ConsensusLimit = Annotated[int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of most similar results.")]
DissentLimit = Annotated[
    int, Field(ge=1, le=limits.PAGE_ITEMS_MAX, description="Number of results with the highest confidence.")
]
MinConfidence = Annotated[float, Field(ge=0, le=1, description="Minimum confidence.")]


class _DebateOptions(TypedDict, total=False):
    """The options of the event of a debate."""

    audience: Annotated[
        Sequence[str] | None,
        Field(max_length=limits.AUDIENCE_NAMES_MAX, description="Agents that see it; default: all of the space."),
    ]
    session: Annotated[
        str | None,
        identifier_of("The session of the debate."),
        IN_NFC,
    ]


class ConsensusOptions(_DebateOptions, total=False):
    """The properties of a consensus besides its conclusion."""

    dissenting: Annotated[
        Sequence[str] | None,
        Field(max_length=consensus_limits.CONSENSUS_AGENTS_MAX, description="Agents that do not agree."),
    ]
    strength: Annotated[
        payloads.ConsensusStrength | None,
        Field(description="How strong the agreement is; default: by the share of the agents that agree."),
    ]
    key_claims: Annotated[
        Sequence[str] | None,
        Field(max_length=consensus_limits.CONSENSUS_CLAIMS_MAX, description="Claims that support it."),
    ]
    cruxes: Annotated[
        Sequence[str] | None,
        Field(max_length=consensus_limits.CONSENSUS_CRUXES_MAX, description="What would change the conclusion."),
    ]
    domain: Annotated[
        str | None, Field(min_length=1, max_length=limits.NAME_CHARS_MAX, description="The field that it belongs to.")
    ]
    tags: Annotated[
        Sequence[str] | None,
        Field(max_length=consensus_limits.CONSENSUS_TAGS_MAX, description="Tags that group it."),
    ]
    rounds: Annotated[int | None, Field(ge=0, le=limits.INTEGER_MAX, description="Number of rounds of the debate.")]
    supersedes: Annotated[
        str | None,
        identifier_of("Id of the consensus that it replaces."),
        IN_NFC,
    ]


class DissentOptions(_DebateOptions, total=False):
    """The properties of a dissent besides the objection."""

    consensus_id: Annotated[
        str | None,
        identifier_of("Id of the consensus that it objects to."),
        IN_NFC,
    ]
    topic: Annotated[
        str | None,
        Field(min_length=1, description="The topic whose consensus it objects to, instead of an id."),
        AfterValidator(_optional_topic),
    ]
    reasoning: Annotated[str | None, Field(description="Why.")]
    rebuttal: Annotated[str | None, Field(description="The reply to the objection.")]
    acknowledged: Annotated[bool | None, Field(description="Whether the others acknowledged it.")]
