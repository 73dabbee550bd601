"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

RETRIEVED = 5  # entries with a tier that answer a question
RETRIEVED_SIMILARITY = 0.3  # the least similarity of such an entry
MOVES_KEPT = 1_000  # of an agent: the newest records that moved or archived entries
SUMMARY_CHARS_MAX = 400  # of a summary that is made without a model
