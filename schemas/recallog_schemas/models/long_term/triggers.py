"""The triggers of migrations from working memory, of erasures that reach further entries, and of near-duplicates."""

from recallog_schemas.triggers import TriggerKind

MIGRATION = "migration.due"
"""A session has ended whose working memory holds what the agent wants to keep."""
RETRACTION = "retraction.due"
"""An entry was retracted because one of its sources was erased, and is itself the source of others."""
DEDUPLICATION = "deduplication.due"
"""An agent whose near-duplicates are merged has an entry with a new text."""
KINDS = (TriggerKind(MIGRATION, ("text", "texts")), TriggerKind(RETRACTION), TriggerKind(DEDUPLICATION))
