"""The kinds of conversations."""

from recallog_schemas.kinds.kind import bookkeeping
from recallog_schemas.models.conversations.payloads import (
    ConversationCompacted,
    MessageAdded,
    MessagePart,
    MessageRemoved,
    TurnEnded,
)

KINDS = (
    bookkeeping("message.added", "A message of a conversation that is not an episode.", MessageAdded, "message"),
    bookkeeping("message.part", "A part of a large message.", MessagePart, "data"),
    bookkeeping(
        "conversation.compacted",
        "The beginning of a session is replaced by a summary.",
        ConversationCompacted,
        "summary",
    ),
    bookkeeping("message.removed", "A message was taken out of its conversation.", MessageRemoved),
    bookkeeping("turn.ended", "An agent has finished a turn of a session.", TurnEnded),
)
