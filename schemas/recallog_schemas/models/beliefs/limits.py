"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

BELIEFS_KEPT = 64
REFLECTION_EVENTS = 20
EVIDENCE_SCANNED = 200  # of a due reflection: calls of tools do not push out what people said before
PROMPT_BELIEFS = 8
BELIEF_CHARS_MAX = 2_000
INSIGHTS_MAX = 64
