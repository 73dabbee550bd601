"""The kinds of the events that may retain or change an entry, and the entries that a change names."""

from collections.abc import Sequence

from recallog_schemas import Event

RETAINING = frozenset({"memory.retained", "experience.recorded"})
CHANGING = frozenset({"memory.updated", "memory.retracted", "memory.archived", "memory.erased", "memory.transferred"})

_OF_SEVERAL = frozenset({"memory.erased", "memory.transferred"})


def changed_ids(event: Event) -> Sequence[str]:
    """The ids of the entries that an event of a kind in `CHANGING` would change, each once."""
    return list(dict.fromkeys(event.payload["entries"])) if event.kind in _OF_SEVERAL else [event.payload["entry"]]
