"""The kinds of events that may retain an entry: on purpose, or by the setting `capture`."""

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CAPTURING = "tool.used"
