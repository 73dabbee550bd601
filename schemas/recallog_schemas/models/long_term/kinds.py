"""The kinds of changes of entries."""

from collections.abc import Mapping
from typing import Any

from recallog_schemas.kinds.kind import bookkeeping, entry
from recallog_schemas.models.long_term.payloads import (
    NEWEST_RULE,
    Accessed,
    Archived,
    EntryRetained,
    Erased,
    Experience,
    Metered,
    Restored,
    Retracted,
    Transferred,
    Updated,
)
from recallog_schemas.text_rules import first_of

RETAINED = "memory.retained"
"""The kind of the events that stand for entries in answers."""

_CONTENT = "text entity category source topic metadata"
_UNCOMPARED = frozenset({"nearest", "rule"})
"""Publishing adds the rule, and a later version of Recallog may add another one. Old writers measured `nearest` on each
attempt."""


def _experience_text(payload: Mapping[str, Any]) -> str:
    """`summary → outcome`; the summary alone without an outcome."""
    summary, outcome = payload["summary"], payload.get("outcome")
    return f"{summary} → {outcome}" if outcome else str(summary)


_experience_text.__name__ = "{summary} → {outcome}"

KINDS = (
    entry(
        RETAINED,
        "An agent keeps a text on purpose.",
        EntryRetained,
        first_of("text"),
        _CONTENT,
        entry="id",
        sources="sources",
        newest_rule=NEWEST_RULE,
        uncompared=_UNCOMPARED,
        version=2,
        directs=frozenset({"priority", "red_line", "nearest"}),
    ),
    entry(
        "experience.recorded",
        "An agent keeps what it did and the outcome.",
        Experience,
        _experience_text,
        "action_type summary outcome agent_role",
        entry="id",
    ),
    bookkeeping(
        "memory.updated",
        "An entry was changed by its owner.",
        Updated,
        _CONTENT,
        entry="entry",
        sources="sources",
        newest_rule=NEWEST_RULE,
        uncompared=_UNCOMPARED,
        version=2,
    ),
    bookkeeping("memory.retracted", "An entry was taken back by its owner.", Retracted, "reason", entry="entry"),
    bookkeeping("memory.archived", "An entry was put away by its owner.", Archived, "reason", entry="entry", version=2),
    bookkeeping(
        "memory.restored",
        "An archived entry was taken back into use by its owner.",
        Restored,
        "reason",
        entry="entry",
        newest_rule=NEWEST_RULE,
        uncompared=_UNCOMPARED,
    ),
    bookkeeping("memory.erased", "Entries were forgotten by their owner.", Erased, "reason", needs="forget"),
    bookkeeping(
        "memory.transferred",
        "Entries were given to another agent.",
        Transferred,
        newest_rule=NEWEST_RULE,
        uncompared=_UNCOMPARED,
        version=2,
    ),
    bookkeeping("memory.metered", "Units were granted to an agent or used by it.", Metered, "reason", needs="operate"),
    bookkeeping("memory.accessed", "Entries were read in a way that counts.", Accessed, moves_time=False),
)
