"""The payloads of what happens to agents: runs, observations, speech, tools, sessions."""

from typing import Annotated, Any

from pydantic import Field

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


class VerdictText(Text):
    winner: str | None = None
    """Who won."""
    score: Any = None
    """The score, as any JSON."""


class ToolUsed(Payload):
    """A call of a tool. It failed if `ok` is false, or absent while there is an `error`."""

    tool: str
    """The name of the tool."""
    arguments: Any = None
    """What it was called with, as JSON or as JSON in a string."""
    result: Any = None
    """Its result, as any JSON."""
    ok: bool | None = None
    """Whether it succeeded."""
    error: Any = None
    """Why it failed, as any JSON."""


class SessionStarted(Payload):
    title: str | None = None
    """The title of the session."""


class SessionEnded(Payload):
    outcome: str | None = None
    """Outcome of the session."""
    reward: Number | None = None
    """A number that rates it, for example of a benchmark."""
