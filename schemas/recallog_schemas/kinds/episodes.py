"""The payloads of what happens to agents: runs, observations, speech, tools, sessions, beliefs."""

from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas import limits
from recallog_schemas.kinds.payload import Number, Payload
from recallog_schemas.validation import KIND_PATTERN

KindName = Annotated[str, Field(pattern=KIND_PATTERN, max_length=limits.KIND_CHARS_MAX)]
KindNames = Annotated[list[KindName], Field(max_length=limits.SHARED_KINDS_MAX)]


class RunStarted(Payload):
    goal: str | None = None
    """What all agents of the space try to reach."""
    shared_kinds: KindNames | None = None
    """The kinds that all agents of the space see, as in `space.configured`."""


class Text(Payload):
    text: str
    """The text."""


class Verdict(Text):
    winner: str | None = None
    """Who won."""
    score: Any = None
    """The score, as any JSON."""


class Reflected(Payload):
    """What an agent has come to believe. `belief` or `text` is required."""

    belief: str | None = None
    """What the agent believes."""
    text: str | None = None
    """The same, if there is no `belief`."""
    based_on: list[str] = Field(default_factory=list)
    """The ids of the events that the belief rests on."""
    insights: Annotated[list[str], Field(max_length=limits.INSIGHTS_MAX)] | None = None
    """What it has understood besides, in sentences."""

    @model_validator(mode="after")
    def _says_something(self) -> "Reflected":
        if self.belief is None and self.text is None:
            raise PydanticCustomError("missing", "give belief (or text)")
        return self


class ToolUsed(Payload):
    """A call of a tool. It failed if `ok` is false, or absent while there is an `error`."""

    tool: str
    """The name of the tool."""
    arguments: Any = None
    """What it was called with, as JSON or as JSON in a string."""
    result: Any = None
    """What it answered, as any JSON."""
    ok: bool | None = None
    """Whether it succeeded."""
    error: Any = None
    """Why it failed, as any JSON."""


class SessionStarted(Payload):
    title: str | None = None
    """The title of the session."""


class SessionEnded(Payload):
    outcome: str | None = None
    """What came of the session."""
    reward: Number | None = None
    """A number that rates it, for example of a benchmark."""
