"""The rows of conversations.

A conversation belongs to a space, an agent and a session. Its messages are the agent's own, those that are addressed to
it, and those that the space shares: these have the owner "" too.
"""

from functools import lru_cache
from typing import NamedTuple

import msgspec

from recallog_projections.models.items import projection as items
from recallog_projections.refusals import log_of_refusals
from recallog_projections.tables import Table


class ConversationKey(NamedTuple):
    """Names a conversation: the key of the rows of its state."""

    space: str
    agent: str
    session: str


class MessageRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One message, or a call of a tool and its result. The event has its content."""

    id: str
    """The id of its event."""
    offset: int
    author: str
    """The agent of its event."""
    role: str
    """Its role in the conversation of its author; of a call and its result that of the call."""
    digest: str = ""
    """See `rendering.digest_of`; "" for an event that was not added as a message."""
    parts: int = 0
    """The number of the parts of a large message."""


class MessageRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where an added message is, and what it counts in its conversations."""

    session: str
    offset: int
    owners: tuple[str, ...]
    messages: int
    """1; 0 for the instructions with which a conversation begins."""
    chars: int


class ConversationRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of the messages that were added to one conversation."""

    ever: int = 0
    """How many there have ever been: the ordinal of the next one."""
    live: int = 0
    """How many are neither removed nor compacted."""
    count: int = 0
    """How many were added since the last compaction."""
    chars: int = 0
    """Their number of characters."""
    turn: int = 0
    """Their highest turn."""
    begun: bool = False
    """Whether one of them is not an instruction."""
    failures: int = 0
    """How many compactions in a row have failed."""
    rests_until: int = 0
    """Until when it is not compacted after failures, in microseconds since 1970."""
    due: str = ""
    """The id of the trigger of its compaction, while that is valid."""
    due_at: int = -1
    """The offset of the event that made it due."""
    removals: int = 0
    """How many messages were taken out of it."""


class ChunkRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`limits.MESSAGES_OF_CHUNK` consecutive messages of a conversation. It never changes."""

    messages: tuple[MessageRow, ...]


class NewestRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest messages of a conversation, which no chunk holds yet."""

    said: int = 0
    """The number of texts of users and agents in it; shared ones count only for the owner ""."""
    chunks: int = 0
    """How many chunks hold the messages before."""
    messages: tuple[MessageRow, ...] = ()


class CompactionRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The newest compaction of a conversation."""

    id: str
    """The id of its event."""
    offset: int
    upto: int
    """The offset of the last message that the summary covers."""
    count: int
    """How many messages all compactions together cover."""
    summary: str
    by: str
    at: int
    """In microseconds since 1970."""
    subject: str | None = None
    """The person whose data it contains."""


class SessionRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    session: str


class EventRef(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where an event is: the part of a message, or the removal of one."""

    offset: int


MESSAGES = Table("conversations.messages", ChunkRow, write_only=True)
"""At (space, agent, `chunk_key`)."""
NEWEST = Table("conversations.newest", NewestRow)
"""At (space, agent, session)."""
REFS = Table("conversations.refs", MessageRef, write_only=True)
"""At (space, "", id of the event), which is unique in the space."""
STATES = Table("conversations.states", ConversationRow)
"""At a `ConversationKey`."""
COMPACTIONS = Table("conversations.compactions", CompactionRow)
"""At a `ConversationKey`."""
DUE = Table("conversations.due", SessionRow)
"""The sessions that have a compaction, at (space, agent, id of the trigger)."""
PARTS = Table("conversations.parts", EventRef)
"""At (space, agent that wrote it, `part_key`). Of several parts with one number it has the first."""
REMOVED = Table("conversations.removed", EventRef)
"""At (space, agent, id of the event)."""
REFUSALS = log_of_refusals("conversations.refusals")
"""Removals and compactions that have changed nothing."""

# Reasons of refusals.
GONE = "gone"  # removal: the message was taken out before
UNKNOWN = "unknown"  # the conversation has no such message
COMPACTED = "compacted"  # compaction: another one has covered these messages
CHANGED = "changed"  # compaction: a message was taken out since it was planned, which the summary may quote


@lru_cache(maxsize=1024)
def session_prefix(session: str) -> str:
    """The beginning of the keys of the chunks of a session."""
    return items.prefix_of((session,))


def chunk_key(session: str, offset: int) -> str:
    """The key of the chunk whose first message has this offset; sorts like the offset."""
    return f"{session_prefix(session)}{offset:020d}"


def part_key(message: str, number: int) -> str:
    """The key of a part of the message with the id `message`."""
    return f"{number:08d}/{message}"
