"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

INSIGHTS_KEPT = 64
STREAM_MEMORIES = 10
