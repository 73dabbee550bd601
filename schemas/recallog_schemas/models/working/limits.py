"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

WORKING_BLOCK_CHARS_MAX = 2_000  # that a rendered block shows
