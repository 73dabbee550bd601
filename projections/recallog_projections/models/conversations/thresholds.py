"""When a conversation must be compacted."""

from dataclasses import dataclass

from recallog_schemas.models.conversations import limits as conversations_limits


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a conversation is compacted, and what stays of it."""

    messages: int = conversations_limits.COMPACT_MESSAGES
    """It is compacted if it has more messages than this,"""
    chars: int = conversations_limits.COMPACT_CHARS
    """or more characters,"""
    keep: int = conversations_limits.COMPACT_KEPT
    """and more messages than stay."""

    def clamp(self) -> "Thresholds":
        """At least 8 messages, 4,000 characters and 4 that stay."""
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
