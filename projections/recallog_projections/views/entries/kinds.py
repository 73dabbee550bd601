"""The kinds of events that may retain an entry."""

RETAINING = frozenset({"memory.retained", "experience.recorded"})
