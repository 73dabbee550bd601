"""The payloads that close triggers: events that a reactor answered, or why it could not."""

from typing import Annotated

from pydantic import Field

from recallog_schemas.kinds.payload import Count, Id, Payload

Digest = Annotated[str, Field(pattern="^[0-9a-f]{10}$")]


class ReactionDone(Payload):
    """A trigger was answered."""

    trigger: Id
    """The trigger."""
    events: Count
    """How many events answer it besides this one."""
    answer: Digest | None = None
    """The digest of the answer, which is part of the ids of these events; None closes the trigger for any answer."""


class ReactionFailed(Payload):
    """A trigger was not answered, and is not tried again."""

    trigger: Id
    """The trigger."""
    reason: str
    """Why the reactor failed."""
    answer: Digest | None = None
    """As of `reaction.done`: the digest of an answer without events."""
