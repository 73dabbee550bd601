"""The limits of this model; see `recallog_schemas.limits`. Names end in the unit."""

BELIEFS_KEPT = 64
REFLECTION_EVENTS = 20
EVIDENCE_SCANNED = 200  # of a due reflection: calls of tools do not push out what people said before
PROMPT_BELIEFS = 8
BELIEF_CHARS_MAX = 2_000
INSIGHTS_MAX = 64
SUBJECTS_MAX = 4
"""Subjects of one belief."""
SUBJECT_CHARS_MAX = 120
ABOUT_KEPT = 256
"""Beliefs with subjects that the views retain of each space (shared ones) and of each reader (others)."""
SUBJECT_BELIEFS = 16
"""The newest beliefs on one subject that a graph links: each with each, so that their edges grow with the square."""
