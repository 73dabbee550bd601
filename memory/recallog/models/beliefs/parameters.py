"""The parameters of the operations of this model alone; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.validation import NAME_PATTERN

Reader = Annotated[str | None, Field(pattern=NAME_PATTERN, description="Only the beliefs that this agent may see.")]
