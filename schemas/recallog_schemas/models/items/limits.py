"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

SCRATCHPAD_KEYS_MAX = 50  # of a session
SCRATCHPAD_CHARS_MAX = 10_000  # of a value in a scratchpad
QUEUE_VALUES_MAX = 50  # the newest elements of a list in a scratchpad
DAILY_CHARS_MAX = 8_000  # in characters, of a daily document with a further block of facts
DAILY_CHARS_UNCOMPACTED = 2_000  # a longer daily document loses repeated bullets
DAILY_BULLET_CHARS = 80  # by which two bullets are compared
MEMORY_DOCUMENT_CHARS = 4_000  # a longer MEMORY.md gets no more facts
