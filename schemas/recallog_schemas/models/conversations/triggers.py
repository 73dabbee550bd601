"""The trigger of compactions."""

from recallog_schemas.triggers import TriggerKind

COMPACTION = "compaction.due"
"""A conversation of an agent has become so long that its beginning is to be replaced by a summary."""
KINDS = (TriggerKind(COMPACTION),)
