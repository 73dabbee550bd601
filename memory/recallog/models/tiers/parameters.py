"""The parameters of the operations of this model alone; see `recallog.operations.parameters`."""

from typing import Annotated, Literal

from pydantic import Field

from recallog.operations.parameters import OptionalTime
from recallog_schemas import limits

RetrievedLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="How many entries.")]
RetrievedSimilarity = Annotated[
    float, Field(ge=-1, le=1, allow_inf_nan=False, description="Least similarity of an entry.")
]
TierStrategy = Annotated[
    Literal["weighted", "fast_first", "comprehensive"],
    Field(description="By weighted similarity, the faster tiers first, or by similarity alone."),
]
QueryTime = Annotated[
    OptionalTime, Field(description="Time of the question; default: that of the newest event of the space.")
]
PlanTime = Annotated[OptionalTime, Field(description="Time of the plan; default: that of the clock.")]
