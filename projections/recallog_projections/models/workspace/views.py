"""The projections of workspaces, whose documents are items."""

from functools import partial

from recallog_projections.models.items.projection import Items
from recallog_projections.models.workspace import documents
from recallog_projections.models.workspace.daily import DailyLogs

PROJECTIONS = (DailyLogs,)
OF_INDEX = (partial(Items, documents.NAMESPACE),)
