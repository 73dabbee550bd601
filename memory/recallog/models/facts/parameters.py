"""The parameters of the operations of this model alone; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.models.facts import limits as facts_limits
from recallog_schemas.models.long_term import limits as long_term_limits
from recallog_schemas.validation import NOT_BLANK

ExtractedText = Annotated[
    str,
    Field(pattern=NOT_BLANK, max_length=facts_limits.EXTRACTED_CHARS, description="The text; I in it is the agent."),
]
FactSource = Annotated[
    str | None, Field(max_length=long_term_limits.SOURCE_CHARS_MAX, description="Where the text comes from, in words.")
]
StoreAnswer = Annotated[bool, Field(description="Keep the answer as an insight of the agent.")]
