"""The projections of streams."""

from recallog_projections.models.stream.insights import Insights

PROJECTIONS = (Insights,)
