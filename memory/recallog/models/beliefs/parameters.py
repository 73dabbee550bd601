"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.names import NAME
from recallog_schemas.validation import NOT_BLANK

Reader = Annotated[str | None, NAME, Field(description="Only the beliefs that this agent may see.")]
About = Annotated[
    str | None,
    Field(
        description="Only the beliefs on this subject; case and white space do not matter.",
        max_length=beliefs_limits.SUBJECT_CHARS_MAX,
        pattern=NOT_BLANK,
    ),
]
