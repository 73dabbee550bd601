"""The kinds of the events that may retain an entry, on purpose or by the setting `capture`, change it or archive it,
and the entries that a change names.
"""

from collections.abc import Sequence

from recallog_schemas import Event

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CAPTURING = "tool.used"
CHANGING = frozenset(
    f"memory.{change}" for change in ("updated", "retracted", "archived", "restored", "erased", "transferred")
)
PLAN = "memory.consolidated"
"""The kind of the events that may archive entries by a plan."""

_OF_SEVERAL = frozenset({"memory.erased", "memory.transferred"})


def changed_ids(event: Event) -> Sequence[str]:
    """The ids of the entries that an event of a kind in `CHANGING` would change, each once."""
    return list(dict.fromkeys(event.payload["entries"])) if event.kind in _OF_SEVERAL else [event.payload["entry"]]
