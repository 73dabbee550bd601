"""The kinds of the events that may retain an entry, on purpose or by the setting `capture`, change it or archive it."""

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CAPTURING = "tool.used"
CHANGING = frozenset({"memory.updated", "memory.retracted", "memory.archived", "memory.erased", "memory.transferred"})
PLAN = "memory.consolidated"
"""The kind of the events that may archive entries by a plan."""
