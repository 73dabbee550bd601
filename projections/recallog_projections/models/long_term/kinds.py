"""The kinds of the events that may retain an entry, on purpose or by the setting `capture`, change it, archive it or
restore it, and the entries that a change names.
"""

from collections.abc import Sequence

from recallog_schemas import Event

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CAPTURING = "tool.used"
RESTORED = "memory.restored"
CHANGING = frozenset(
    {"memory.updated", "memory.retracted", "memory.archived", RESTORED, "memory.erased", "memory.transferred"}
)
PLAN = "memory.consolidated"
"""The kind of the events that may archive entries by a plan."""
MOVED = "memory.tier_changed"
"""The kind of the events by which owners move entries to another tier. They restore archived ones, from rule 2 on."""

_OF_SEVERAL = frozenset({"memory.erased", "memory.transferred"})


def changed_ids(event: Event) -> Sequence[str]:
    """The ids of the entries that an event of a kind in `CHANGING`, or of `MOVED`, would change, each once."""
    return list(dict.fromkeys(event.payload["entries"])) if event.kind in _OF_SEVERAL else [event.payload["entry"]]
