"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

# Conversations. The numbers of compaction are those of the memory model, section 1.4, rows 16 and 18.
MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # of one message as JSON; beyond the size of an event it is kept in parts
MESSAGE_PART_CHARS = 60_000  # of the JSON of a message: at most 4 bytes each, so that a part fits an event
MESSAGES_MAX = 5_000  # of one call
MESSAGES_OF_CHUNK = 8  # in one row; larger rows of the local store would need pages of their own
MESSAGE_CALLS_SEARCHED = 256  # newest messages that are searched for the call that a tool's result belongs to
COMPACT_MESSAGES = 20  # a conversation of more messages is compacted
COMPACT_CHARS = 48_000  # as is one of more characters
COMPACT_KEPT = 8  # newest messages that stay
COMPACT_MESSAGES_LEAST = 8
COMPACT_CHARS_LEAST = 4_000
COMPACT_KEPT_LEAST = 4
COMPACT_SNIPPETS = 12  # newest compacted messages in a summary without a model
COMPACT_SNIPPET_CHARS = 160
COMPACT_SUMMARY_CHARS = 700
COMPACT_MODEL_CHARS = 2_000  # of a model's summary; the model is asked for 400 tokens
COMPACT_VERBATIM = 12  # sentences that follow a summary word for word
COMPACT_VERBATIM_CHARS = 4_000  # of them, and of a question without an answer
COMPACT_FAILURES = 3  # in a row, after which compaction pauses
COMPACT_REST_SECONDS = 600
