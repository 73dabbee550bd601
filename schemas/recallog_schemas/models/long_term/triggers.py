"""The triggers of migrations from working memory, and of erasures that reach further entries."""

from recallog_schemas.triggers import TriggerKind

MIGRATION = "migration.due"
"""A session has ended whose working memory holds what the agent wants to keep."""
RETRACTION = "retraction.due"
"""An entry was retracted because one of its sources was erased, and is itself the source of others."""
KINDS = (TriggerKind(MIGRATION, ("text", "texts")), TriggerKind(RETRACTION))
