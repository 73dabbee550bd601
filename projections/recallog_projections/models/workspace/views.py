"""The projections of workspaces, whose documents are items."""

from recallog_projections.models.items.projection import Items
from recallog_projections.models.workspace import documents
from recallog_projections.models.workspace.daily import DailyLogs
from recallog_projections.projection import Projection


def projections() -> list[Projection]:
    return [DailyLogs()]


def of_index() -> list[Projection]:
    """Those that the index folds too."""
    return [Items(documents.NAMESPACE)]
