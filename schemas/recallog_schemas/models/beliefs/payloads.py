"""The payloads of reflections: what an agent came to believe, or why it did not."""

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas.kinds.payload import Payload
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.names import IN_NFC


class Reflected(Payload):
    """What an agent has come to believe. `belief` or `text` is required."""

    belief: str | None = None
    """What the agent believes."""
    text: str | None = None
    """The same, if there is no `belief`."""
    based_on: list[Annotated[str, IN_NFC]] = Field(default_factory=list)
    """The ids of the events that the belief rests on."""
    insights: Annotated[list[str], Field(max_length=beliefs_limits.INSIGHTS_MAX)] | None = None
    """Further insights, in sentences."""

    @model_validator(mode="after")
    def _says_something(self) -> "Reflected":
        if self.belief is None and self.text is None:
            raise PydanticCustomError("missing", "give belief (or text)")
        return self


class ReflectionFailed(Payload):
    trigger: str
    """The trigger that was not answered."""
    reason: str
    """Why the reflector failed."""
