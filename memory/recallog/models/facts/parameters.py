"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.validation import NOT_BLANK

ExtractedText = Annotated[
    str,
    Field(pattern=NOT_BLANK, max_length=facts_limits.EXTRACTED_CHARS, description="The text; I is the agent."),
]
FactSource = Annotated[
    str | None, Field(max_length=long_term_limits.SOURCE_CHARS_MAX, description="Where the text comes from.")
]
GraphLimit = Annotated[
    int, Field(ge=1, le=facts_limits.GRAPH_ENTITIES_SHOWN, description="Number of strongest entities.")
]
MinEntries = Annotated[int, Field(ge=1, description="Only links made by at least this many entries.")]
AboutEntity = Annotated[
    str,
    Field(
        pattern=NOT_BLANK,
        max_length=facts_limits.GRAPH_KEY_CHARS_MAX,
        description="Name of the entity; case and articles do not matter.",
    ),
]
AboutLimit = Annotated[int, Field(ge=1, le=facts_limits.GRAPH_FACTS_KEPT, description="Number of newest entries.")]
StoreAnswer = Annotated[bool, Field(description="Keep the answer as an insight of the agent.")]
