"""The payloads that close triggers: events that a reactor answered, or why it could not."""

from recallog_schemas.kinds.payload import Count, Id, Payload


class ReflectionFailed(Payload):
    trigger: str
    """The trigger that was not answered."""
    reason: str
    """Why the reflector failed."""


class ReactionDone(Payload):
    """A trigger was answered."""

    trigger: Id
    """The trigger."""
    events: Count
    """How many events answer it besides this one."""


class ReactionFailed(Payload):
    """A trigger was not answered, and is not tried again."""

    trigger: Id
    """The trigger."""
    reason: str
    """Why the reactor failed."""
