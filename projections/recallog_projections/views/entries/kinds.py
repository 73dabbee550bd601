"""The kinds of the events that may retain or change an entry."""

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CHANGING = frozenset({"memory.updated", "memory.retracted", "memory.archived", "memory.erased", "memory.transferred"})
