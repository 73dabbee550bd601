"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.models.beliefs.payloads import Subject
from recallog_schemas.names import NAME

Reader = Annotated[str | None, NAME, Field(description="Only the beliefs that this agent may see.")]
About = Annotated[
    Subject | None, Field(description="Only the beliefs on this subject; case and white space do not matter.")
]
