"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from typing import Annotated, Literal, TypedDict

from pydantic import Field

from recallog.operations.parameters import OptionalTime
from recallog_schemas import limits
from recallog_schemas.kinds.payload import Tier

RetrievedLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="Number of entries.")]
RetrievedSimilarity = Annotated[
    float, Field(ge=-1, le=1, allow_inf_nan=False, description="Minimum similarity of an entry.")
]
TierStrategy = Annotated[
    Literal["weighted", "fast_first", "comprehensive"],
    Field(description="By weighted similarity, the faster tiers first, or by similarity alone."),
]
QueryTime = Annotated[OptionalTime, Field(description="Time of the question; default: that of the agent.")]
PlanTime = Annotated[OptionalTime, Field(description="Time of the plan; default: that of the clock.")]
NewTier = Annotated[Tier, Field(description="The tier to move it to.")]


class OutcomeOptions(TypedDict, total=False):
    """Outcomes of using entries."""

    success: Annotated[bool | None, Field(description="Whether it was a success.")]
    predicted: Annotated[float | None, Field(ge=0, le=1, description="Expected success (0.5).")]
    actual: Annotated[float | None, Field(ge=0, le=1, description="Actual success (0.5).")]
    confidence: Annotated[
        float | None,
        Field(ge=0.5, le=1, description="How certain the report is (1); one that is less certain changes nothing."),
    ]
    cause: Annotated[str | None, Field(max_length=limits.REASON_CHARS_MAX, description="Cause of the outcome.")]
