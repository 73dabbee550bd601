"""When a conversation must be compacted."""

from dataclasses import dataclass

from recallog_schemas.models.conversations import limits as conversations_limits


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a conversation is compacted, and what stays of it."""

    messages: int = conversations_limits.COMPACT_MESSAGES
    """It is compacted if it has more messages than this, or more than `chars`."""
    chars: int = conversations_limits.COMPACT_CHARS
    """It is compacted if its messages have more characters than this, or are more than `messages`."""
    keep: int = conversations_limits.COMPACT_KEPT
    """How many of its newest messages stay. It is not compacted if it has no more than these."""

    def clamp(self) -> "Thresholds":
        """The thresholds, raised to at least 8 messages, 4,000 characters, and 4 messages that stay."""
        return Thresholds(
            max(self.messages, conversations_limits.COMPACT_MESSAGES_LEAST),
            max(self.chars, conversations_limits.COMPACT_CHARS_LEAST),
            max(self.keep, conversations_limits.COMPACT_KEPT_LEAST),
        )

    def are_exceeded(self, messages: int, chars: int, live: int) -> bool:
        """Whether a conversation of `live` messages must be compacted; `messages` of them, with `chars`
        characters, count."""
        return live > self.keep and (messages > self.messages or chars > self.chars)


DEFAULT = Thresholds()
