"""The trigger of extractions."""

from recallog_schemas.triggers import TriggerKind

EXTRACTION = "extraction.due"
"""An agent whose facts are extracted has finished a turn."""
KINDS = (TriggerKind(EXTRACTION, ("turn", "turns")),)
