"""The payloads of conversations: messages that are not episodes, turns, removed messages, and compacted histories."""

from typing import Annotated, Any

from pydantic import Field

from recallog_schemas.kinds.payload import Count, Encoded, Id, Label, Payload, Positive


class MessageAdded(Payload):
    """A message of a conversation that is not an episode: instructions, or calls of tools whose results follow."""

    message: dict[str, Any]
    """The message, in the form of OpenAI's chat completions."""


class MessagePart(Payload):
    """A part of a message that is larger than an event. The message's own event follows its parts."""

    message: Id
    """The id of the message's event."""
    number: Positive
    """The number of the part, from 1."""
    data: Annotated[str, Encoded()]
    """A part of the message as JSON."""


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
    removals: Count | None = None
    """How many messages had been removed from the conversation when it was planned. The compaction counts only if no
    other message was removed since."""


class MessageRemoved(Payload):
    """A message is removed from its conversation."""

    id: Id
    """The id of the message."""


class TurnEnded(Payload):
    """An agent has finished a turn of a session."""
