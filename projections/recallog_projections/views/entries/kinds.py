"""The kinds of the events that may retain, change or archive an entry."""

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CHANGING = frozenset({"memory.updated", "memory.retracted", "memory.archived", "memory.erased", "memory.transferred"})
PLAN = "memory.consolidated"
"""The kind of the events that may archive entries by a plan."""
