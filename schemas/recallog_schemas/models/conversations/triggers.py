"""The trigger of compactions."""

from recallog_schemas.triggers import TriggerKind

COMPACTION = "compaction.due"
"""A conversation of an agent has become so long that a summary must replace its beginning."""
KINDS = (TriggerKind(COMPACTION, makes="conversation.compacted"),)
