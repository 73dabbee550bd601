"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

ACCESSED_IDS_MAX = 256  # of one event, and of what a process has counted and not published
ACCESSED_SECONDS = 1.0  # how long a process collects reads of entries before it publishes them
ACCESSED_CLOSE_SECONDS = 2.0  # how long closing a memory waits for a ledger that cannot be written
# A nearest text whose similarity is above the limit is a duplicate.
SIMILARITY_OF_FACTS = 0.92  # above it, two facts may say the same
SIMILARITY_OF_ENTRIES = 0.85  # the same for two other entries
ENTRY_PINS_MAX = 5  # of an agent
ENTRY_TWINS_MAX = 256  # live entries with texts that differ only in capitals or line breaks: more are not compared
ENTRY_COST = 1.0  # of an entry whose event states none, for an agent with a balance
LESSONS = 5  # that fit a question
ENTRY_FORMS_ENDED = 16  # of an entry, in the semantic index: former texts, owners and types, for time travel
ENTRY_DEPENDENTS_MAX = 1_000  # live entries that name one source: an erasure of it retracts them in one step
RECALL_ENTRIES = 1_000  # of the newest entries, whose words are compared where the index is off or behind
PRESET_CANDIDATES = 50  # entries that each channel of a preset ranks, or twice as many as are requested
SIMILAR_ENTRIES = 32  # of the newest entries, which are embedded to be compared if the index has not processed them
ENTRY_SOURCES_MAX = 64
SOURCE_CHARS_MAX = 1_000
MODEL_CHARS_MAX = 256  # the name of a model
MIGRATED_PATH_CHARS_MAX = 500
MIGRATED_BYTES_MAX = 128 * 1024  # of the texts in one row of due work
CAPTURED_PER_MINUTE_MAX = 1_000  # calls of tools that become entries, whatever the settings of an agent are: one row
CAPTURED_MINUTES = 61  # of an agent; a prime: no difference of time zones is a multiple of it
