"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog.operations.operation import IN_BODY
from recallog.operations.parameters import OptionalTime
from recallog_schemas import limits
from recallog_schemas.models.stream import limits as stream_limits

StreamQuery = Annotated[
    str | None,
    Field(
        pattern=r"\S", max_length=limits.RECALL_QUERY_CHARS_MAX, description="Words that memories are compared with."
    ),
    IN_BODY,
]
StreamLimit = Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX, description="Number of best-matching memories.")]
InsightsLimit = Annotated[int, Field(ge=1, le=stream_limits.INSIGHTS_KEPT, description="Number of newest insights.")]
SpanStart = Annotated[OptionalTime, Field(description="Beginning of the span; default: that of the stream.")]
SpanEnd = Annotated[OptionalTime, Field(description="End of the span, exclusive; default: that of the stream.")]
StoreSummary = Annotated[bool, Field(description="Keep the summary as an entry of the agent.")]
