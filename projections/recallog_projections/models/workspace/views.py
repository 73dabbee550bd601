"""The projections of workspaces, whose documents are items."""

from recallog_projections.models.workspace.daily import DailyLogs

PROJECTIONS = (DailyLogs,)
