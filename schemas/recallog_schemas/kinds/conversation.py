"""The payloads of conversations: turns, removed messages, and compacted histories."""

from pydantic import Field

from recallog_schemas.kinds.payload import Id, Label, Payload, Positive


class ConversationCompacted(Payload):
    """The beginning of a session is replaced by a summary where its messages are rendered."""

    session: Id
    """The session."""
    upto: Id
    """The id of the newest message that the summary covers."""
    count: Positive
    """How many messages it covers."""
    summary: str = Field(min_length=1)
    """The summary."""
    by: Label
    """What wrote it: a model, or "extractive"."""


class MessageRemoved(Payload):
    """A message is taken out of its conversation."""

    id: Id
    """The id of the message."""


class TurnEnded(Payload):
    """An agent has finished a turn of a session."""
