"""The trigger of daily logs."""

from recallog_schemas.triggers import TriggerKind

DAILY = "daily.due"
"""An agent has finished a turn, and its session has as many new messages as its daily log waits for."""
KINDS = (TriggerKind(DAILY, ("session", "sessions")),)
